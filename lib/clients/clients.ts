import type { Client, ClientListQuery, CreateClient, PatchClient } from '../../schemas/client.ts'
import { type Checks, checkFields, checkImage, checkRedirectUris, checkScopes, checkText } from '../checks.ts'
import { showClient } from './show-client.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { type Page, mapBatches, readPage, toStart } from '../lists/cursor.ts'
import { IdentityError, paramError } from '../errors.ts'
import { generateId, randomText } from '../ids.ts'
import { type ClientRecord, type UserRecord, createClientRecord } from '../records.ts'
import type { Actor } from '../roles.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { parseSort } from '../lists/sort.ts'
import { scan } from '../lists/scan.ts'
import type { Change, Filter, Json, ListQuery, Store } from '../store/port.ts'
import type { Tokens } from '../tokens/tokens.ts'

const SORT_KEYS = { created: 'createdAt', modified: 'modifiedAt', name: 'name' }

/** Characters of a client secret (service.md, 8). */
const SECRET_LENGTH = 16

/** Checks of the fields that callers set. A schema field without a check or without a record field does not compile. */
const CHECKS: Checks<Pick<ClientRecord, Exclude<keyof CreateClient['data'], 'userId'>>> = {
  redirectUris: checkRedirectUris,
  scopes: checkScopes,
  name: (text) => checkText('name', text),
  image: checkImage
}

export interface ClientServices {
  store: Store
  now: Clock
  box: SecretBox
  tokens: Tokens
}

function notFound (): IdentityError {
  return new IdentityError('ErrNotFound', 'clientId: no such client')
}

/** An admin may name an owner. Anyone else sees their own clients. */
function toFilter (user: string | undefined, actor: Actor): Filter {
  if (!actor.isAdmin) return { equal: { userId: actor.user_id } }
  return user ? { equal: { userId: user } } : {}
}

function toListQuery (query: ClientListQuery, actor: Actor): ListQuery {
  const sort = parseSort(query.sort, SORT_KEYS, 'name:asc')
  return { filter: toFilter(query.user, actor), sort, ...toStart(query, sort), limit: query.limit ?? 100 }
}

/** Registered clients, by the rules of service.md, sections 2, 3 and 4.1. */
export function createClients ({ store, now, box, tokens }: ClientServices) {
  const clients = store.collection<ClientRecord>('clients')
  const users = store.collection<UserRecord>('users')

  const toClientFor = ({ isAdmin }: Actor) => (record: ClientRecord): Client => showClient(record, isAdmin, box.open)

  /** The record. Throws ErrNotFound, the same for a missing client and, unless the actor is an admin, for somebody else's. */
  async function requireRecord (clientId: string, actor: Actor): Promise<ClientRecord> {
    const record = await clients.get(clientId)
    if (record === null || (!actor.isAdmin && record.userId !== actor.user_id)) throw notFound()
    return record
  }

  async function findOwner (userId: string | undefined, actor: Actor): Promise<string> {
    if (!actor.isAdmin || userId === undefined) return actor.user_id
    if (userId === '') throw paramError('userId', 'must not be empty')
    if (await users.get(userId) === null) throw new IdentityError('USER_NOT_EXIST', 'userId: no such user')
    return userId
  }

  return {
    /**
     * Registers a client (service.md, 4.1, POST /client). `extra` is for bootstrap and the command line.
     * @throws ErrParam, USER_NOT_EXIST
     */
    async create (body: CreateClient, actor: Actor, extra: { id?: string, first_party?: boolean } = {}): Promise<{ clientId: string }> {
      const { data: { userId: owner, ...data }, credentials } = body
      const fields = checkFields(data, CHECKS)
      const userId = await findOwner(owner, actor)
      const time = now()
      const id = extra.id ?? generateId(time)
      await clients.insert(createClientRecord(time, {
        id,
        secret: credentials === true ? box.seal(randomText(SECRET_LENGTH), id) : undefined,
        ...fields,
        userId,
        first_party: extra.first_party || undefined
      }))
      return { clientId: id }
    },

    /** The client as the actor may see it; throws ErrNotFound. */
    async require (clientId: string, actor: Actor): Promise<Client> {
      return toClientFor(actor)(await requireRecord(clientId, actor))
    },

    /**
     * Changes a client (service.md, 4.1, PATCH /client/{clientId}).
     * @throws ErrNotFound, ErrParam
     */
    async patch (clientId: string, body: PatchClient, actor: Actor): Promise<void> {
      const record = await requireRecord(clientId, actor)
      const { data = {}, regen_secret } = body
      const { image, ...fields } = data
      const set: Record<string, Json> = checkFields({ ...fields, ...(image !== null && { image }) }, CHECKS)
      const change: Change = { set }
      if (image === null) change.unset = ['image']
      if (regen_secret === true) {
        if (record.secret === undefined) throw paramError('regen_secret', 'a public client has no secret')
        set.secret = box.seal(randomText(SECRET_LENGTH), clientId)
        change.increment = { epoch: 1 }
      }
      if (Object.keys(set).length === 0 && change.unset === undefined) {
        throw new IdentityError('ErrParam', 'body: must contain a change')
      }
      set.modifiedAt = toTimestamp(now())
      if (await clients.update(clientId, change) === null) throw notFound()
      if (regen_secret === true) await tokens.deleteOfClient(clientId)
    },

    /**
     * Removes a client and its codes and tokens.
     * @throws ErrPerm for the client of the actor's own token, ErrNotFound
     */
    async remove (clientId: string, actor: Actor): Promise<void> {
      if (clientId === actor.client_id) throw new IdentityError('ErrPerm', 'clientId: a client cannot delete itself')
      await requireRecord(clientId, actor)
      if (!await clients.delete(clientId)) throw notFound()
      await tokens.deleteOfClient(clientId)
    },

    /** Removes all of a user's clients, even the client of the caller's own token: the path names them all. */
    async removeOwned (userId: string): Promise<void> {
      for await (const batch of scan(clients, { equal: { userId } })) {
        await Promise.all(batch.map(async ({ id }) => {
          await clients.delete(id)
          await tokens.deleteOfClient(id)
        }))
      }
    },

    async count (user: string | undefined, actor: Actor): Promise<number> {
      return await clients.count(toFilter(user, actor))
    },

    /**
     * Batches of clients as this caller may see them. Everything about the query is checked before the first one.
     * @throws ErrParam for a sort that is not one, and a cursor that is not of this sort
     */
    list (query: ClientListQuery, actor: Actor): AsyncIterable<Client[]> {
      return mapBatches(clients.list(toListQuery(query, actor)), toClientFor(actor))
    },

    /**
     * The same list, with the cursor of its next page where it is one of at most 100.
     * @throws as `list`
     */
    async page (query: ClientListQuery, actor: Actor): Promise<Page<Client>> {
      const { isAdmin } = actor
      return await readPage(clients, toListQuery(query, actor), toClientFor(actor), { renderer: 'clients', options: { isAdmin } })
    }
  }
}

export type Clients = ReturnType<typeof createClients>
