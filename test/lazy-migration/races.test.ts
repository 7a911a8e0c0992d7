import t from 'tap'
import { deriveKey } from '../../lib/crypto/derive-key.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { openFormer } from '../../lib/lazy-migration/index.ts'
import { type UserRecord, createUserRecord } from '../../lib/records/user.ts'
import { DEFAULT_ROLE_NAMES as roles } from '../../lib/roles.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createPasswordChecks } from '../../lib/users/password-checks.ts'
import type { FormerPerson } from '../../lib/lazy-migration/call.ts'
import { createSilentRecorder } from '../helpers/events.ts'
import { race } from '../helpers/race.ts'
import { Scheduler } from '../helpers/scheduler.ts'
import { PLAIN_PASSWORDS } from '../helpers/services.ts'
import { wrapStore } from '../helpers/wrap-store.ts'
import { createBase } from '../helpers/base.ts'
import { openTestStored } from '../helpers/user-changes.ts'

const NOW = Date.parse('2126-11-23T00:00:00.000Z')
const RIGHT = 'former'

t.setTimeout(180_000)

const scheduler = new Scheduler()
scheduler.isShared = ({ collection }) => collection === 'users'
const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
t.teardown(() => inner.close())
const store = wrapStore(inner, scheduler.around)
const users = inner.collection<UserRecord>('users')
const now = () => NOW
const fail = (error: unknown) => { throw error }
const warnings: string[] = []
const people = new Map<string, FormerPerson>()

const recorder = createSilentRecorder(store)
const stored = openTestStored({ store, now, role: roles.admin, recorder, tokens: { deleteOfUser: () => {} }, onRemove: async () => {}, onError: fail })
const box = createSecretBox(generateSecretKey())
const former = openFormer({
  migrate: { verify: (account: string, password: string) => password === RIGHT && (people.get(account) ?? false), create: true, trustEmails: true },
  outbound: { read: fail },
  ...createBase({ store, now, box, recorder, roles }),
  stored,
  seedKey: deriveKey(box.key, 'imported seeds'),
  formerImports: { has: async () => undefined },
  cost: 4,
  passwords: PLAIN_PASSWORDS,
  onWarning: (message) => { warnings.push(message) }
})
const checks = createPasswordChecks({
  users: store.collection<UserRecord>('users'),
  now,
  passwords: PLAIN_PASSWORDS,
  attempts: { run: async (_of: unknown, compare: () => Promise<unknown>) => await compare() } as never,
  failures: { recordSignIn: () => {}, recordConfirmation: () => {} },
  askFormer: former.verify,
  report: () => fail
})

/** Somebody whom an import has marked. */
const MARKED = { ...createUserRecord(NOW, { id: 'ann', account: 'ann', roles: {}, name: '', info: {}, imported_source: 'old', imported_run: 'run', imported_revision: 0, imported_lazy: true }) }

/** Begins another order: nobody is here. */
async function empty (): Promise<void> {
  await users.deleteMany({ before: { id: '~' } })
  warnings.length = 0
  people.clear()
}

const list = async () => (await Array.fromAsync(users.stream())).flat()
const idOf = (result: unknown): string | undefined => (result as UserRecord | null | undefined)?.id
const signIn = (account: string) => async () => await checks.verify(account, RIGHT)

for (const [what, { least, person }] of Object.entries<{ least: number, person: FormerPerson }>({
  'who is only vouched for': { least: 6, person: {} },
  'whose id the former system tells': { least: 6, person: { id: 'former-1' } },
  'whose address the former system tells': { least: 11, person: { id: 'former-1', email: 'ann@example.com', email_verified: true } }
})) {
  t.test(`two first sign-ins of somebody ${what} make one account, in every order`, async (t) => {
    await race(t, scheduler, { least, outcomes: ['one, two'] }, async () => {
      await empty()
      people.set('ann', person)
      return {
        actors: { one: signIn('ann'), two: signIn('ANN') },
        async check ({ results: { one, two } }) {
          const all = await list()
          if (all.length !== 1) return `${all.length} accounts`
          if (idOf(one) !== all[0]!.id || idOf(two) !== all[0]!.id) return `signed in: ${idOf(one)} and ${idOf(two)}`
          return warnings.length > 0 ? warnings.join() : undefined
        }
      }
    })
  })
}

t.test('two first sign-ins of a marked person write one password, in every order', async (t) => {
  await race(t, scheduler, { least: 8, outcomes: ['one, two'] }, async () => {
    await empty()
    people.set('ann', {})
    await users.insert({ ...MARKED })
    return {
      actors: { one: signIn('ann'), two: signIn('ann') },
      async check ({ results: { one, two } }) {
        const [ann] = await list()
        if (idOf(one) !== 'ann' || idOf(two) !== 'ann') return `signed in: ${idOf(one)} and ${idOf(two)}`
        if (ann!.epoch !== MARKED.epoch + 1 || ann!.imported_lazy !== undefined) return `epoch ${ann!.epoch}`
        return warnings.length > 0 ? warnings.join() : undefined
      }
    }
  })
})

t.test('somebody with a name and an address at the former system gets one account by both, in every order', async (t) => {
  const signedIn = (results: Record<string, unknown>) => ['address', 'name'].filter((actor) => idOf(results[actor]) === 'former-1')
  // Who came with the address first has no name here: a look-up by it finds nobody, and the id is taken.
  await race(t, scheduler, { least: 9, outcomes: ['address', 'address, name'], name: ({ results }) => signedIn(results).join(', ') }, async () => {
    await empty()
    const person = { id: 'former-1', email: 'ann@example.com', email_verified: true }
    people.set('ann', person)
    people.set('ann@example.com', person)
    return {
      actors: { name: signIn('ann'), address: signIn('ann@example.com') },
      async check ({ results }) {
        const all = await list()
        if (all.length !== 1) return `${all.length} accounts`
        return signedIn(results).length === 2 || all[0]!.account === 'ann@example.com' ? undefined : `as ${all[0]!.account}`
      }
    }
  })
})

interface Interruption {
  least: number
  outcomes: string[]
  act: () => Promise<unknown>
  check: (ann: UserRecord | undefined) => string | undefined
}

const INTERRUPTIONS: Record<string, Interruption> = {
  'a password by an administrator': {
    least: 5,
    outcomes: ['signed in', 'refused'],
    act: async () => await stored.changeUser('ann', () => ({ set: { password: 'strong other' }, increment: { epoch: 1 } })),
    check: (ann) => ann!.password === 'strong other' ? undefined : `the password is ${ann!.password}`
  },
  'a time without access': {
    least: 5,
    outcomes: ['signed in', 'refused'],
    act: async () => await stored.changeUser('ann', () => ({ set: { disabled_at: new Date(NOW).toISOString() }, increment: { epoch: 1 } })),
    check: (ann) => ann!.disabled_at !== undefined ? undefined : 'is not disabled'
  },
  'a removal': {
    least: 5,
    outcomes: ['signed in', 'refused', 'a new account'],
    act: async () => await stored.removeUser('ann'),
    check: (ann) => ann?.id === 'ann' ? 'is still here' : undefined
  }
}

function nameAnswer (person: unknown): string {
  if (person === null) return 'refused'
  return idOf(person) === 'ann' ? 'signed in' : 'a new account'
}

for (const [what, { least, outcomes, act, check }] of Object.entries(INTERRUPTIONS)) {
  t.test(`a first sign-in never undoes ${what}, in every order`, async (t) => {
    await race(t, scheduler, { least, outcomes, refusals: [], name: ({ results }) => nameAnswer(results.person) }, async () => {
      await empty()
      people.set('ann', {})
      await users.insert({ ...MARKED })
      return { actors: { person: signIn('ann'), operator: act }, check: async () => check((await list())[0]) }
    })
  })
}
