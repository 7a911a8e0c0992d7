import { createBase } from '../helpers/base.ts'
import { SILENT_FAILURES, createSilentRecorder } from '../helpers/events.ts'
import t, { type Test } from 'tap'
import { ENDED_BY_DELETION, createTickets } from '../../lib/tickets/tickets.ts'
import { createCredentials } from '../../lib/ways/credentials.ts'
import { createEvidenceCheck } from '../../lib/ways/evidence.ts'
import { createClients } from '../../lib/clients/clients.ts'
import { storeError } from '../../lib/errors.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { type MintedTokens, createTokens } from '../../lib/tokens/tokens.ts'
import { hashToken } from '../../lib/crypto/random-token.ts'
import type { TokenRecord } from '../../lib/records/token.ts'
import { createAttempts } from '../../lib/throttling/attempts.ts'
import { createPasswordRules } from '../../lib/users/password-rules.ts'
import type { Passwords } from '../../lib/users/passwords.ts'
import { createUsers } from '../../lib/users/users.ts'
import { rotate } from '../helpers/redeem.ts'
import { type Choose, Scheduler, type Step, areIndependent, exhaust } from '../helpers/scheduler.ts'
import { wrapStore } from '../helpers/wrap-store.ts'
import { createTestNotices } from '../helpers/mails.ts'
import { openTestStored, openTestWays } from '../helpers/user-changes.ts'

/** Random orders of each revocation with many actors, and how many of them differ. */
const RANDOM_ORDERS = 100
const LEAST_RANDOM = 80

// It takes some seconds on an idle machine.
t.setTimeout(480_000)

const NOW = Date.UTC(2026, 10, 21, 2, 51)
const ADMIN = { user_id: 'admin', isAdmin: true }

const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: () => NOW })
t.teardown(() => inner.close())
const scheduler = new Scheduler()
const store = wrapStore(inner, scheduler.around)
const recorder = createSilentRecorder(store)
const tokens = createTokens({ store, now: () => NOW, roles: DEFAULT_ROLE_NAMES, recorder, report: () => () => {}, refreshTtl: 7200 })
// Hashing makes no store call, so real hashes would add no order.
const passwords: Passwords = {
  codeCost: 4,
  stretch: async (codes) => [...codes],
  hash: async (password) => password,
  verify: async () => true,
  isWeak: () => false,
  countWaiting: () => 0,
  countRest: () => Infinity,
  close: async () => {}
}
const box = createSecretBox(generateSecretKey())
const attempts = createAttempts({ store, now: () => NOW, key: box.key })
const tickets = createTickets({ store, now: () => NOW })
const material = createCredentials({ store, now: () => NOW })
const onRemove = async (id: string) => await Promise.all([tickets.removeOf(id, ENDED_BY_DELETION), material.removeOf(id)])
const stored = openTestStored({ store, now: () => NOW, role: DEFAULT_ROLE_NAMES.admin, recorder, tokens, onRemove, onError: () => {} })
const users = createUsers({
  ...createBase({ store, now: () => NOW, box, recorder, onError: () => {} }),
  stored,
  passwords,
  checkNewPassword: createPasswordRules({ min: 1 }),
  attempts,
  failures: SILENT_FAILURES,
  checkEvidence: createEvidenceCheck({ ways: openTestWays({ store, now: () => NOW, recorder, tokens, onError: () => {} }) }),
  limits: { open: async () => ({}) },
  notices: createTestNotices(() => NOW),
  removeLinks: async () => {}
})
const clients = createClients({ ...createBase({ store, now: () => NOW, box, recorder }), tokens, checkQuota: async () => {}, uses: { read: async () => ({}), forget: async () => {} }, ends: { add: async () => {}, forget: async () => {} }, checkUrl: (url) => url })

/**
 * The fate of a token does not depend on the writes of tokens of the other kind. So all orders are tried twice, each time with
 * the writes of one kind. No two actors share another collection. A scan for dead records is not ordered, but the deletions of
 * the found records are.
 */
const HALVES = ['access_tokens', 'refresh_tokens'].map((written): Scheduler['isShared'] => ({ collection, method }) =>
  method === 'getLinked' || (['users', 'clients', 'grants', written].includes(collection) && (method !== 'next' || collection === 'clients')))

/** A user, their client, and a session. */
interface Scene { user_id: string, client_id: string, session: Required<MintedTokens> }

let scenes = 0

async function setScene (): Promise<Scene> {
  const { user_id } = await users.create({ data: { account: `user${scenes++}`, password: 'old' } })
  const { clientId: client_id } = await clients.create(
    { data: { redirectUris: [], scopes: ['read'], name: 'n' }, credentials: true }, { user_id, isAdmin: false }
  )
  return { user_id, client_id, session: await tokens.mint({ user_id, client_id, refresh: true }) as Required<MintedTokens> }
}

interface Revocation {
  act: (scene: Scene) => Promise<unknown>
  /** The write that revokes the tokens. */
  isDecisive: (step: Step) => boolean
  /** Its failure is part of the test. */
  mayFail?: true
  /** Two revocations in a row: too many orders to try all of them. */
  long?: true
  /** A token that was minted from this collection, read after that write, is valid. Absent: minting does not depend on it. */
  rereads?: 'users' | 'clients'
  /** Whoever asks for a token afterwards is refused. */
  refuses?: true
}

const movesEpoch = (collection: string) => (step: Step) =>
  step.collection === collection && step.method === 'update' && (step.args[1] as { increment?: { epoch?: number } }).increment?.epoch === 1
const deletes = (collection: string) => (step: Step) => step.collection === collection && step.method === 'delete'

const REVOCATIONS: Record<string, Revocation> = {
  'a password change of one\'s own': {
    act: ({ user_id }) => users.patchOwn(user_id, { data: { password: 'new' } }), isDecisive: movesEpoch('users'), rereads: 'users'
  },
  'a password change by an admin': {
    act: ({ user_id }) => users.patch(user_id, { data: { password: 'new' } }, ADMIN), isDecisive: movesEpoch('users'), rereads: 'users'
  },
  disabling: {
    act: ({ user_id }) => users.patch(user_id, { disable: true }, ADMIN), isDecisive: movesEpoch('users'), rereads: 'users', refuses: true
  },
  'disabling and enabling': {
    act: async ({ user_id }) => {
      await users.patch(user_id, { disable: true }, ADMIN)
      await users.patch(user_id, { disable: false }, ADMIN)
    },
    isDecisive: movesEpoch('users'),
    rereads: 'users',
    long: true
  },
  'deleting the user': { act: ({ user_id }) => users.remove(user_id, ADMIN), isDecisive: deletes('users'), rereads: 'users', refuses: true },
  'a new secret': {
    act: ({ client_id }) => clients.patch(client_id, { regen_secret: true }, ADMIN), isDecisive: movesEpoch('clients'), rereads: 'clients'
  },
  'deleting the client': { act: ({ client_id }) => clients.remove(client_id, ADMIN), isDecisive: deletes('clients'), rereads: 'clients', refuses: true },
  'deleting the user\'s clients': { act: ({ user_id }) => clients.removeOwned(user_id, ADMIN), isDecisive: deletes('clients'), rereads: 'clients', refuses: true },
  logout: {
    act: async ({ session }) => await tokens.revoke((await tokens.authenticate(session.access_token)).token),
    isDecisive: deletes('grants'),
    // A second use of the refresh token may have ended the session before.
    mayFail: true
  }
}

/** An actor that tries to keep or to get a token. Tokens that are issued to it go to `told`. */
type Racer = (scene: Scene, told: MintedTokens[]) => Promise<unknown>

const RACERS: Record<string, Racer> = {
  use: async ({ session }) => await tokens.authenticate(session.access_token),
  refresh: async ({ session }, told) => { told.push(await rotate(tokens, session.refresh_token)) },
  mint: async ({ user_id, client_id }, told) => { told.push(await tokens.mint({ user_id, client_id })) },
  'mint with refresh': async ({ user_id, client_id }, told) => { told.push(await tokens.mint({ user_id, client_id, refresh: true })) },
  'refresh twice': async ({ session }, told) => {
    const first = await rotate(tokens, session.refresh_token)
    told.push(first)
    told.push(await rotate(tokens, first.refresh_token))
  }
}

async function works (ask: () => unknown): Promise<boolean> {
  try {
    await ask()
    return true
  } catch {
    return false
  }
}

/** The tokens that still work. */
async function findSurvivors (told: MintedTokens[]): Promise<string[]> {
  const alive: string[] = []
  for (const { access_token, refresh_token } of told) {
    if (await works(() => tokens.authenticate(access_token))) alive.push('an access token')
    const found = refresh_token === undefined ? null : await tokens.find<TokenRecord>('refresh_tokens', hashToken(refresh_token))
    if (found !== null && !tokens.isSpent(found, 0)) alive.push('a refresh token')
  }
  return alive
}

/** Whether the racer minted from records that it read after the revocation. Such a token is valid. */
function mintedAfter (revocation: Revocation, racer: string): boolean {
  const { log } = scheduler
  const decisive = log.findIndex((step) => step.actor === 'revoker' && revocation.isDecisive(step))
  const reads = log.findIndex((step) => step.actor === racer && step.collection === revocation.rereads && step.method === 'get')
  return decisive < reads
}

const CROWD = ['use', 'refresh', 'refresh twice', 'mint', 'mint', 'mint with refresh']

interface Outcome { survivors: string[], told: number, order: string }

/** An actor ends only with the removals that it left in the background, so that their calls are ordered too. */
function settled (act: () => Promise<unknown>): () => Promise<unknown> {
  return async () => {
    try {
      await act()
    } finally {
      await tokens.settle()
    }
  }
}

/** Runs one order of store calls; resolves to the surviving tokens. */
async function play (revocation: Revocation, names: string[], choose: Choose): Promise<Outcome> {
  const scene = await setScene()
  let decided = false
  const racers = names.map((name, index) => ({ actor: `${name} ${index}`, minting: name.startsWith('mint'), told: [] as MintedTokens[], race: RACERS[name]! }))
  await scheduler.run({
    revoker: settled(async () => {
      await revocation.act(scene)
      decided = true
    }),
    ...Object.fromEntries(racers.map(({ actor, told, race }) => [actor, settled(() => race(scene, told))]))
  }, choose)
  const order = scheduler.log.map((step) => `${step.actor}: ${step.collection}.${step.method}`).join('\n')
  if (!decided && revocation.mayFail === undefined) return { survivors: ['the revocation failed'], told: 0, order }
  const suspects = racers.filter(({ actor, minting }) => !minting || (revocation.rereads !== undefined && !mintedAfter(revocation, actor)))
  const survivors = await findSurvivors([scene.session, ...suspects.flatMap(({ told }) => told)])
  return { survivors, told: racers.flatMap(({ told }) => told).length, order }
}

function check (t: Test, { survivors, order }: Outcome, name: string): void {
  if (survivors.length > 0) t.fail(`${name}: ${survivors.join(', ')} survived`, { order: order.split('\n') })
}

t.beforeEach(() => { scheduler.isShared = () => true })

t.test('nothing revoked: each racer gets its tokens, and keeps them', async (t) => {
  for (const [name, race] of Object.entries(RACERS)) {
    const told: MintedTokens[] = []
    await race(await setScene(), told)
    const expected = { use: 0, refresh: 2, mint: 1, 'mint with refresh': 2, 'refresh twice': 3 }[name]
    t.equal((await findSurvivors(told)).length, expected, name)
  }
})

const [TOLD, NO_TOKEN] = ['told a token', 'no token']

/** The races of one racer with a revocation. Who comes in time is told a token. */
function listRaces ({ rereads, refuses }: Revocation): { racer: string, least: number, outcomes: string[] }[] {
  return [
    { racer: 'use', least: 3, outcomes: [NO_TOKEN] },
    { racer: 'refresh', least: 7, outcomes: [TOLD, NO_TOKEN] },
    ...rereads === undefined ? [] : [{ racer: 'mint', least: 2, outcomes: refuses === true ? [TOLD, NO_TOKEN] : [TOLD] }]
  ]
}

for (const [name, revocation] of Object.entries(REVOCATIONS)) {
  if (revocation.long === undefined) {
    t.test(`${name}: every order with one racer`, async (t) => {
      for (const { racer, least, outcomes } of listRaces(revocation)) {
        for (const isShared of HALVES) {
          scheduler.isShared = isShared
          await exhaust({ least, outcomes, commute: areIndependent }, async (choose) => {
            const outcome = await play(revocation, [racer], choose)
            check(t, outcome, racer)
            return outcome.told > 0 ? TOLD : NO_TOKEN
          })
        }
      }
    })
  }

  t.test(`${name}: random orders with many racers`, async (t) => {
    let won = 0
    await exhaust({ least: LEAST_RANDOM, most: 0, random: RANDOM_ORDERS }, async (choose) => {
      const outcome = await play(revocation, CROWD, choose)
      won += outcome.told
      check(t, outcome, 'many')
    })
    t.ok(won > RANDOM_ORDERS, 'many are told a token')
  })

  t.test(`${name}: random orders, and the removal of dead records is interrupted`, async (t) => {
    t.teardown(() => { scheduler.interrupt = () => {} })
    await exhaust({ least: LEAST_RANDOM, most: 0, random: RANDOM_ORDERS }, async (choose) => {
      // All calls of the revoker fail after the decisive one and up to three more, as when its process ends.
      let left = choose(4)
      scheduler.interrupt = (step, log) => {
        if (step.actor !== 'revoker' || !log.some((past) => past.actor === 'revoker' && revocation.isDecisive(past))) return
        if (!revocation.isDecisive(step) && left-- <= 0) throw storeError(new Error('cut short'))
      }
      check(t, await play({ ...revocation, mayFail: true }, CROWD, choose), 'many')
    })
  })
}

t.test('two uses of one refresh token end the session, in every order', async (t) => {
  scheduler.isShared = HALVES[1]!
  await exhaust({ least: 34, outcomes: ['0 pairs', '1 pairs'], commute: areIndependent }, async (choose) => {
    const scene = await setScene()
    const told: MintedTokens[] = []
    await scheduler.run({ one: settled(() => RACERS.refresh!(scene, told)), two: settled(() => RACERS.refresh!(scene, told)) }, choose)
    const survivors = await findSurvivors([scene.session, ...told])
    if (survivors.length > 0) t.fail(`${survivors.join(', ')} survived`, { order: scheduler.order })
    return `${told.length} pairs`
  })
})
