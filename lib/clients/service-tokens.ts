import type { CreateServiceToken, ServiceToken } from '../../schemas/client.ts'
import { isForClients } from '../api-scopes.ts'
import type { Base } from '../base.ts'
import { checkScopes } from '../checks.ts'
import { toTimestamp } from '../clock.ts'
import { createPrefixed } from '../crypto/prefixed-secret.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import type { EventRecord } from '../events/types.ts'
import { checkName } from '../names.ts'
import type { ClientRecord } from '../records/client.ts'
import type { TokenRecord } from '../records/token.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import { type Registry, narrowScopes, readRegistry } from '../resources/registry.ts'
import type { Actor } from '../roles.ts'
import { scan } from '../store/scan.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { SERVICE } from '../tokens/validity.ts'
import type { Clients } from './clients.ts'
import { type Audience, type NamedTokens, checkEnd, findAudience } from './named-tokens.ts'
import type { SecretEnds } from './secret-ends.ts'
import { isConfidential } from './token-auth.ts'

/** Service tokens of a client. */
const MOST = 20

const DAY = 24 * 60 * 60_000

/** Milliseconds that a service token lives by default, and at most. */
const LIFE = 365 * DAY
const LONGEST = [2 * 365 * DAY, 'two years'] as const

interface ServiceTokenParts extends Pick<Base, 'store' | 'now' | 'recorder'> {
  tokens: Pick<Tokens, 'issueNamed'>
  named: NamedTokens
  ends: Pick<SecretEnds, 'add' | 'writeToOwners'>
  clients: Pick<Clients, 'requireManaged'>
}

/** @throws ErrParam for a scope that the client cannot use there, or not for itself */
function checkUsable (scopes: string[], audience: Audience, client: ClientRecord, registry: Registry): void {
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
export function createServiceTokens ({ store, now, recorder, tokens, named, ends, clients: { requireManaged } }: ServiceTokenParts) {
  const users = store.collection<UserRecord>('users')
  const records = store.collection<TokenRecord>('access_tokens')

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

  async function listValid (client: ClientRecord): Promise<TokenRecord[]> {
    return await named.listValid(client.id, { user_id: client.userId === undefined ? null : await users.get(client.userId), client_id: client })
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
      const audience = findAudience(registry, data.resource)
      const scopes = checkScopes(data.scopes)
      checkUsable(scopes, audience, client, registry)
      const expired_at = data.expiresAt === undefined ? toTimestamp(now() + LIFE) : checkEnd(data.expiresAt, now(), LONGEST)
      const token = createPrefixed('service')
      const last4 = token.slice(-4)
      const record = await tokens.issueNamed({
        token,
        kind: SERVICE,
        holder: client.id,
        user_id: owner.id,
        client_id: client.id,
        client_epoch: client.epoch,
        scopes,
        ...audience,
        name: checkName('name', data.name),
        expired_at
      })
      try {
        await checkNew(record, clientId, actor)
        await ends.add(client.id, { id: record.id, created_at: record.created_at, expires_at: expired_at })
        const mails = await ends.writeToOwners('service-token-added', owner.id, client.id, { last4, time: record.created_at })
        await recorder.insert({ type: 'token.service_created', id: record.id, user_id: owner.id, client_id: client.id }, mails)
      } catch (error) {
        await named.withdraw(record)
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
      return await named.show(client.id, await listValid(client))
    },

    /**
     * Ends a service token.
     * @throws ErrNotFound
     */
    async remove (clientId: string, tokenId: string, actor: Actor): Promise<void> {
      const client = await requireManaged(clientId, actor)
      await named.remove(client.id, tokenId, 'client')
    },

    /**
     * Ends the service tokens of all clients.
     * @returns how many
     */
    async endAll (): Promise<number> {
      let count = 0
      for await (const batch of scan(records, { since: { holder: '' } }, { key: 'holder' })) {
        for (const record of batch.filter(({ kind }) => kind === SERVICE)) {
          await named.end(record)
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
        await Promise.all(left.map(async (record) => { await named.withdraw(record) }))
      }
    }
  }
}

export type ServiceTokens = ReturnType<typeof createServiceTokens>
