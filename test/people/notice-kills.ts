import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Test } from 'tap'
import { createSecretBox } from '../../lib/crypto/secrets.ts'
import type { Services } from '../../lib/identity.ts'
import type { DeliveryRecord } from '../../lib/mail/delivery.ts'
import { prepareRestored } from '../../lib/maintenance/copies.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Store } from '../../lib/store/port.ts'
import { empty, openProcesses } from '../helpers/mail-processes.ts'
import { settleMails } from '../helpers/mails.ts'
import { wrapStore } from '../helpers/wrap-store.ts'

export const ADMIN = { user_id: 'admin', isAdmin: true }
const STAFF = { user_id: 'staff', isAdmin: false, isSupport: true }
export const OLD = 'ann@example.com'
export const NEW = 'new@example.com'

/** Later than all leases of a killed process. */
export const LATER = 30 * 60_000

/** A change, and the mails that it causes. */
interface Scene {
  /** What was before the change. It resolves to the token of the link that the change uses. */
  prepare?: (services: Services, user_id: string, takeToken: () => Promise<string>) => Promise<string>
  act: (services: Services, user_id: string, token: string) => Promise<unknown>
  isDone: (user: UserRecord | null, store: Store) => boolean | Promise<boolean>
  mails: string[]
  /** What another process does after the kill, before anything is published, and its mails. */
  later?: { act: (services: Services, user_id: string) => Promise<unknown>, mails: string[] }
}

const startMove: NonNullable<Scene['prepare']> = async ({ accounts }, user_id, takeToken) => {
  await accounts.changeAddress(user_id, NEW)
  return await takeToken()
}

const isNew = (user: UserRecord | null): boolean => user?.epoch === 1

export const SCENES: Record<string, Scene> = {
  'a password and an address of an administrator': {
    act: async ({ users }, user_id) => await users.patch(user_id, { data: { password: 'another', email: NEW } }, ADMIN),
    isDone: isNew,
    mails: [`${OLD}: your password was changed`, `${OLD}: your email address was replaced`]
  },
  'a deletion by its owner': {
    act: async ({ accounts }, user_id) => await accounts.deleteOwn(user_id),
    isDone: (user) => user === null,
    mails: [`${OLD}: your account was deleted`]
  },
  'a password, whose account another process deletes after the kill': {
    act: async ({ users }, user_id) => await users.patchOwn(user_id, { data: { password: 'another', current_password: 'first' } }),
    isDone: isNew,
    mails: [`${OLD}: your password was changed`],
    later: { act: async ({ accounts }, user_id) => await accounts.deleteOwn(user_id), mails: [`${OLD}: your account was deleted`] }
  },
  'a change of the address': {
    prepare: startMove,
    act: async ({ accounts }, user_id, token) => await accounts.verifyAddress(token, user_id),
    isDone: (user) => user?.undos?.length === 1,
    mails: [`${OLD}: your email address was changed`]
  },
  'an undo of that': {
    async prepare (services, user_id, takeToken) {
      await services.accounts.verifyAddress(await startMove(services, user_id, takeToken), user_id)
      return await takeToken()
    },
    act: async ({ accounts }, _user_id, token) => await accounts.undo(token),
    isDone: isNew,
    mails: [`${OLD}: recent changes were undone`, `${NEW}: a change of email address was undone`]
  },
  'an unlock by support staff': {
    act: async ({ users }, user_id) => await users.unlock(user_id, STAFF),
    isDone: (user) => user?.support_unlocks?.length === 1,
    mails: [`${OLD}: your account was unlocked`]
  },
  'an invitation': {
    act: async ({ accounts }) => await accounts.inviteUser({ account: NEW }, ADMIN),
    isDone: async (_user, store) => await store.collection('users').getBy('account', NEW) !== null,
    mails: [`${NEW}: you’re invited`]
  }
}

/** What a kill is followed by. */
export interface Mode {
  /** Who publishes: another process with a mail server, or one without, beside one that sends. */
  publisher: 'sender' | 'other'
  /** The queue of mails is full, for every process. */
  isFull?: boolean
  /** A folder for copies. The database of the kill is restored from a backup, and an operator retries what has failed. */
  restoreIn?: string
  /** Kills at every so many writes, from `first` on. 1 and 0 by default. */
  every?: number
  first?: number
}

export interface KillReport {
  /** Kills before and after the decision. */
  undecided: number
  decided: number
  problems: string[]
}

const listDeliveries = async (store: Store) => (await Array.fromAsync(store.collection<DeliveryRecord>('deliveries').stream())).flat()

/** Restores a backup of this moment, and has an operator retry what failed. @returns the mails, and those whose link the restore has ended */
async function restore ({ teardown }: Pick<Test, 'teardown'>, database: string, directory: string): Promise<{ early: string[], sent: string[], ended: number }> {
  const path = join(directory, `${randomUUID()}.db`)
  const source = new DatabaseSync(database.replace('sqlite:', ''))
  source.exec(`VACUUM INTO '${path}'`)
  source.close()
  prepareRestored(path, path, createSecretBox(Buffer.alloc(32, 7)).keyIds)
  const store = await openStore(`sqlite:${path}`, { collections: COLLECTIONS, now: Date.now })
  const { openOne, listSent } = openProcesses({ teardown }, store)
  const services = await openOne({ mail: true, skew: 2 * LATER })
  await settleMails(services)
  const early = [...listSent().keys()]
  let ended = 0
  for (const { id } of (await listDeliveries(store)).filter(({ state }) => state === 'failed')) {
    await services.accounts.retryMail(id).catch((error: unknown) => {
      if (!/has ended its link/.test(String(error))) throw error
      ended++
    })
  }
  await services.accounts.outbox!.flush()
  await services.close()
  await store.close()
  return { early, sent: [...listSent().keys()], ended }
}

/**
 * Kills a process at its writes from the decision to the sent mail, one after another, each in a database of its own, and lets others go on.
 * Each change has its mail, once but for a copy of what was in flight, and no other mail is sent. Each mail has one event.
 */
export async function killEach (
  t: Pick<Test, 'teardown'>, { store: inner, database }: { store: Store, database: string }, name: string, { publisher, isFull = false, restoreIn, every = 1, first = 0 }: Mode
): Promise<KillReport> {
  const { prepare, act, isDone, mails, later } = SCENES[name]!
  let isFilled = false
  const store = wrapStore(inner, ({ collection, method }, run) => isFilled && collection === 'deliveries' && method === 'count' ? Promise.resolve(10_000) : run())
  const { open, openOne, openMortal, sent, listSent } = openProcesses(t, store)
  const [maker, sender] = [await open({ mail: true }), await open({ mail: true, skew: LATER })]
  const report: KillReport = { undecided: 0, decided: 0, problems: [] }
  const publish = async () => {
    const { events, close } = await openOne({ mail: publisher === 'sender', skew: LATER })
    await events.flush()
    await close()
  }
  const takeToken = async () => {
    // The killed process of the turn before may have the right to publish.
    await publish()
    await maker.accounts.outbox!.flush()
    return /token=([\w-]+)/.exec(sent.pop()!.text)![1]!
  }
  /** The mails that have an event `mail.sent`, once for each event. */
  const listTold = async () => (await Array.fromAsync(maker.events.list({ type: 'mail.sent' }))).flat().map(({ target }) => target.id)
  let isKilled = true
  for (let write = first; isKilled; write += every) {
    const complain = (what: string) => report.problems.push(`${name}, killed at write ${write}: ${what}`)
    await empty(inner)
    const { user_id } = await maker.users.create({ data: { account: OLD, password: 'first' } })
    isFilled = false
    const token = prepare === undefined ? '' : await prepare(maker, user_id, takeToken)
    await publish()
    const earlier = await listTold()
    await store.collection('deliveries').deleteMany({ before: { id: '~' } })
    sent.length = 0
    isFilled = isFull
    const { services, killAt, bury } = await openMortal()
    const end = async () => {
      await act(services, user_id, token)
      await settleMails(services)
      return false
    }
    isKilled = await Promise.race([killAt(write).then(() => true), end()])
    const isChanged = await isDone(await inner.collection<UserRecord>('users').get(user_id), inner)
    report[isChanged ? 'decided' : 'undecided']++
    if (restoreIn !== undefined) {
      const before = [...listSent().keys()]
      const { early, sent: retried, ended } = await restore(t, database, restoreIn)
      if (early.length > 0) complain(`the restored copy sends ${String(early)}`)
      const all = new Set([...before, ...retried])
      const expected = isChanged ? mails : []
      if ([...all].some((mail) => !expected.includes(mail)) || all.size + ended < expected.length) complain(`${String([...all])}, and ${ended} whose link has ended`)
      await bury()
      continue
    }
    await later?.act(maker, user_id)
    await publish()
    await sender.accounts.outbox!.flush()
    const found = listSent()
    const expected = [...isChanged ? mails : [], ...later?.mails ?? []]
    if ([...found.keys()].sort().join() !== expected.sort().join()) complain(`sent ${[...found.keys()].join(', ')}`)
    for (const [what, copies] of found) {
      if (copies.length > 2 || new Set(copies.map(({ id }) => id)).size > 1) complain(`${what}: ${copies.length} copies`)
    }
    await publish()
    const told = (await listTold()).filter((id) => !earlier.includes(id)).sort()
    const taken = [...new Set(sent.map(({ id }) => id.slice(1, id.indexOf('@'))))].sort()
    if (told.join() !== taken.join()) complain(`events of the mails ${told.join(', ')} for ${taken.join(', ')}`)
    const rest = (await listDeliveries(inner)).filter(({ state }) => state !== 'done')
    if (rest.length > 0) complain(`left ${rest.map(({ kind, state }) => `${kind} ${state}`).join(', ')}`)
    await bury()
  }
  return report
}
