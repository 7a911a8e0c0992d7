import type { CreateServiceToken, ServiceToken } from '../../schemas/client.ts'
import { isForClients } from '../api-scopes.ts'
import type { Base } from '../base.ts'
import { checkScopes, checkTimestamp } from '../checks.ts'
import { toTimestamp } from '../clock.ts'
import { createPrefixed } from '../crypto/prefixed-secret.ts'
import { defined } from '../defined.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import type { EventRecord } from '../events/types.ts'
import { checkName } from '../names.ts'
import type { ClientRecord } from '../records/client.ts'
import type { TokenRecord } from '../records/token.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import { type Registry, findByUri, narrowScopes, readRegistry } from '../resources/registry.ts'
import type { Actor } from '../roles.ts'
import { scan } from '../store/scan.ts'
import type { Tokens } from '../tokens/tokens.ts'
import type { CredentialUses } from '../tokens/uses.ts'
import { SERVICE, checkValidity } from '../tokens/validity.ts'
import type { Clients } from './clients.ts'
import type { SecretEnds } from './secret-ends.ts'
import { isConfidential } from './token-auth.ts'

/** Service tokens of a client. */
const MOST = 20

const DAY = 24 * 60 * 60_000

/** Milliseconds that a service token lives by default, and at most. */
const LIFE = 365 * DAY
const LONGEST = 2 * 365 * DAY

interface ServiceTokenParts extends Pick<Base, 'store' | 'now' | 'recorder'> {
  tokens: Pick<Tokens, 'issueService' | 'revoke'>
  uses: Pick<CredentialUses, 'read' | 'forget'>
  ends: Pick<SecretEnds, 'add' | 'forget' | 'writeToOwners'>
  clients: Pick<Clients, 'requireManaged'>
}

/** The resource of a new token. @throws ErrParam */
function findResource (registry: Registry, uri: string | undefined): Pick<TokenRecord, 'resource' | 'resource_id'> {
  if (uri === undefined) return {}
  const found = findByUri(registry, uri)
  if (found === undefined) throw paramError('resource', 'no such resource')
  return { resource: found[1].uri, resource_id: found[0] }
}

/** @throws ErrParam for a scope that the client cannot use there, or not for itself */
function checkUsable (scopes: string[], audience: Pick<TokenRecord, 'resource' | 'resource_id'>, client: ClientRecord, registry: Registry): void {
  const usable = narrowScopes(audience, client, registry).filter(isForClients)
  const refused = scopes.find((scope) => !usable.includes(scope))
  if (refused !== undefined) {
    throw paramError('scopes', `must be scopes of the client, ${audience.resource === undefined ? 'and of no resource' : 'and of the resource'}: ${refused}`)
  }
}

/**
 * Service tokens: long-lived access tokens of a client that acts for itself, for programs that cannot send a token request. Administrators
 * make them, and they are shown once. Each is a record of `access_tokens`, so that the end of its client or owner ends it too.
 */
export function createServiceTokens ({ store, now, recorder, tokens, uses, ends, clients: { requireManaged } }: ServiceTokenParts) {
  const users = store.collection<UserRecord>('users')
  const records = store.collection<TokenRecord>('access_tokens')

  /** @throws ErrParam */
  function checkEnd (expiresAt: string | undefined, time: number): string {
    if (expiresAt === undefined) return toTimestamp(time + LIFE)
    const end = checkTimestamp('expiresAt', expiresAt)
    if (end <= toTimestamp(time)) throw paramError('expiresAt', 'must be in the future')
    if (end > toTimestamp(time + LONGEST)) throw paramError('expiresAt', 'must be at most two years ahead')
    return end
  }

  /** @throws ErrParam */
  async function requireOwner (client: ClientRecord): Promise<UserRecord> {
    const { userId, document, disabled_at } = client
    if (document !== undefined) throw paramError('clientId', 'must not be a client from a document')
    if (disabled_at !== undefined) throw paramError('clientId', 'must not be a disabled client')
    if (!isConfidential(client)) throw paramError('clientId', 'must be a confidential client')
    const owner = userId === undefined ? null : await users.get(userId)
    if (owner === null || !isActive(owner, toTimestamp(now()))) {
      throw paramError('clientId', 'must be a client whose owner exists and is not disabled or expired')
    }
    return owner
  }

  /** The valid service tokens of a client, the latest first. */
  async function listValid (client: ClientRecord): Promise<TokenRecord[]> {
    const registry = await readRegistry(store)
    const owner = client.userId === undefined ? null : await users.get(client.userId)
    const found: TokenRecord[] = []
    for await (const batch of scan(records, { equal: { holder: client.id } })) {
      found.push(...batch.filter((document) => (
        checkValidity({ document, linked: { user_id: owner, client_id: client, registry_id: registry } }, toTimestamp(now())) !== null)))
    }
    return found.sort((one, other) => other.created_at < one.created_at ? -1 : 1)
  }

  /**
   * Checks a new token with what is stored of its client and owner now: either may have ended since they were read.
   * @throws ErrNotFound, ErrParam, ErrLimit
   */
  async function checkNew ({ id }: TokenRecord, clientId: string, actor: Actor): Promise<void> {
    const client = await requireManaged(clientId, actor)
    await requireOwner(client)
    // Counted with this one, so that of two concurrent requests none exceeds the limit.
    const valid = await listValid(client)
    if (!valid.some((record) => record.id === id)) throw paramError('clientId', 'the tokens of the client were revoked meanwhile')
    if (valid.length > MOST) throw new IdentityError('ErrLimit', `tokens: a client may have at most ${MOST} service tokens`)
  }

  /** Forgets when an ended token was to expire, and its last use. */
  async function forget ({ id, client_id }: TokenRecord): Promise<void> {
    await Promise.all([ends.forget([id]), uses.forget(client_id, id)])
  }

  /** Removes a token that nobody has seen. */
  async function withdraw (record: TokenRecord): Promise<void> {
    await records.delete(record.id)
    await forget(record)
  }

  return {
    /**
     * Makes a service token (`POST /client/{clientId}/token`), which is not shown again. Its owner and the administrators get an email.
     * @throws ErrParam, ErrLimit, ErrNotFound; ErrPerm for a client that acts for itself, which could otherwise outlive its own end
     */
    async add (clientId: string, { data }: CreateServiceToken, actor: Actor): Promise<{ id: string, token: string, expiresAt: string }> {
      if (actor.isUser === false) throw permError('clientId', 'only a user may make service tokens')
      if (data.name.trim() === '') throw paramError('name', 'must not be empty')
      const client = await requireManaged(clientId, actor)
      const owner = await requireOwner(client)
      const registry = await readRegistry(store)
      const audience = findResource(registry, data.resource)
      const scopes = checkScopes(data.scopes)
      checkUsable(scopes, audience, client, registry)
      const expired_at = checkEnd(data.expiresAt, now())
      const token = createPrefixed('service')
      const record = await tokens.issueService({
        token,
        user_id: owner.id,
        client_id: client.id,
        client_epoch: client.epoch,
        scopes,
        ...audience,
        name: checkName('name', data.name),
        last4: token.slice(-4),
        expired_at
      })
      try {
        await checkNew(record, clientId, actor)
        await ends.add(client.id, { id: record.id, created_at: record.created_at, expires_at: expired_at })
        const mails = await ends.writeToOwners('service-token-added', owner.id, client.id, { last4: token.slice(-4), time: record.created_at })
        await recorder.insert({ type: 'token.service_created', id: record.id, user_id: owner.id, client_id: client.id }, mails)
      } catch (error) {
        await withdraw(record)
        throw error
      }
      return { id: record.id, token, expiresAt: expired_at }
    },

    /**
     * The service tokens of a client that are valid, the latest first, without the tokens themselves.
     * @throws ErrNotFound
     */
    async list (clientId: string, actor: Actor): Promise<ServiceToken[]> {
      const client = await requireManaged(clientId, actor)
      const [found, used] = await Promise.all([listValid(client), uses.read(client.id)])
      return found.map(({ id, name = '', last4 = '', scopes = [], resource, created_at: createdAt, expired_at: expiresAt }) =>
        defined({ id, name, last4, scopes, resource, createdAt, expiresAt, lastUsedAt: used[id]?.time, lastUsedFrom: used[id]?.from }))
    },

    /**
     * Ends a service token.
     * @throws ErrNotFound
     */
    async remove (clientId: string, tokenId: string, actor: Actor): Promise<void> {
      const client = await requireManaged(clientId, actor)
      const record = await records.get(tokenId)
      if (record?.holder !== client.id) throw new IdentityError('ErrNotFound', 'tokenId: the client has no such token')
      await tokens.revoke(record)
      await forget(record)
    },

    /**
     * Ends the service tokens of all clients.
     * @returns how many
     */
    async endAll (): Promise<number> {
      let count = 0
      for await (const batch of scan(records, { since: { holder: '' } }, { key: 'holder' })) {
        for (const record of batch) {
          await tokens.revoke(record)
          await forget(record)
          count++
        }
      }
      return count
    },

    /**
     * What follows the deletion of a user. Their clients are kept, and an import may give the id to another user, whose epoch says nothing of a
     * service token: so none that the deletion has left may stay. It may be called again.
     */
    async removeOfOwner ({ user: user_id, content }: Pick<EventRecord, 'user' | 'content'>): Promise<void> {
      if (user_id === undefined || content === undefined) return
      for await (const batch of scan(records, { equal: { user_id } })) {
        const left = batch.filter(({ kind, created_at }) => kind === SERVICE && created_at <= content.time)
        await Promise.all(left.map(async (record) => {
          await records.delete(record.id)
          await forget(record)
        }))
      }
    }
  }
}

export type ServiceTokens = ReturnType<typeof createServiceTokens>
