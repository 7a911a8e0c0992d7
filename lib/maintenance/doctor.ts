import { type Clock, toTimestamp } from '../clock.ts'
import { explainFailure } from '../failure.ts'
import { scan } from '../store/scan.ts'
import type { ClientRecord } from '../records/client.ts'
import type { UserRecord } from '../records/user.ts'
import { readRegistry } from '../resources/registry.ts'
import { COLLECTIONS } from '../store/collections.ts'
import { BATCH_SIZE, type Collection, type Document, type Json, type Store } from '../store/port.ts'
import { defined } from '../defined.ts'
import { LINKS, PERSONAL, isOfClient } from '../tokens/validity.ts'
import type { CredentialRecord } from '../way.ts'
import { findKeysOutOfBounds } from './key-bounds.ts'

/** Something that is wrong with a database. */
export interface Finding {
  /**
   * `integrity`, `layout`, `collections`, `documents`, `references`, `addresses`, `ways`, `scopes` or `keys`; `remains` is no fault: a
   * running service removes it.
   */
  check: string
  /** In one sentence, without the content of a record. */
  message: string
  /** The first ids of the records, if any. */
  ids: string[]
}

export interface ExamineOptions {
  now: Clock
  /** Ends the examination between two batches. */
  signal?: AbortSignal | undefined
  onProgress?: ((progress: { step: string, collection: string, documents: number }) => void) | undefined
}

/** The ids that a finding names. */
const NAMED = 5

/** Records that are read again at the end: what a running service was just removing is no finding. */
const AGAIN = 1_000

/** Ids of one collection that are known to exist. Many records refer to few clients. */
const KNOWN = 10_000

type Stored = Document & Record<string, Json | undefined>

/** Whether a field of a record may name what does not exist: the owner of a client's own token may be gone, and the client of a personal one is built in. */
const isLoose = (field: string, kind: string | undefined): boolean =>
  (field === 'user_id' && isOfClient(defined({ kind }))) || (field === 'client_id' && kind === PERSONAL)

/** The records with one problem: their number, and the first of their ids. */
class Tally {
  count = 0
  ids: string[] = []

  add (id: string): void {
    this.count++
    if (this.ids.length < AGAIN) this.ids.push(id)
  }
}

/** Cuts a list into parts that `getMany` takes. */
function * chunk<T> (items: readonly T[]): Generator<T[]> {
  for (let start = 0; start < items.length; start += BATCH_SIZE) yield items.slice(start, start + BATCH_SIZE)
}

async function readAll<T extends Document> (collection: Collection<T>, key: string, values: Iterable<string>): Promise<T[]> {
  const parts: T[][] = []
  for (const part of chunk([...new Set(values)])) parts.push(await collection.getMany(key, part))
  return parts.flat()
}

/** The records of an open store, read in batches, with the progress. */
class Examination {
  readonly #store: Store
  readonly #options: ExamineOptions

  constructor (store: Store, options: ExamineOptions) {
    this.#store = store
    this.#options = options
  }

  async * #scan<T extends Document> (name: string): AsyncGenerator<T[]> {
    const { signal, onProgress } = this.#options
    let documents = 0
    for await (const batch of scan(this.#store.collection<T>(name), {})) {
      signal?.throwIfAborted()
      yield batch
      onProgress?.({ step: 'check', collection: name, documents: documents += batch.length })
    }
  }

  /** Tells which of the ids exist. It remembers some of them. */
  #createLookup (name: string): (ids: Iterable<string>) => Promise<ReadonlySet<string>> {
    const known = new Set<string>()
    return async (ids) => {
      const unknown = [...new Set(ids)].filter((id) => !known.has(id))
      if (known.size > KNOWN) known.clear()
      const found = new Set<string>()
      for (const { id } of await readAll(this.#store.collection(name), 'id', unknown)) {
        found.add(id)
        known.add(id)
      }
      for (const id of ids) if (known.has(id)) found.add(id)
      return found
    }
  }

  /** Tokens, grants and sessions whose user, client, grant or registry is gone. They are not valid, but something failed to remove them. */
  async * references (): AsyncGenerator<Finding> {
    for (const [name, links] of Object.entries(LINKS) as [string, Record<string, string>][]) {
      const lookups = Object.entries(links).map(([field, target]) => ({ field, find: this.#createLookup(target) }))
      const tallies = new Map(Object.keys(links).map((field) => [field, new Tally()]))
      for await (const batch of this.#scan<Stored>(name)) for (const { field, id } of await this.#findDangling(batch, lookups)) tallies.get(field)!.add(id)
      for (const [field, { count, ids }] of tallies) {
        const kept: string[] = []
        const again = Object.entries(links).filter(([one]) => one === field).map(([field, target]) => ({ field, find: this.#createLookup(target) }))
        for (const part of chunk(ids)) {
          const still = await this.#store.collection<Stored>(name).getMany('id', part)
          kept.push(...(await this.#findDangling(still, again)).map(({ id }) => id))
        }
        const rest = count - ids.length + kept.length
        if (rest > 0) yield { check: 'references', message: `${name}.${field} refers to no record of ${links[field]}: ${rest}`, ids: kept.slice(0, NAMED) }
      }
    }
  }

  /** The fields of live records that refer to a record which does not exist. */
  async #findDangling (
    batch: readonly Stored[], lookups: readonly { field: string, find: (ids: Iterable<string>) => Promise<ReadonlySet<string>> }[]
  ): Promise<{ id: string, field: string }[]> {
    const now = toTimestamp(this.#options.now())
    const live = batch.filter(({ expired_at }) => !(typeof expired_at === 'string' && expired_at <= now))
    const found = await Promise.all(lookups.map(async ({ field, find }) => {
      const referring = live.filter(({ [field]: value, kind }) => typeof value === 'string' && value !== '' && !isLoose(field, kind as string | undefined))
      const existing = await find(referring.map((record) => record[field] as string))
      return referring.filter((record) => !existing.has(record[field] as string)).map(({ id }) => ({ id, field }))
    }))
    return found.flat()
  }

  /**
   * Users that a look-up by their account, one of their addresses or a key of their ways does not find, or finds another user instead; and
   * users with a way whose material is missing, which counts as no way.
   */
  async * users (): AsyncGenerator<Finding> {
    const tallies = { account: new Tally(), addresses: new Tally(), way_keys: new Tally(), external_keys: new Tally() }
    const broken = new Tally()
    for await (const batch of this.#scan<UserRecord>('users')) {
      for (const field of ['account', 'addresses', 'way_keys', 'external_keys'] as const) {
        for (const id of await this.#findUnfound(batch, field)) tallies[field].add(id)
      }
      for (const id of await this.#findBroken(batch)) broken.add(id)
    }
    for (const [field, { count, ids }] of Object.entries(tallies)) {
      const check = field === 'way_keys' ? 'ways' : 'addresses'
      if (count > 0) yield { check, message: `users who are not found by their ${field}: ${count}`, ids: ids.slice(0, NAMED) }
    }
    const { count, ids } = broken
    if (count > 0) yield { check: 'ways', message: `ways of users whose material is missing: ${count}`, ids: [...new Set(ids)].slice(0, NAMED) }
  }

  /** The ids of users whom a look-up by this field does not find, once for each value. */
  async #findUnfound (batch: readonly UserRecord[], field: 'account' | 'addresses' | 'way_keys' | 'external_keys'): Promise<string[]> {
    const users = this.#store.collection<UserRecord>('users')
    const list = (user: UserRecord): readonly string[] => field === 'account' ? [user.account] : user[field] ?? []
    const ids = new Map<string, string>()
    for (const user of await readAll(users, field, batch.flatMap(list))) for (const value of list(user)) ids.set(value, user.id)
    const unfound: string[] = []
    for (const user of batch) {
      for (const value of list(user)) {
        if (ids.get(value) === user.id) continue
        // Deleted, or changed, since the batch was read.
        const later = await users.get(user.id)
        if (later !== null && list(later).includes(value)) unfound.push(user.id)
      }
    }
    return unfound
  }

  /** The ids of users with a way without material, once for each way. */
  async #findBroken (batch: readonly UserRecord[]): Promise<string[]> {
    const users = this.#store.collection<UserRecord>('users')
    const named = batch.flatMap(({ id, ways = {} }) => Object.entries(ways).map(([way, { kind }]) => ({ id, way, kind })))
    const found = new Map((await readAll(
      this.#store.collection<CredentialRecord>('credentials'), 'id', named.map(({ way }) => way)
    )).map((record) => [record.id, record]))
    const broken: string[] = []
    for (const { id, way, kind } of named) {
      const record = found.get(way)
      if (record?.user_id === id && record.way.kind === kind) continue
      if ((await users.get(id))?.ways?.[way] !== undefined) broken.push(id)
    }
    return broken
  }

  /** Material of users who are gone, or were never written. Nobody can sign in with it, and a running service removes it. */
  async * credentials (): AsyncGenerator<Finding> {
    const find = this.#createLookup('users')
    const tally = new Tally()
    for await (const batch of this.#scan<CredentialRecord>('credentials')) {
      const owners = await find(batch.map(({ user_id }) => user_id))
      for (const { id, user_id } of batch) if (!owners.has(user_id)) tally.add(id)
    }
    const kept = (await readAll(this.#store.collection('credentials'), 'id', tally.ids)).map(({ id }) => id)
    const rest = tally.count - tally.ids.length + kept.length
    if (rest > 0) {
      yield {
        check: 'remains',
        message: `credentials of users whose import or deletion was interrupted, which a running service removes within about a day: ${rest}`,
        ids: kept.sort().slice(0, NAMED)
      }
    }
  }

  /** Clients with a scope of a resource that is gone. Such a scope has no effect. */
  async * scopes (): AsyncGenerator<Finding> {
    const isDangling = (registry: Awaited<ReturnType<typeof readRegistry>>, { declared = {} }: ClientRecord) => (
      Object.values(declared).some((resource) => !Object.hasOwn(registry.resources, resource)))
    const registry = await readRegistry(this.#store)
    const tally = new Tally()
    for await (const batch of this.#scan<ClientRecord>('clients')) for (const client of batch) if (isDangling(registry, client)) tally.add(client.id)
    const later = await readRegistry(this.#store)
    const kept = (await readAll(
      this.#store.collection<ClientRecord>('clients'), 'id', tally.ids
    )).filter((client) => isDangling(later, client)).map(({ id }) => id)
    const rest = tally.count - tally.ids.length + kept.length
    if (rest > 0) yield { check: 'scopes', message: `clients with a scope of a resource that does not exist: ${rest}`, ids: kept.slice(0, NAMED) }
  }

  /** Reads every document of the collections that the other checks do not read. */
  async * documents (): AsyncGenerator<Finding> {
    const read = [...Object.keys(LINKS), 'users', 'clients', 'credentials']
    for (const { name } of COLLECTIONS) {
      if (read.includes(name)) continue
      const batches = this.#scan(name)
      yield * this.guard(name, async function * () { while ((await batches.next()).done !== true); })
    }
  }

  /** Turns the failure of a check into a finding. */
  async * guard (what: string, check: () => AsyncIterable<Finding>): AsyncGenerator<Finding> {
    try {
      yield * check()
    } catch (error) {
      this.#options.signal?.throwIfAborted()
      yield { check: 'documents', message: `${what}: cannot be read: ${explainFailure(error)}`, ids: [] }
    }
  }
}

async function * checkKeys (store: Store): AsyncGenerator<Finding> {
  for await (const { what, ids } of findKeysOutOfBounds(store)) {
    if (ids.length > 0) {
      yield { check: 'keys', message: `${what} with a public key out of bounds, which verifies nothing: ${ids.length}`, ids: ids.slice(0, NAMED) }
    }
  }
}

/**
 * Checks the records of an open store and the references between them. It reads every document once, in batches and constant memory,
 * and changes nothing. A service may run meanwhile.
 */
export async function * examine (store: Store, options: ExamineOptions): AsyncGenerator<Finding> {
  const examination = new Examination(store, options)
  yield * examination.guard('tokens and sessions', () => examination.references())
  yield * examination.guard('users', () => examination.users())
  yield * examination.guard('credentials', () => examination.credentials())
  yield * examination.guard('clients', () => examination.scopes())
  yield * examination.guard('keys of clients', () => checkKeys(store))
  yield * examination.documents()
}
