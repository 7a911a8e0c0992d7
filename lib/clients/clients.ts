import type { Client, CreateClient, PatchClient } from '../../schemas/client.ts'
import { unlessGone } from '../change-record.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import { generateId, randomText } from '../ids.ts'
import { type ClientRecord, createClientRecord } from '../records/client.ts'
import type { UserRecord } from '../records/user.ts'
import { readRegistry } from '../resources/registry.ts'
import type { Actor } from '../roles.ts'
import { type ChangeParts, toClientChange } from './client-fields.ts'
import { createClientKeys } from './client-keys.ts'
import { createClientLists } from './client-lists.ts'
import { type CredentialParts, createNamedSecrets } from './named-secrets.ts'
import { createOwnedClients } from './owned-clients.ts'
import { checkMayTakeOver, decidePatch } from './patches.ts'
import type { CheckClientQuota } from './quota.ts'
import type { SecretEnds } from './secret-ends.ts'
import type { CredentialUses } from '../tokens/uses.ts'
import { maySeeSecret, showClientTo, toView } from './show-client.ts'
import { type StoredClientParts, checkMayManage, checkMaySee, createStoredClients, notFound } from './stored-clients.ts'

/** Characters of a client secret. */
const SECRET_LENGTH = 16

export interface ClientServices extends StoredClientParts {
  checkQuota: CheckClientQuota
  uses: Pick<CredentialUses, 'read' | 'forget'>
  ends: Pick<SecretEnds, 'add' | 'forget'>
  /** Checks a URL that the service will call. Throws Error with the reason. */
  checkUrl: (url: string) => string
}

/** Registered clients and their rules (docs/api.md). */
export function createClients (services: ClientServices) {
  const { store, now, box, recorder, checkQuota, uses, ends, checkUrl } = services
  const stored = createStoredClients(services)
  const { clients, toClientId, requireRecord, requireManaged, change, remove } = stored
  const users = store.collection<UserRecord>('users')
  const createSecret = (id: string) => box.seal(randomText(SECRET_LENGTH), id)
  const toChangeParts = async (actor: Actor): Promise<ChangeParts> => ({ registry: await readRegistry(store), actor, time: toTimestamp(now()), checkUrl })

  async function findOwner (userId: string | undefined, actor: Actor): Promise<string> {
    const isCaller = !actor.isAdmin || userId === undefined
    if ((isCaller ? actor.user_id : userId) === '') throw paramError('userId', 'must not be empty')
    if (isCaller) return actor.user_id
    if (await users.get(userId) === null) throw new IdentityError('USER_NOT_EXIST', 'userId: no such user')
    return userId
  }

  const credentials: CredentialParts = {
    now,
    uses,
    ends,
    requireManaged,
    async change (clientId, actor, decide) {
      await change(clientId, actor, async (record) => {
        checkMayManage(record, actor)
        return { ...await decide(record), changed: [] }
      })
    },
    maySeeSecret: (record, actor) => maySeeSecret(toView(actor), record)
  }

  return {
    ...createNamedSecrets(credentials),
    ...createClientKeys(credentials),

    /**
     * Registers a client (`POST /client`). `extra` is for bootstrap: `isLasting` is false for an id that another client may have later.
     * @throws ErrParam, ErrPerm, ErrLimit, USER_NOT_EXIST
     */
    async create (body: CreateClient, actor: Actor, extra: { id?: string, isLasting?: boolean } = {}): Promise<{ clientId: string }> {
      const { data: { userId: owner, ...data }, credentials } = body
      const time = now()
      const id = extra.id ?? generateId(time)
      const secret = credentials === true ? createSecret(id) : undefined
      const fields = { redirectUris: data.redirectUris, scopes: [], userId: actor.user_id, secret }
      // A readable secret says the same.
      const given = data.tokenAuth === 'secret' && secret !== undefined ? { ...data, tokenAuth: undefined } : data
      const { set } = toClientChange(given, fields, { ...await toChangeParts(actor), time: toTimestamp(time) })
      const userId = await findOwner(owner, actor)
      await checkQuota(userId, actor)
      const record = createClientRecord(time, {
        ...set as Pick<ClientRecord, 'redirectUris' | 'scopes' | 'name'>, id, secret, userId, revision: 0
      }, extra.isLasting)
      await clients.insert({ ...record, ...recorder.attach(null, { happened: [{ type: 'client.created', id, user_id: userId }] }) })
      return { clientId: id }
    },

    requireManaged,

    /**
     * The client as the actor may see it.
     * @throws ErrNotFound, and ErrPerm for a client that the operator vouches for, unless the actor is an admin
     */
    async require (clientId: string, actor: Actor): Promise<Client> {
      return showClientTo(toView(actor), box.open)(await requireManaged(clientId, actor))
    },

    /**
     * Changes a client (`PATCH /client/{clientId}`). When the operator starts to vouch for a client, the client gets a new secret,
     * because its owner knows the old one. So does one that an administrator takes over, and its tokens are revoked.
     * @param ifMatch refuses what others have changed since the caller read it
     * @throws ErrNotFound, ErrParam, ErrPerm
     */
    async patch (id: string, body: PatchClient, actor: Actor, ifMatch?: string): Promise<void> {
      const clientId = await toClientId(id, actor)
      if (body.take_over === true) checkMayTakeOver(actor)
      await change(clientId, actor, async (record) => decidePatch(record, body, { ...await toChangeParts(actor), createSecret, ifMatch }))
    },

    /** Disables a client for the operator. Null if there is none. */
    async disable (clientId: string): Promise<ClientRecord | null> {
      return await unlessGone(change(clientId, { user_id: '', isAdmin: true }, (record) => record.disabled_at !== undefined
        ? null
        : { set: { disabled_at: toTimestamp(now()) }, increment: { epoch: 1 }, changed: ['disabled'] }))
    },

    /**
     * Removes a client with its codes and tokens.
     * @throws ErrPerm for the client of the actor's own token, and for one that the operator vouches for unless the actor is an
     *   admin; ErrNotFound
     */
    async remove (id: string, actor: Actor): Promise<void> {
      const clientId = await toClientId(id, actor)
      if (clientId === actor.client_id) throw permError('clientId', 'a client cannot delete itself')
      const record = await requireRecord(clientId, actor)
      const check = (current: ClientRecord) => {
        checkMaySee(current, actor)
        checkMayManage(current, actor)
      }
      check(record)
      // Again on the record that is deleted: an administrator may have taken the client over meanwhile.
      if (!await remove(record, async (current) => check(current as ClientRecord))) throw notFound()
    },

    /** Removes a client that is no longer used. */
    removeUnused: remove,
    ...createOwnedClients({ ...stored, createSecret }),
    ...createClientLists(store, box)
  }
}

export type Clients = ReturnType<typeof createClients>
