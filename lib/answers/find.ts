import type { FindHit } from '../../schemas/answers.ts'
import type { Base } from '../base.ts'
import type { SignInSessionRecord } from '../browsers/record.ts'
import { toTimestamp } from '../clock.ts'
import { isOwnedBy } from '../clients/owner.ts'
import { defined } from '../defined.ts'
import { IdentityError, paramError } from '../errors.ts'
import type { EventRecord } from '../events/types.ts'
import { readFirst, readSome } from '../lists/first.ts'
import { createReads } from '../lists/reads.ts'
import type { ClientRecord } from '../records/client.ts'
import type { GrantRecord } from '../records/token.ts'
import type { UserRecord } from '../records/user.ts'
import type { Actor } from '../roles.ts'
import { BATCH_SIZE, type Collection, type Document, type Filter } from '../store/port.ts'
import { readShared } from '../store/shared.ts'
import { findAllByName } from '../users/addresses.ts'
import type { People } from '../users/people.ts'
import { SEARCH_LENGTH, listSearchWords } from '../words.ts'

/** Hits of an answer. */
const MOST = 20

/** Of these, what clients have at least, where people would take all. */
const CLIENTS = 5

/** Characters of an id. A longer text is none. */
const ID_LENGTH = 128

/** What the caller may see beside people: by the rows of the operations that list it. */
export interface MayFind {
  clients: boolean
  sessions: boolean
  events: boolean
}

interface FindParts extends Pick<Base, 'now' | 'store'> {
  people: Pick<People, 'checkMayHelp'>
}

const nameUser = ({ name, account }: UserRecord): string => name === '' ? account : `${name} (${account})`

const showUser = (user: UserRecord): FindHit => ({ kind: 'user', id: user.id, user_id: user.id, label: nameUser(user) })

const showClient = ({ id, name, userId }: ClientRecord): FindHit => defined({ kind: 'client' as const, id, user_id: userId, label: name === '' ? id : name })

/** Finds whatever a text names: by an id, an account or an address, and otherwise people and clients by the beginnings of words. */
export function createFind ({ store, now, people }: FindParts) {
  const users = store.collection<UserRecord>('users')
  const clients = store.collection<ClientRecord>('clients')
  const grants = store.collection<GrantRecord>('grants')
  const browsers = store.collection<SignInSessionRecord>('sign_in_sessions')
  const events = store.collection<EventRecord>('events')
  const reads = createReads(store)

  function isReadable (user: UserRecord | null, actor: Actor): user is UserRecord {
    if (user === null) return false
    try {
      people.checkMayHelp(user, actor)
      return true
    } catch (error) {
      if (error instanceof IdentityError) return false
      throw error
    }
  }

  /** Users with this id, account or address, whether or not the address is proved. */
  async function findUsers (text: string): Promise<UserRecord[]> {
    const email = text.toLowerCase()
    const [byId, byName, byAddress] = await Promise.all([
      readShared(users, text),
      findAllByName(users, text),
      readSome(users, { filter: { equal: { email } }, limit: MOST, urgent: true })
    ])
    return [...byId === null ? [] : [byId], ...byName, ...byAddress]
  }

  /** The token session or the browser with this id, if its user may be read. */
  async function findSession (id: string, actor: Actor): Promise<FindHit[]> {
    const [grant, browser] = await Promise.all([
      grants.get(id), readFirst(browsers, { filter: { equal: { uid: id } }, urgent: true })
    ])
    const session = grant ?? browser
    if (!session?.user_id || (session.expired_at !== undefined && session.expired_at <= toTimestamp(now()))) return []
    const user = await readShared(users, session.user_id)
    return isReadable(user, actor) ? [{ kind: 'session', id, user_id: user.id, label: nameUser(user) }] : []
  }

  async function findClient (id: string, actor: Actor): Promise<FindHit[]> {
    const client = await readShared(clients, id)
    return client !== null && (actor.isAdmin || isOwnedBy(client, actor.user_id)) ? [showClient(client)] : []
  }

  async function findEvent (id: string): Promise<FindHit[]> {
    const event = await events.getBy('key', id.toUpperCase())
    if (event?.key === undefined || event.type === undefined) return []
    return [defined({ kind: 'event' as const, id: event.key, user_id: event.user, label: event.type })]
  }

  /** The first page of a search. */
  async function search<T extends Document> (collection: Collection<T>, filter: Filter, key: string, actor: Actor): Promise<T[]> {
    const query = { filter, sort: [{ key, direction: 'asc' as const }], limit: BATCH_SIZE }
    const { batches } = await reads.page(collection, query, (record) => record, { caller: actor })
    return (await Array.fromAsync(batches)).flat()
  }

  /** People and clients by words, as many as have room. */
  async function findByWords (text: string, actor: Actor, may: MayFind): Promise<[people: FindHit[], clients: FindHit[]]> {
    const words = listSearchWords(text)
    if (words.length === 0) return [[], []]
    const begins = { words }
    const [foundUsers, foundClients] = await Promise.all([
      search(users, { begins }, 'account', actor),
      may.clients ? search(clients, { begins, ...(!actor.isAdmin && { equal: { userId: actor.user_id } }) }, 'name', actor) : []
    ])
    return [foundUsers.filter((user) => isReadable(user, actor)).map(showUser), foundClients.map(showClient)]
  }

  /**
   * What a text names: exact hits first, then people and clients by words, at most MOST. Each is one that the actor may read. A hit is no read of
   * a person: nothing is recorded until somebody opens it, and it has no more than account and name.
   * @throws ErrParam for a text that is empty or too long, ErrPerm when the actor has lost the right meanwhile
   */
  return async function find (q: string, actor: Actor, may: MayFind): Promise<FindHit[]> {
    const text = q.trim()
    if (text === '') throw paramError('q', 'is empty')
    if (Array.from(text).length > SEARCH_LENGTH) throw paramError('q', `has more than ${SEARCH_LENGTH} characters`)
    const isId = text.length <= ID_LENGTH
    const [named, ofClient, ofSession, ofEvent, [byWords, clientsByWords]] = await Promise.all([
      findUsers(text),
      may.clients ? findClient(text, actor) : [],
      may.sessions && isId ? findSession(text, actor) : [],
      may.events && isId ? findEvent(text) : [],
      findByWords(text, actor, may)
    ])
    const exact = [...named.filter((user) => isReadable(user, actor)).map(showUser), ...ofClient, ...ofSession, ...ofEvent]
    if (!actor.isAdmin) await actor.confirm?.()
    const room = MOST - Math.min(exact.length, MOST)
    const shown = byWords.slice(0, Math.max(room - Math.min(clientsByWords.length, CLIENTS), 0))
    const all = [...exact, ...shown, ...clientsByWords]
    return [...new Map(all.map((hit) => [`${hit.kind} ${hit.id}`, hit])).values()].slice(0, MOST)
  }
}
