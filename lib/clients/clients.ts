import type { Client, ClientItem, ClientListQuery, CreateClient, PatchClient } from '../../schemas/client.ts'
import { changeRecord, unlessGone } from '../change-record.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Happening } from '../events/types.ts'
import { generateId, randomText } from '../ids.ts'
import type { Page } from '../lists/cursor.ts'
import { createLists } from '../lists/lists.ts'
import { scan } from '../store/scan.ts'
import { type ClientRecord, type UserRecord, createClientRecord } from '../records.ts'
import { readRegistry } from '../resources/registry.ts'
import type { Actor } from '../roles.ts'
import type { Change, Filter, Store } from '../store/port.ts'
import { toClientChange } from './client-fields.ts'
import { parseClientFields } from './columns.ts'
import { isVouchedFor } from './kinds.ts'
import type { CheckClientQuota } from './quota.ts'
import { type ClientView, showClientItemTo, showClientTo } from './show-client.ts'

const SORT_KEYS = { created: 'createdAt', modified: 'modifiedAt', name: 'name' }

/** Characters of a client secret. */
const SECRET_LENGTH = 16

export interface ClientServices {
  store: Store
  now: Clock
  box: SecretBox
  /** Deletes the revoked tokens of a client, without waiting for that. Of the epochs before this one, if it is given. */
  tokens: { deleteOfClient (client_id: string, epoch?: number): void }
  recorder: Recorder
  checkQuota: CheckClientQuota
  /** Checks a URL that the service will call. Throws Error with the reason. */
  checkUrl: (url: string) => string
}

/** A change of a client, and the fields that the caller has set. */
type Decision = Change & { changed: string[] }

function notFound (): IdentityError {
  return new IdentityError('ErrNotFound', 'clientId: no such client')
}

/** An admin may filter by owner. Other callers see only their own clients. */
function toFilter (user: string | undefined, actor: Actor): Filter {
  if (!actor.isAdmin) return { equal: { userId: actor.user_id } }
  return user ? { equal: { userId: user } } : {}
}

/** @throws ErrNotFound for another user's client, as for a missing one, unless the actor is an admin */
function checkMaySee (record: ClientRecord, actor: Actor): void {
  if (!actor.isAdmin && record.userId !== actor.user_id) throw notFound()
}

/** The events of a change of a client. */
function listHappenings ({ id, userId: user_id }: ClientRecord, { set = {}, changed }: Decision): Happening[] {
  return [
    ...(changed.length === 0 ? [] : [{ type: 'client.updated', id, user_id, changed }] as const),
    ...('secret' in set ? [{ type: 'client.secret_changed', id, user_id }] as const : [])
  ]
}

/** The view of clients that the actor gets. Secrets require the scopes for changes, because a secret allows using the client. */
function toView ({ user_id, isUser = true, isAdmin, holds = () => true }: Actor): ClientView {
  const own = isUser ? 'own' : 'none'
  const secrets = !holds('clients:write') ? 'none' : isAdmin && holds('users:write') ? 'all' : own
  return { isAdmin, secrets, user_id }
}

/** Registered clients and their rules (docs/api.md). */
export function createClients ({ store, now, box, tokens, recorder, checkQuota, checkUrl }: ClientServices) {
  const clients = store.collection<ClientRecord>('clients')
  const users = store.collection<UserRecord>('users')
  const lists = createLists<ClientRecord>(store, 'clients', SORT_KEYS, 'name:asc')

  const createSecret = (id: string) => box.seal(randomText(SECRET_LENGTH), id)

  /** Reads a client that the actor may see. @throws ErrNotFound */
  async function requireRecord (clientId: string, actor: Actor): Promise<ClientRecord> {
    const record = await clients.get(clientId)
    if (record === null) throw notFound()
    checkMaySee(record, actor)
    return record
  }

  /** @throws ErrPerm for a client that the operator vouches for, unless the actor is an admin */
  function checkMayManage (record: ClientRecord, actor: Actor): void {
    if (!actor.isAdmin && isVouchedFor(record)) {
      throw permError('clientId', 'only an admin may manage a client that the operator vouches for')
    }
  }

  /** @throws ErrPerm */
  function checkMayTakeOver ({ isAdmin, isUser = true }: Actor): void {
    if (!isAdmin || !isUser) throw permError('take_over', 'only an admin may take a client over')
  }

  async function findOwner (userId: string | undefined, actor: Actor): Promise<string> {
    if (!actor.isAdmin || userId === undefined) return actor.user_id
    if (userId === '') throw paramError('userId', 'must not be empty')
    if (await users.get(userId) === null) throw new IdentityError('USER_NOT_EXIST', 'userId: no such user')
    return userId
  }

  /** Changes a client that the actor may see. Nothing is written for null from `decide`. */
  async function change (
    clientId: string, actor: Actor, decide: (record: ClientRecord) => Decision | null | Promise<Decision | null>
  ): Promise<void> {
    let isEnded = false
    const written = await changeRecord({ collection: clients, recorder, what: 'the client', notFound }, clientId, async (record) => {
      checkMaySee(record, actor)
      const decision = await decide(record)
      isEnded = decision?.increment?.epoch !== undefined
      if (decision === null) return null
      const { changed, set, ...rest } = decision
      return { ...rest, set: { ...set, modifiedAt: toTimestamp(now()) }, happened: listHappenings(record, decision) }
    })
    if (isEnded) tokens.deleteOfClient(clientId, written.epoch)
  }

  async function remove ({ id, userId: user_id }: ClientRecord): Promise<boolean> {
    return await recorder.remove('clients', id, { type: 'client.deleted', id, user_id })
  }

  return {
    /**
     * Registers a client (`POST /client`). `extra` is for bootstrap.
     * @throws ErrParam, ErrPerm, ErrLimit, USER_NOT_EXIST
     */
    async create (body: CreateClient, actor: Actor, extra: { id?: string } = {}): Promise<{ clientId: string }> {
      const { data: { userId: owner, ...data }, credentials } = body
      const time = now()
      const id = extra.id ?? generateId(time)
      const secret = credentials === true ? createSecret(id) : undefined
      const fields = { redirectUris: data.redirectUris, scopes: [], ...(secret !== undefined && { secret }) }
      const { set } = toClientChange(data, fields, { registry: await readRegistry(store), actor, time: toTimestamp(time), checkUrl })
      const userId = await findOwner(owner, actor)
      await checkQuota(userId, actor)
      const record = createClientRecord(time, { ...set as Pick<ClientRecord, 'redirectUris' | 'scopes' | 'name'>, id, secret, userId, revision: 0 })
      await clients.insert({ ...record, ...recorder.attach(null, { type: 'client.created', id, user_id: userId }) })
      return { clientId: id }
    },

    /**
     * The client as the actor may see it.
     * @throws ErrNotFound, and ErrPerm for a client that the operator vouches for, unless the actor is an admin
     */
    async require (clientId: string, actor: Actor): Promise<Client> {
      const record = await requireRecord(clientId, actor)
      checkMayManage(record, actor)
      return showClientTo(toView(actor), box.open)(record)
    },

    /**
     * Changes a client (`PATCH /client/{clientId}`). When the operator starts to vouch for a client, the client gets a new secret,
     * because its owner knows the old one. So does one that an administrator takes over, and its tokens are revoked.
     * @throws ErrNotFound, ErrParam, ErrPerm
     */
    async patch (clientId: string, body: PatchClient, actor: Actor): Promise<void> {
      const { data = {}, regen_secret, take_over } = body
      if (take_over === true) checkMayTakeOver(actor)
      await change(clientId, actor, async (record) => {
        checkMayManage(record, actor)
        const change = toClientChange(data, record, { registry: await readRegistry(store), actor, time: toTimestamp(now()), checkUrl })
        const { set = {}, unset = [] } = change
        const isTaken = take_over === true && record.userId !== actor.user_id
        if (isTaken) set.userId = actor.user_id
        else if (take_over === true) throw paramError('take_over', 'the caller owns the client already')
        if (regen_secret === true && record.secret === undefined) throw paramError('regen_secret', 'a public client has no secret')
        if (Object.keys(set).length === 0 && unset.length === 0 && regen_secret !== true) {
          throw new IdentityError('ErrParam', 'body: must contain a change')
        }
        const isNew = !isVouchedFor(record) && isVouchedFor({ ...record, ...set } as ClientRecord)
        const isKnown = record.userId !== actor.user_id || actor.isUser === false
        const changed = [...Object.keys(data), ...(isTaken ? ['userId'] : [])]
        const isReplaced = record.secret !== undefined && (regen_secret === true || isTaken || (isNew && isKnown))
        return {
          ...change,
          set: { ...set, ...(isReplaced && { secret: createSecret(clientId) }) },
          ...((isReplaced || isTaken) && { increment: { ...change.increment, epoch: 1 } }),
          changed
        }
      })
    },

    /**
     * Gives all confidential clients of a user new secrets, which revokes their tokens. Clients that the operator vouches for
     * keep theirs unless the actor is an admin.
     */
    async replaceSecrets (userId: string, actor: Actor): Promise<void> {
      for await (const batch of scan(clients, { equal: { userId } })) {
        for (const { id } of batch) {
          await unlessGone(change(id, actor, (record) => {
            const isKept = record.secret === undefined || record.userId !== userId || (!actor.isAdmin && isVouchedFor(record))
            return isKept ? null : { set: { secret: createSecret(id) }, increment: { epoch: 1 }, changed: [] }
          }))
        }
      }
    },

    /**
     * Removes a client with its codes and tokens.
     * @throws ErrPerm for the client of the actor's own token, and for one that the operator vouches for unless the actor is an
     *   admin; ErrNotFound
     */
    async remove (clientId: string, actor: Actor): Promise<void> {
      if (clientId === actor.client_id) throw permError('clientId', 'a client cannot delete itself')
      const record = await requireRecord(clientId, actor)
      checkMayManage(record, actor)
      if (!await remove(record)) throw notFound()
      tokens.deleteOfClient(clientId)
    },

    /** The number of a user's clients that stop when the user is disabled, expired or deleted: those that the operator does not vouch for. */
    async countDependent (userId: string): Promise<number> {
      let count = 0
      for await (const batch of scan(clients, { equal: { userId } })) {
        count += batch.filter((record) => record.disabled_at === undefined && !isVouchedFor(record)).length
      }
      return count
    },

    /**
     * Removes all of a user's clients, even the client of the caller's own token.
     * @returns how many
     * @throws ErrPerm, before any client is removed, when the operator vouches for one and the actor is not an admin
     */
    async removeOwned (userId: string, actor: Actor): Promise<number> {
      let removed = 0
      if (!actor.isAdmin) {
        for await (const batch of scan(clients, { equal: { userId } })) for (const record of batch) checkMayManage(record, actor)
      }
      for await (const batch of scan(clients, { equal: { userId } })) {
        await Promise.all(batch.map(async (record) => {
          if (await remove(record)) removed++
          tokens.deleteOfClient(record.id)
        }))
      }
      return removed
    },

    async count (user: string | undefined, actor: Actor): Promise<number> {
      return await lists.count(toFilter(user, actor), actor)
    },

    /** Clients as this caller may see them. */
    list (query: Omit<ClientListQuery, 'fields'>, actor: Actor): AsyncIterable<Client[]> {
      return lists.list(toFilter(query.user, actor), query, showClientTo(toView(actor), box.open))
    },

    /**
     * A page with the fields that the query selects.
     * @throws ErrParam also for an unknown field
     */
    async page (query: ClientListQuery, actor: Actor): Promise<Page<ClientItem>> {
      const view = { ...toView(actor), fields: parseClientFields(query.fields) }
      return await lists.page(toFilter(query.user, actor), query, showClientItemTo(view, box.open), view, actor)
    }
  }
}

export type Clients = ReturnType<typeof createClients>
