import type { Base } from '../base.ts'
import { ENDED_BY_EPOCH, PURPOSES, type Purpose, type TicketRecord } from '../tickets/tickets.ts'
import { toTimestamp } from '../clock.ts'
import { showClientTo } from '../clients/show-client.ts'
import { IdentityError } from '../errors.ts'
import { showEvent } from '../events/feed.ts'
import { showOwnEvents } from '../events/own.ts'
import type { EventRecord } from '../events/types.ts'
import { mapBatches } from '../lists/cursor.ts'
import type { ClientRecord } from '../records/client.ts'
import { type TokenRecord, toUserHolder } from '../records/token.ts'
import type { UserRecord } from '../records/user.ts'
import { readRegistry } from '../resources/registry.ts'
import type { OwnPart } from '../store/collections.ts'
import type { Filter } from '../store/port.ts'
import { scan } from '../store/scan.ts'
import type { Counter } from '../throttling/counter.ts'
import type { CredentialUses, Use } from '../tokens/uses.ts'
import { PERSONAL, type PersonalRule, SERVICE, checkValidity } from '../tokens/validity.ts'
import type { OwnSessions } from '../sessions/own-sessions.ts'
import { userNotFound } from '../user-changes/user-changes.ts'
import type { WayService } from '../ways/ways.ts'
import { type Content, writeDocument } from './write-document.ts'
import { showAddresses, showIdentities, showOwnProfile, showWays } from './own-profile.ts'

const HOUR = 60 * 60 * 1000

/** The person had their data within the last hour. */
export class OwnDataLimit extends IdentityError {
  /** Until they can have it again. */
  readonly minutes: number

  constructor (milliseconds: number) {
    const seconds = Math.max(1, Math.ceil(milliseconds / 1000))
    super('ErrLimit', `the data can be exported once an hour, try again in ${seconds} s`, { headers: { 'retry-after': String(seconds) } })
    this.minutes = Math.ceil(seconds / 60)
  }
}

async function * once (read: () => Promise<object[]> | object[]): AsyncGenerator<object[]> {
  const found = await read()
  if (found.length > 0) yield found
}

function showToken ({ client_id, kind, name, scopes, resource, created_at, expired_at }: TokenRecord, used: Use | undefined): object {
  return {
    client_id,
    service: kind === SERVICE ? true : undefined,
    personal: kind === PERSONAL ? true : undefined,
    name,
    scopes,
    resource,
    created_at,
    expires_at: expired_at,
    last_used_at: used?.time,
    last_used_from: used?.from
  }
}

/** Personal access tokens are in as they are stored, also where the settings refuse them. Their client is in no store. */
const showStored: PersonalRule = (found) => ({ ...found, document: { ...found.document, client_id: undefined } })

interface OwnDataParts extends Base {
  ways: Pick<WayService, 'list'>
  ownSessions: Pick<OwnSessions, 'readBrowsers' | 'readTokenSessions'>
  /** Of personal access tokens. */
  uses: Pick<CredentialUses, 'read'>
  counter: Counter
}

/**
 * A person's own data (GDPR, articles 15 and 20): everything that the service stores about them, without secrets and without the data of
 * others. Each declared collection says which parts it is in (lib/store/collections.ts).
 */
export function createOwnData ({ store, now, ways, ownSessions, uses, recorder, counter }: OwnDataParts) {
  const users = store.collection<UserRecord>('users')
  const events = store.collection<EventRecord>('events')

  /**
   * The tokens of the person that belong to no session, those that they have made for programs with the last uses, and the service tokens of
   * their clients, with the name that an administrator has given.
   * Other tokens of clients that act for themselves are not theirs.
   */
  async function * readTokens (user: UserRecord): AsyncGenerator<object[]> {
    const time = toTimestamp(now())
    const clients = store.collection<ClientRecord>('clients')
    const [registry, used] = await Promise.all([readRegistry(store), uses.read(toUserHolder(user.id))])
    for await (const batch of scan(store.collection<TokenRecord>('access_tokens'), { equal: { user_id: user.id }, absent: ['grant_id'] })) {
      const theirs = batch.filter(({ kind }) => kind === undefined || kind === SERVICE || kind === PERSONAL)
      const found = await Promise.all(theirs.map(async (document) => {
        const linked = { user_id: user, client_id: await clients.get(document.client_id), registry_id: registry }
        return checkValidity({ document, linked }, time, showStored) === null ? undefined : document
      }))
      const shown = found.flatMap((record) => record === undefined ? [] : [showToken(record, used[record.id])])
      if (shown.length > 0) yield shown
    }
  }

  /** The links that can still be used: what for, and never the links themselves. */
  async function * readLinks ({ id: user_id, epoch }: UserRecord): AsyncGenerator<object[]> {
    const time = toTimestamp(now())
    const isLive = ({ expired_at, purpose, user_epoch }: TicketRecord) => expired_at > time && (!ENDED_BY_EPOCH.includes(purpose) || user_epoch === epoch)
    for (const purpose of Object.keys(PURPOSES) as Purpose[]) {
      const found = scan(store.collection<TicketRecord>('tickets'), { equal: { holder: `${purpose} ${user_id}` } }, { key: 'created_at' })
      yield * filterBatches(found, isLive, ({ address, mailed, client_id, created_at, expired_at }) => ({
        purpose, mailed, address, client_id, created_at, expires_at: expired_at
      }))
    }
  }

  /** Events in the form that the account pages show: without the addresses, clients and ids of administrators. */
  async function * readEvents (equal: Filter['equal']): AsyncGenerator<object[]> {
    for await (const batch of scan(events, { equal }, { key: 'key' })) {
      const shown = await showOwnEvents(store, batch.map((record) => showEvent(record, '')))
      yield shown.map((event, index) => ({ id: batch[index]!.key, ...event }))
    }
  }

  function list (user: UserRecord): Record<OwnPart, Content> {
    const { id } = user
    const held = async () => await ways.list(user)
    const showClient = showClientTo({ isAdmin: false, secrets: 'none', user_id: id }, () => '')
    return {
      profile: { record: showOwnProfile(user) },
      addresses: { batches: once(() => showAddresses(user, now())) },
      ways: { batches: once(async () => showWays(user, await held())) },
      identities: { batches: once(async () => showIdentities(await held())) },
      browsers: { batches: ownSessions.readBrowsers(id) },
      apps: { batches: ownSessions.readTokenSessions(id) },
      tokens: { batches: readTokens(user) },
      clients: { batches: mapBatches(scan(store.collection<ClientRecord>('clients'), { equal: { userId: id } }, { key: 'createdAt' }), showClient) },
      links: { batches: readLinks(user) },
      events: { batches: readEvents({ user: id }) },
      client_events: { batches: readEvents({ owner: id }) }
    }
  }

  /** @throws OwnDataLimit */
  async function limit (user_id: string): Promise<void> {
    const { current, ttl } = await counter.count('export', user_id, HOUR)
    if (current > 1) throw new OwnDataLimit(ttl)
  }

  return {
    /**
     * Writes the data of a person, after the proof that the caller has asked for. Nothing is read ahead, so that memory stays constant.
     * @param options.isLimited false for an operator. Otherwise a person gets their data once an hour
     * @returns the pieces of one JSON document
     * @throws ErrNotFound, ErrLimit
     */
    async read (user_id: string, { isLimited = true } = {}): Promise<AsyncIterable<string>> {
      const user = await users.get(user_id)
      if (user === null) throw userNotFound()
      if (isLimited) await limit(user_id)
      await recorder.insert({ type: 'user.exported', id: user_id })
      return writeDocument({ format: 'fastify-identity/own-data/1', exported_at: toTimestamp(now()) }, Object.entries(list(user)))
    }
  }
}

export type OwnData = ReturnType<typeof createOwnData>

/** Batches of those records that `isIn` takes, each as it is shown. No batch is empty. */
async function * filterBatches<T> (batches: AsyncIterable<T[]>, isIn: (record: T) => boolean, show: (record: T) => object): AsyncGenerator<object[]> {
  for await (const batch of batches) {
    const found = batch.filter(isIn).map(show)
    if (found.length > 0) yield found
  }
}
