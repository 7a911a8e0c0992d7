import t from 'tap'
import type { Proof } from '../../lib/proofs.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Confirmed } from '../../lib/users/confirm.ts'
import { NO_PASSWORD } from '../../lib/users/passwords.ts'
import { createHeldFactors } from '../../lib/accounts/held-factors.ts'
import { DEFAULT_POLICY } from '../../lib/ways/words.ts'
import { createSilentRecorder } from '../helpers/events.ts'
import { createTestNotices, settleMails } from '../helpers/mails.ts'
import { type Scene, race } from '../helpers/race.ts'
import { Scheduler } from '../helpers/scheduler.ts'
import { openRules } from '../helpers/services.ts'
import { openTestStored, openTestWays } from '../helpers/user-changes.ts'

t.setTimeout(180_000)

const ACCOUNT = 'ann@example.com'
const PASSWORD: Proof[] = [{ way: 'password', kind: 'password', at: '2126-11-21T00:00:00.000Z' }]

const scheduler = new Scheduler()
// The user's record decides. The material and the links are read, and what is removed of them afterwards is dead already.
scheduler.isShared = ({ collection, method }) => collection === 'users' && method !== 'next'
const { store, now, tokens, users, records, tickets, events, openAccounts } = await openRules(t, { around: scheduler.around })
const mailed: string[] = []
const mail = { local: true, send: async ({ text }: { text: string }) => { mailed.push(/token=([\w-]+)/.exec(text)?.[1] ?? '') } }
const mailing = openAccounts({ mail })
const accounts = openAccounts()
const ways = openTestWays({ store, now, recorder: createSilentRecorder(store), tokens, onError: (error) => { t.fail(String(error)) } })

const read = async (user_id: string): Promise<UserRecord> => (await records.users.get(user_id))!
const countFactors = async (user_id: string) => Object.values((await read(user_id)).ways ?? {}).filter(({ kind }) => kind === 'totp').length

/** Prepares an app and a set of codes. */
const prepare = async (user_id: string, epoch = 0): Promise<string[]> => await ways.prepare({ user_id, epoch }, [
  { kind: 'totp', material: { step: 1 } }, { kind: 'recovery', material: { hashes: [] } }
])

async function reset (): Promise<string> {
  await Promise.all(['users', 'tickets', 'credentials', 'deliveries'].map((name) => store.collection(name as 'users').deleteMany({ before: { id: '~' } })))
  mailed.length = 0
  return (await users.create({ data: { account: ACCOUNT, password: 'old' } })).user_id
}

/** Adds the first factor. Resolves to its id, and to the link that undoes it. */
async function addFirst (user_id: string): Promise<{ id: string, undo: string, both: Proof[] }> {
  const ids = await prepare(user_id)
  await mailing.addFactor({ user_id, epoch: 0, proofs: PASSWORD }, ids)
  await settleMails({ events, accounts: mailing })
  return { id: ids[0]!, undo: mailed.pop()!, both: [...PASSWORD, { way: ids[0]!, kind: 'totp', at: '2126-11-21T00:00:00.000Z' }] }
}

/** A race whose actors may be refused with these codes. */
async function play (name: string, expected: { least: number, outcomes: readonly string[] }, prepare: () => Promise<Scene>): Promise<void> {
  await t.test(name, async (t) => await race(t, scheduler, { ...expected, refusals: ['ErrTicket', 'ErrUnknown', 'ErrNotFound', 'ErrPerm', 'ErrBusy'] }, prepare))
}

await play('after an undo nothing is left of what a thief adds at the same time', { least: 4, outcomes: ['thief, undo', 'undo'] }, async () => {
  const user_id = await reset()
  const { undo, both } = await addFirst(user_id)
  const [more] = await prepare(user_id)
  return {
    actors: { undo: async () => await accounts.undo(undo), thief: async () => await accounts.addFactor({ user_id, epoch: 0, proofs: both }, [more!]) },
    async check () {
      const { password, epoch } = await read(user_id)
      if (await countFactors(user_id) > 0) return 'a factor of the thief has survived'
      if (password !== NO_PASSWORD || epoch !== 1) return 'the password or a session has survived'
    }
  }
})

await play('the link of an undo is good once', { least: 3, outcomes: ['one', 'two'] }, async () => {
  const user_id = await reset()
  const { undo } = await addFirst(user_id)
  return {
    actors: { one: async () => await accounts.undo(undo), two: async () => await accounts.undo(undo) },
    async check () {
      if ((await read(user_id)).epoch !== 1) return 'undone twice'
    }
  }
})

await play('a factor whose enrolment began in a stolen session is never named after a reset', { least: 5, outcomes: ['reset', 'reset, thief'] }, async () => {
  const user_id = await reset()
  const ids = await prepare(user_id)
  const token = await tickets.issue({ purpose: 'reset', user_id, user_epoch: 0, address: ACCOUNT, mailed: true })
  return {
    actors: { reset: async () => await accounts.setPassword(token, 'new'), thief: async () => await mailing.addFactor({ user_id, epoch: 0, proofs: PASSWORD }, ids) },
    async check ({ done }) {
      const { epoch, ways: named } = await read(user_id)
      if (epoch !== 1) return 'a session has survived'
      if (done.includes('thief') !== (named !== undefined)) return 'named by a refused enrolment'
      // One that came first is removed by its link.
      if (named !== undefined) await settleMails({ events, accounts: mailing })
      const undo = mailed.pop()
      if (named !== undefined && (undo === undefined || !await accounts.undo(undo).then(() => true, () => false))) return 'it cannot be undone'
    }
  }
})

await play('of two removals of the last factor one wins, and the codes go', { least: 4, outcomes: ['one', 'two'] }, async () => {
  const user_id = await reset()
  const { id } = await addFirst(user_id)
  const actor = { user_id, epoch: 0 }
  return {
    actors: { one: async () => await accounts.removeFactor(actor, id, { isEnd: false }), two: async () => await accounts.removeFactor(actor, id, { isEnd: false }) },
    async check () {
      if ((await read(user_id)).ways !== undefined) return 'something is left'
    }
  }
})

await play('of two first factors at once, one is refused: the password alone adds no second one', { least: 4, outcomes: ['one', 'two'] }, async () => {
  const user_id = await reset()
  const [one, two] = [await prepare(user_id), await prepare(user_id)]
  const actor = { user_id, epoch: 0, proofs: PASSWORD }
  return {
    actors: { one: async () => await mailing.addFactor(actor, one), two: async () => await mailing.addFactor(actor, two) },
    async check () {
      if (await countFactors(user_id) !== 1 || (await read(user_id)).undos?.length !== 1) return 'not one factor with one link'
    }
  }
})

/** A program that has the password, and a session from before the race. */
const THIEF = { isAdmin: false, isUnrestricted: false, epoch: 0, holds: () => false }

/** The actor who has made the last write of the user's record. */
const findLast = (): string | undefined => scheduler.log.findLast(({ collection, method }) => collection === 'users' && ['update', 'delete'].includes(method))?.actor

/** What an owner may do while a thief, who has proved the password, does something that asks for proof. */
const RESCUES: Record<string, (user_id: string, ids: string[]) => Promise<unknown>> = {
  'adds a factor': async (user_id, ids) => await accounts.addFactor({ user_id, epoch: 0, proofs: PASSWORD }, ids),
  'sets a new password': async (user_id) => await users.patch(user_id, { data: { password: 'new' } }, { user_id: 'operator', isAdmin: true }),
  'gets a role that demands a factor': async (user_id) => await demanding.changeUser(user_id, ({ roles }) => ({ set: { roles: { ...roles, ops: true } } }))
}
const demanding = openTestStored({
  store, now, role: 'admin', recorder: createSilentRecorder(store), tokens, endsSessions: () => true, onRemove: async () => {}, onError: (error) => { t.fail(String(error)) }
})
const linking = openAccounts({}, {
  ways: openTestWays({ store, now, recorder: createSilentRecorder(store), tokens, policy: { ...DEFAULT_POLICY, allowsUpstream: () => true }, onError: (error) => { t.fail(String(error)) } })
})

/** Uses the last link. */
const takeAddress = async (user_id: string) => await accounts.verifyAddress(mailed.pop() ?? '', user_id)

/** Proves the password, in a session from before the race. */
async function prove (user_id: string): Promise<Confirmed> {
  return await users.confirm({ ...THIEF, user_id }, { password: 'old' })
}

interface Operation {
  /** Before the race. */
  prepare?: (user_id: string) => Promise<unknown>
  act: (user_id: string) => Promise<unknown>
  /** The rescues that are too late once it has happened. */
  forestalls: (rescue: string) => boolean
  /** After the race, where the owner has helped themself. */
  later?: (user_id: string) => Promise<unknown>
}

async function askForAddress (user_id: string): Promise<void> {
  await mailing.changeAddress(user_id, 'thief@evil.example', 'en', (await prove(user_id)).confirm)
  await settleMails({ events, accounts: mailing })
}

/** What asks for proof. */
const OPERATIONS: Record<string, Operation> = {
  'the account is not deleted': { forestalls: () => true, act: async (user_id) => await accounts.deleteOwn(user_id, await prove(user_id)) },
  'the password is not removed': { forestalls: (rescue) => rescue === 'adds a factor', act: async (user_id) => await linking.removePassword({ user_id, epoch: 0, confirm: (await prove(user_id)).confirm }) },
  'the link of another address is dead': { forestalls: () => false, act: askForAddress, later: takeAddress },
  'the address does not change': { forestalls: () => false, prepare: askForAddress, act: takeAddress }
}

/** Of each of these races. */
const LEAST = 5

for (const [operation, { prepare: begin, act, forestalls, later }] of Object.entries(OPERATIONS)) {
  for (const [rescue, help] of Object.entries(RESCUES)) {
    const outcomes = forestalls(rescue) ? ['owner', 'thief'] : ['owner', 'owner, thief']
    await play(`once the owner ${rescue}, ${operation} by somebody who has proved the password before`, { least: LEAST, outcomes }, async () => {
      const user_id = await reset()
      await ways.add({ user_id, epoch: 0 }, { kind: 'upstream', key: 'corp', upstream: 'corp', material: {} })
      const ids = await prepare(user_id)
      await begin?.(user_id)
      return {
        actors: {
          // The password may be another one by then.
          thief: async () => await act(user_id).catch((error: { code: string }) => { throw error.code === 'ErrParam' ? Object.assign(error, { code: 'ErrUnknown' }) : error }),
          owner: async () => await help(user_id, ids)
        },
        async check ({ done }) {
          if (later !== undefined) return done.includes('owner') && await later(user_id).then(() => true, () => false) ? 'the link has survived' : undefined
          if (done.includes('owner') && done.includes('thief') && findLast() === 'thief') return 'the proof from before has counted'
        }
      }
    })
  }
}

/** The same, where everybody needs a factor. */
const strictWays = openTestWays({
  store, now, recorder: createSilentRecorder(store), tokens, policy: { ...DEFAULT_POLICY, factors: 'required' }, onError: (error) => { t.fail(String(error)) }
})
const strict = openAccounts({}, { ways: strictWays })
const held = createHeldFactors({
  store, now, ways: strictWays, users, people: users.people, notices: createTestNotices(now), removeFactor: strict.removeFactor, openFactors: async () => {}, issueEnrolLink: strict.issueEnrolLink
})

await play('a reset leaves no factor that somebody adds with the password alone, in an old session or in a new one', { least: 5, outcomes: ['admin', 'admin, thief'] }, async () => {
  const user_id = await reset()
  const ids = await prepare(user_id)
  const users = store.collection<UserRecord>('users')
  return {
    actors: {
      admin: async () => await held.reset(user_id, { user_id: 'operator', isAdmin: true }),
      thief: async () => await strict.addFactor({ user_id, epoch: (await users.get(user_id))!.epoch, proofs: PASSWORD }, ids)
    },
    async check () {
      const { ways: named, enrol_ticket } = await read(user_id)
      if (named !== undefined) return 'a factor of the thief has survived'
      if (enrol_ticket === undefined) return 'the next one needs no link'
    }
  }
})

await play('the link of a reset adds one factor, and a later reset ends it', { least: 4, outcomes: ['admin', 'admin, owner'] }, async () => {
  const user_id = await reset()
  const { link: url = '' } = await held.reset(user_id, { user_id: 'operator', isAdmin: true })
  const ids = await prepare(user_id, 1)
  const { enrolment: link } = await strict.inspectEnrolLink(new URL(url).searchParams.get('token')!)
  return {
    actors: {
      owner: async () => await strict.addFactor({ user_id, epoch: 1, proofs: PASSWORD, link }, ids),
      admin: async () => await held.reset(user_id, { user_id: 'operator', isAdmin: true })
    },
    async check () {
      const { ways: named, enrol_ticket } = await read(user_id)
      if (named !== undefined || enrol_ticket === undefined || enrol_ticket === link) return 'the former link has survived'
    }
  }
})
