import t from 'tap'
import { deriveKey } from '../../lib/crypto/derive-key.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { openFormer } from '../../lib/former/index.ts'
import { type UserRecord, createUserRecord } from '../../lib/records.ts'
import { DEFAULT_ROLE_NAMES as roles } from '../../lib/roles.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createPasswordChecks } from '../../lib/users/password-checks.ts'
import { createStoredUsers } from '../../lib/users/stored-users.ts'
import type { FormerPerson } from '../../lib/former/call.ts'
import { createSilentRecorder } from '../helpers/events.ts'
import { Scheduler, createRandom, exhaust } from '../helpers/scheduler.ts'
import { PLAIN_PASSWORDS } from '../helpers/services.ts'
import { wrapStore } from '../helpers/wrap-store.ts'

const NOW = Date.parse('2126-11-23T00:00:00.000Z')
const RIGHT = 'former'
const MOST_ORDERS = 3_000
const RANDOM_ORDERS = 300

t.setTimeout(600_000)

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
const stored = createStoredUsers({ store, now, role: roles.admin, recorder, tokens: { deleteOfUser: () => {} }, onRemove: async () => {}, onError: fail })
const box = createSecretBox(generateSecretKey())
const former = openFormer({
  migrate: { verify: (account: string, password: string) => password === RIGHT && (people.get(account) ?? false), create: true, trustEmails: true },
  outbound: { read: fail },
  store,
  stored,
  now,
  box,
  seedKey: deriveKey(box.key, 'imported seeds'),
  roles,
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
  onError: fail
})

/** Somebody whom an import has marked. */
const MARKED = { ...createUserRecord(NOW, { id: 'ann', account: 'ann', roles: {}, name: '', info: {}, imported_source: 'old', imported_run: 'run', imported_revision: 0, imported_lazy: true }) }

/** Runs the actors in every order of their store calls, or in many. @returns the first problems, with their orders */
async function tryOrders (
  prepare: () => Promise<Record<string, () => Promise<unknown>>>, check: (results: Record<string, unknown>, all: UserRecord[]) => string | undefined
): Promise<{ complete: boolean, problems: string[] }> {
  const problems: string[] = []
  const run = async (choose: (count: number) => number) => {
    await users.deleteMany({ before: { id: '~' } })
    warnings.length = 0
    people.clear()
    const results: Record<string, unknown> = {}
    const actors = Object.entries(await prepare()).map(([name, act]) => [name, async () => { results[name] = await act().catch((error: unknown) => error) }] as const)
    await scheduler.run(Object.fromEntries(actors), choose)
    const order = scheduler.log.map(({ actor, collection, method }) => `${actor}: ${collection}.${method}`)
    const all = (await Array.fromAsync(users.stream())).flat()
    const problem = check(results, all)
    if (problem !== undefined && problems.length < 3) problems.push(`${problem}\n${order.join('\n')}`)
  }
  const { complete } = await exhaust(MOST_ORDERS, run)
  if (!complete) for (let seed = 0; seed < RANDOM_ORDERS; seed++) await run(createRandom(seed))
  return { complete, problems }
}

const idOf = (result: unknown): string | undefined => (result as UserRecord | null | undefined)?.id
const signIn = (account: string) => async () => await checks.verify(account, RIGHT)

for (const [what, person] of Object.entries<FormerPerson>({
  'who is only vouched for': {},
  'whose id the former system tells': { id: 'former-1' },
  'whose address the former system tells': { id: 'former-1', email: 'ann@example.com', email_verified: true }
})) {
  t.test(`two first sign-ins of somebody ${what} make one account, in every order`, async (t) => {
    const { complete, problems } = await tryOrders(
      async () => {
        people.set('ann', person)
        return { one: signIn('ann'), two: signIn('ANN') }
      },
      ({ one, two }, all) => {
        if (all.length !== 1) return `${all.length} accounts`
        if (idOf(one) !== all[0]!.id || idOf(two) !== all[0]!.id) return `signed in: ${idOf(one)} and ${idOf(two)}`
        return warnings.length > 0 ? warnings.join() : undefined
      }
    )
    // An address is looked for as well: there are more orders than a test has time for.
    t.ok(complete || person.email !== undefined)
    t.strictSame(problems, [])
  })
}

t.test('two first sign-ins of a marked person write one password, in every order', async (t) => {
  const { complete, problems } = await tryOrders(
    async () => {
      people.set('ann', {})
      await users.insert({ ...MARKED })
      return { one: signIn('ann'), two: signIn('ann') }
    },
    ({ one, two }, [ann]) => {
      if (idOf(one) !== 'ann' || idOf(two) !== 'ann') return `signed in: ${idOf(one)} and ${idOf(two)}`
      if (ann!.epoch !== MARKED.epoch + 1 || ann!.imported_lazy !== undefined) return `epoch ${ann!.epoch}`
      return warnings.length > 0 ? warnings.join() : undefined
    }
  )
  t.ok(complete)
  t.strictSame(problems, [])
})

t.test('somebody with a name and an address at the former system gets one account by both, in every order', async (t) => {
  const { complete, problems } = await tryOrders(
    async () => {
      const person = { id: 'former-1', email: 'ann@example.com', email_verified: true }
      people.set('ann', person)
      people.set('ann@example.com', person)
      return { name: signIn('ann'), address: signIn('ann@example.com') }
    },
    ({ name, address }, all) => {
      if (all.length !== 1) return `${all.length} accounts`
      const signedIn = [idOf(name), idOf(address)].filter((id) => id === 'former-1')
      // Who came with the address first has no name here: a look-up by it finds nobody, and the id is taken.
      return signedIn.length === 2 || (signedIn.length === 1 && all[0]!.account === 'ann@example.com') ? undefined : `signed in: ${idOf(name)} and ${idOf(address)}, as ${all[0]!.account}`
    }
  )
  t.ok(complete)
  t.strictSame(problems, [])
})

const INTERRUPTIONS: Record<string, { act: () => Promise<unknown>, check: (found: unknown, ann: UserRecord | undefined) => string | undefined }> = {
  'a password by an administrator': {
    act: async () => await stored.changeUser('ann', () => ({ set: { password: 'strong other' }, increment: { epoch: 1 } })),
    check: (_found, ann) => ann!.password === 'strong other' ? undefined : `the password is ${ann!.password}`
  },
  'a time without access': {
    act: async () => await stored.changeUser('ann', () => ({ set: { disabled_at: new Date(NOW).toISOString() }, increment: { epoch: 1 } })),
    check: (found, ann) => ann!.disabled_at !== undefined && (found === null || idOf(found) === 'ann') ? undefined : 'is not disabled'
  },
  'a removal': {
    act: async () => await stored.removeUser('ann'),
    check: (_found, ann) => ann === undefined || ann.id !== 'ann' ? undefined : 'is still here'
  }
}

for (const [what, { act, check }] of Object.entries(INTERRUPTIONS)) {
  t.test(`a first sign-in never undoes ${what}, in every order`, async (t) => {
    const { problems } = await tryOrders(
      async () => {
        people.set('ann', {})
        await users.insert({ ...MARKED })
        return { person: signIn('ann'), operator: act }
      },
      ({ person, operator }, all) => {
        if (operator instanceof Error) return String(operator)
        return person instanceof Error ? String(person) : check(person, all[0])
      }
    )
    t.strictSame(problems, [])
  })
}
