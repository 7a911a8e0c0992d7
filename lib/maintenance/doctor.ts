import { type Clock, toTimestamp } from '../clock.ts'
import { explainFailure } from '../failure.ts'
import { scan } from '../store/scan.ts'
import type { ClientRecord, UserRecord } from '../records.ts'
import { readRegistry } from '../resources/registry.ts'
import { COLLECTIONS } from '../store/collections.ts'
import type { Document, Json, Store } from '../store/port.ts'
import { CLIENT_CREDENTIALS, LINKS } from '../tokens/validity.ts'
import { createCredentials } from '../ways/credentials.ts'
import type { CredentialRecord } from '../way.ts'
import { findKeysOutOfBounds } from './key-bounds.ts'

/** Something that is wrong with a database. */
export interface Finding {
  /** `integrity`, `collections`, `documents`, `references`, `addresses`, `ways`, `scopes` or `keys`. */
  check: string
  /** In one sentence, without the content of a record. */
  message: string
  /** The first ids of the records, if any. */
  ids: string[]
}

/** The ids that a finding names. */
const NAMED = 5

/** Records that are read again at the end: what a running service was just removing is no finding. */
const AGAIN = 1_000

type Stored = Document & Record<string, Json | undefined>

/** The records with one problem: their number, and the first of their ids. */
class Tally {
  count = 0
  ids: string[] = []

  add (id: string): void {
    this.count++
    if (this.ids.length < AGAIN) this.ids.push(id)
  }
}

/** The fields of a live record that refer to a record which does not exist. */
async function findDangling (store: Store, collection: string, links: Record<string, string>, id: string, now: string): Promise<string[]> {
  const found = await store.collection<Stored>(collection).getLinked(id, links)
  if (found === null || (typeof found.document.expired_at === 'string' && found.document.expired_at <= now)) return []
  const { document, linked } = found
  return Object.keys(links).filter((field) => {
    // The owner of a client's own token may be gone; the client counts.
    if (field === 'user_id' && document.kind === CLIENT_CREDENTIALS) return false
    return typeof document[field] === 'string' && document[field] !== '' && linked[field] === null
  })
}

/** Tokens, grants and sessions whose user, client, grant or registry is gone. They are not valid, but something failed to remove them. */
async function * checkReferences (store: Store, now: Clock): AsyncGenerator<Finding> {
  for (const [collection, links] of Object.entries(LINKS)) {
    const tallies = new Map(Object.keys(links).map((field) => [field, new Tally()]))
    for await (const batch of scan(store.collection<Stored>(collection), {})) {
      const dangling = await Promise.all(batch.map(({ id }) => findDangling(store, collection, links, id, toTimestamp(now()))))
      for (const [index, fields] of dangling.entries()) for (const field of fields) tallies.get(field)!.add(batch[index]!.id)
    }
    for (const [field, { count, ids }] of tallies) {
      const kept: string[] = []
      for (const id of ids) if ((await findDangling(store, collection, links, id, toTimestamp(now()))).includes(field)) kept.push(id)
      const rest = count - ids.length + kept.length
      if (rest > 0) yield { check: 'references', message: `${collection}.${field} refers to no record of ${(links as Record<string, string>)[field]}: ${rest}`, ids: kept.slice(0, NAMED) }
    }
  }
}

/**
 * Users that a look-up by their account, one of their addresses or a key of their ways does not find, or finds another user instead; and
 * users with a way whose material is missing, which counts as no way.
 */
async function * checkUsers (store: Store, now: Clock): AsyncGenerator<Finding> {
  const users = store.collection<UserRecord>('users')
  const credentials = createCredentials({ store, now })
  const broken = new Tally()
  const isFound = async (key: string, value: string, id: string) => (await users.getBy(key, value))?.id === id
  const tallies = { account: new Tally(), addresses: new Tally(), way_keys: new Tally(), external_keys: new Tally() }
  for await (const batch of scan(users, {})) {
    await Promise.all(batch.map(async (user) => {
      const { id, account } = user
      // Deleted, or changed, since the batch was read.
      const changed = async () => (await users.get(id))?.account !== account
      if (!await isFound('account', account, id) && !await changed()) tallies.account.add(id)
      for (const field of ['addresses', 'way_keys', 'external_keys'] as const) {
        for (const item of user[field] ?? []) {
          if (!await isFound(field, item, id) && (await users.get(id))?.[field]?.includes(item) === true) tallies[field].add(id)
        }
      }
      for (const way of Object.keys(user.ways ?? {})) {
        if (await credentials.find(user, way) === null && (await users.get(id))?.ways?.[way] !== undefined) broken.add(id)
      }
    }))
  }
  for (const [field, { count, ids }] of Object.entries(tallies)) {
    const check = field === 'way_keys' ? 'ways' : 'addresses'
    if (count > 0) yield { check, message: `users who are not found by their ${field}: ${count}`, ids: ids.slice(0, NAMED) }
  }
  const { count, ids } = broken
  if (count > 0) yield { check: 'ways', message: `ways of users whose material is missing: ${count}`, ids: [...new Set(ids)].slice(0, NAMED) }
}

/** Material of users who are gone. Nobody can sign in with it, but something failed to remove it. */
async function * checkCredentials (store: Store): AsyncGenerator<Finding> {
  const users = store.collection<UserRecord>('users')
  const tally = new Tally()
  for await (const batch of scan(store.collection<CredentialRecord>('credentials'), {})) {
    await Promise.all(batch.map(async ({ id, user_id }) => { if (await users.get(user_id) === null) tally.add(id) }))
  }
  const kept: string[] = []
  for (const id of tally.ids) if (await store.collection('credentials').get(id) !== null) kept.push(id)
  const rest = tally.count - tally.ids.length + kept.length
  if (rest > 0) yield { check: 'references', message: `credentials.user_id refers to no record of users: ${rest}`, ids: kept.slice(0, NAMED) }
}

/** Clients with a scope of a resource that is gone. Such a scope has no effect. */
async function * checkScopes (store: Store): AsyncGenerator<Finding> {
  const clients = store.collection<ClientRecord>('clients')
  const isDangling = (registry: Awaited<ReturnType<typeof readRegistry>>, { declared = {} }: ClientRecord) => (
    Object.values(declared).some((resource) => !Object.hasOwn(registry.resources, resource)))
  const registry = await readRegistry(store)
  const tally = new Tally()
  for await (const batch of scan(clients, {})) for (const client of batch) if (isDangling(registry, client)) tally.add(client.id)
  const later = await readRegistry(store)
  const kept: string[] = []
  for (const id of tally.ids) {
    const client = await clients.get(id)
    if (client !== null && isDangling(later, client)) kept.push(id)
  }
  const rest = tally.count - tally.ids.length + kept.length
  if (rest > 0) yield { check: 'scopes', message: `clients with a scope of a resource that does not exist: ${rest}`, ids: kept.slice(0, NAMED) }
}

async function * checkKeys (store: Store): AsyncGenerator<Finding> {
  for await (const { what, ids } of findKeysOutOfBounds(store)) {
    if (ids.length > 0) yield { check: 'keys', message: `${what} with a public key out of bounds, which verifies nothing: ${ids.length}`, ids: ids.slice(0, NAMED) }
  }
}

/** Reads every document of the collections that the other checks do not read. */
async function * checkDocuments (store: Store): AsyncGenerator<Finding> {
  const read = [...Object.keys(LINKS), 'users', 'clients', 'credentials']
  for (const { name } of COLLECTIONS) {
    if (read.includes(name)) continue
    const batches = scan(store.collection(name), {})
    yield * guard(name, async function * () { while ((await batches.next()).done !== true); })
  }
}

/** Turns the failure of a check into a finding. */
async function * guard (what: string, check: () => AsyncIterable<Finding>): AsyncGenerator<Finding> {
  try {
    yield * check()
  } catch (error) {
    yield { check: 'documents', message: `${what}: cannot be read: ${explainFailure(error)}`, ids: [] }
  }
}

/**
 * Checks the records of an open store and the references between them. It reads every document once, in constant memory, and changes
 * nothing. A service may run meanwhile.
 */
export async function * examine (store: Store, now: Clock): AsyncGenerator<Finding> {
  yield * guard('tokens and sessions', () => checkReferences(store, now))
  yield * guard('users', () => checkUsers(store, now))
  yield * guard('credentials', () => checkCredentials(store))
  yield * guard('clients', () => checkScopes(store))
  yield * guard('keys of clients', () => checkKeys(store))
  yield * checkDocuments(store)
}
