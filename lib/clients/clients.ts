import type { Client, CreateClient, PatchClient } from '../../schemas/client.ts'
import { changeRecord, unlessGone } from '../change-record.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { findDocumentUrl } from '../documents/find-url.ts'
import { DOCUMENT_PREFIX } from '../documents/ids.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import type { Recorder } from '../events/recorder.ts'
import { generateId, randomText } from '../ids.ts'
import { type ClientRecord, type UserRecord, createClientRecord } from '../records.ts'
import { readRegistry } from '../resources/registry.ts'
import type { Actor } from '../roles.ts'
import type { Change, Store } from '../store/port.ts'
import { checkDocumentChange, toClientChange } from './client-fields.ts'
import { createClientLists } from './client-lists.ts'
import { checkMayGiveKeys, createClientKeys } from './client-keys.ts'
import { type Decision, listHappenings } from './happenings.ts'
import { isVouchedFor } from './kinds.ts'
import { createOwnedClients } from './owned-clients.ts'
import { isOwnedBy } from './owner.ts'
import { type CredentialParts, createNamedSecrets, listSecretIds } from './named-secrets.ts'
import type { CheckClientQuota } from './quota.ts'
import { maySeeSecret, showClientTo, toView } from './show-client.ts'
import type { SecretEnds } from './secret-ends.ts'
import type { SecretUses } from './secret-uses.ts'
import { FIRST, hasCredential, isConfidential } from './token-auth.ts'

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
  uses: Pick<SecretUses, 'read' | 'forget'>
  ends: Pick<SecretEnds, 'add' | 'forget'>
  /** Checks a URL that the service will call. Throws Error with the reason. */
  checkUrl: (url: string) => string
}

function notFound (): IdentityError {
  return new IdentityError('ErrNotFound', 'clientId: no such client')
}

/** @throws ErrNotFound for another user's client, as for a missing one, unless the actor is an admin */
function checkMaySee (record: ClientRecord, actor: Actor): void {
  if (!actor.isAdmin && !isOwnedBy(record, actor.user_id)) throw notFound()
}

/** Registered clients and their rules (docs/api.md). */
export function createClients ({ store, now, box, tokens, recorder, checkQuota, uses, ends, checkUrl }: ClientServices) {
  const clients = store.collection<ClientRecord>('clients')
  const users = store.collection<UserRecord>('users')
  const documents = store.collection('documents')

  const createSecret = (id: string) => box.seal(randomText(SECRET_LENGTH), id)

  /** Replaces the readable secret, and removes the named ones and the keys: somebody has them who should not. */
  function renewCredentials ({ id, secret, secrets, keys }: ClientRecord): Change & { unset: string[] } {
    const unset = [...(secrets === undefined ? [] : ['secrets']), ...(keys === undefined ? [] : ['keys'])]
    return { ...(secret !== undefined && { set: { secret: createSecret(id) } }), unset }
  }

  /** The id of a client that is also addressed by the id of its document, which is not longer than a path may be. @throws ErrNotFound */
  async function toClientId (id: string, { isAdmin }: Actor): Promise<string> {
    if (!id.startsWith(DOCUMENT_PREFIX)) return id
    const url = await findDocumentUrl(store, id.slice(DOCUMENT_PREFIX.length), isAdmin)
    if (url === null) throw notFound()
    return url
  }

  /** Reads a client that the actor may see. @throws ErrNotFound */
  async function requireRecord (clientId: string, actor: Actor): Promise<ClientRecord> {
    const record = await clients.get(await toClientId(clientId, actor))
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
    const isCaller = !actor.isAdmin || userId === undefined
    if ((isCaller ? actor.user_id : userId) === '') throw paramError('userId', 'must not be empty')
    if (isCaller) return actor.user_id
    if (await users.get(userId) === null) throw new IdentityError('USER_NOT_EXIST', 'userId: no such user')
    return userId
  }

  /** Changes a client that the actor may see, and forgets the secrets and keys that it loses. Nothing is written for null from `decide`. */
  async function change (
    clientId: string, actor: Actor, decide: (record: ClientRecord) => Decision | null | Promise<Decision | null>
  ): Promise<ClientRecord> {
    let isEnded = false
    let former: string[] = []
    const written = await changeRecord({ collection: clients, recorder, what: 'the client', notFound }, clientId, async (record) => {
      checkMaySee(record, actor)
      former = [...listSecretIds(record), ...(record.keys ?? []).map(({ id }) => id)]
      const decision = await decide(record)
      isEnded = decision?.increment?.epoch !== undefined
      if (decision === null) return null
      const { changed, set, ...rest } = decision
      return { ...rest, set: { ...set, modifiedAt: toTimestamp(now()) }, happened: listHappenings(record, decision) }
    })
    if (isEnded) tokens.deleteOfClient(clientId, written.epoch)
    const lost = former.filter((id) => !hasCredential(written, id))
    await Promise.all([ends.forget(lost.filter((id) => id !== FIRST)), ...lost.map((id) => uses.forget(clientId, id))])
    return written
  }

  async function remove ({ id, userId, document, secrets = [] }: ClientRecord, permit?: Parameters<Recorder['remove']>[3]): Promise<boolean> {
    if (!await recorder.remove('clients', id, { type: 'client.deleted', id, user_id: userId ?? null }, permit)) return false
    if (document !== undefined) await documents.delete(document.id)
    await Promise.all([uses.forget(id), ends.forget(secrets.map((secret) => secret.id))])
    tokens.deleteOfClient(id)
    return true
  }

  const credentials: CredentialParts = {
    now,
    uses,
    ends,
    async requireManaged (clientId, actor) {
      const record = await requireRecord(clientId, actor)
      checkMayManage(record, actor)
      return record
    },
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
      const fields = { redirectUris: data.redirectUris, scopes: [], userId: actor.user_id, ...(secret !== undefined && { secret }) }
      // A readable secret says the same.
      const given = data.tokenAuth === 'secret' && secret !== undefined ? { ...data, tokenAuth: undefined } : data
      const { set } = toClientChange(given, fields, { registry: await readRegistry(store), actor, time: toTimestamp(time), checkUrl })
      const userId = await findOwner(owner, actor)
      await checkQuota(userId, actor)
      const record = createClientRecord(time, { ...set as Pick<ClientRecord, 'redirectUris' | 'scopes' | 'name'>, id, secret, userId, revision: 0 }, extra.isLasting)
      await clients.insert({ ...record, ...recorder.attach(null, { happened: [{ type: 'client.created', id, user_id: userId }] }) })
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
    async patch (id: string, body: PatchClient, actor: Actor): Promise<void> {
      const { data = {}, regen_secret, take_over } = body
      const clientId = await toClientId(id, actor)
      if (take_over === true) checkMayTakeOver(actor)
      await change(clientId, actor, async (record) => {
        checkMayManage(record, actor)
        if (record.document !== undefined) checkDocumentChange(body)
        if (data.jwks !== undefined) checkMayGiveKeys(record, actor, credentials.maySeeSecret)
        const change = toClientChange(data, record, { registry: await readRegistry(store), actor, time: toTimestamp(now()), checkUrl })
        const { set = {}, unset = [], increment } = change
        const isTaken = take_over === true && !isOwnedBy(record, actor.user_id)
        if (isTaken) set.userId = actor.user_id
        else if (take_over === true) throw paramError('take_over', 'the caller owns the client already')
        if (regen_secret === true && (record.secret === undefined || unset.includes('secret'))) {
          throw paramError('regen_secret', isConfidential({ ...record, ...set }) ? 'the client has no readable secret' : 'a public client has no secret')
        }
        if (Object.keys(set).length === 0 && unset.length === 0 && regen_secret !== true) {
          throw new IdentityError('ErrParam', 'body: must contain a change')
        }
        const isNew = !isVouchedFor(record) && isVouchedFor({ ...record, ...set })
        const isKnown = !isOwnedBy(record, actor.user_id) || actor.isUser === false
        const changed = [...Object.keys(data).filter((field) => field !== 'jwks'), ...(isTaken ? ['userId'] : [])]
        const isHeld = isConfidential({ ...record, ...set }) && (isTaken || (isNew && isKnown))
        const renewed = isHeld ? renewCredentials(record) : { unset: [] }
        return {
          // Keys that this very change gives the client are nobody else's.
          unset: [...unset, ...renewed.unset.filter((field) => !(field in set))],
          set: { ...set, ...renewed.set, ...(regen_secret === true && { secret: createSecret(clientId) }) },
          ...((isHeld || isTaken || regen_secret === true || increment !== undefined) && { increment: { epoch: 1 } }),
          changed
        }
      })
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
    ...createOwnedClients({ clients, checkMayManage, change, renewCredentials, remove }),
    ...createClientLists(store, box)
  }
}

export type Clients = ReturnType<typeof createClients>
