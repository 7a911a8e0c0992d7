import type { ServiceToken } from '../../schemas/client.ts'
import type { Base } from '../base.ts'
import { checkTimestamp } from '../checks.ts'
import { toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { IdentityError, paramError } from '../errors.ts'
import type { TokenRecord } from '../records/token.ts'
import { type Registry, findByUri, readRegistry } from '../resources/registry.ts'
import type { Linked } from '../store/port.ts'
import { scan } from '../store/scan.ts'
import type { Tokens } from '../tokens/tokens.ts'
import type { CredentialUses } from '../tokens/uses.ts'
import { type PersonalRule, checkValidity } from '../tokens/validity.ts'
import type { SecretEnds } from './secret-ends.ts'

interface NamedTokenParts extends Pick<Base, 'store' | 'now'> {
  tokens: Pick<Tokens, 'revoke'>
  uses: Pick<CredentialUses, 'read' | 'forget'>
  ends: Pick<SecretEnds, 'forget'>
  showPersonal?: PersonalRule | undefined
}

/** The audience of a token. */
export type Audience = Pick<TokenRecord, 'resource' | 'resource_id'>

/** The resource of a new token. @throws ErrParam */
export function findAudience (registry: Registry, uri: string | undefined): Audience {
  if (uri === undefined) return {}
  const found = findByUri(registry, uri)
  if (found === undefined) throw paramError('resource', 'no such resource')
  return { resource: found[1].uri, resource_id: found[0] }
}

/** The end of a new token. @param longest how many milliseconds it may be ahead, and how the error calls that @throws ErrParam */
export function checkEnd (expiresAt: string, time: number, [longest, name]: readonly [milliseconds: number, name: string]): string {
  const end = checkTimestamp('expiresAt', expiresAt)
  if (end <= toTimestamp(time)) throw paramError('expiresAt', 'must be in the future')
  if (end > toTimestamp(time + longest)) throw paramError('expiresAt', `must be at most ${name} ahead`)
  return end
}

/** What service tokens and personal access tokens have in common: each has a holder, a name and an end, and is listed and removed by its holder. */
export function createNamedTokens ({ store, now, tokens, uses, ends, showPersonal }: NamedTokenParts) {
  const records = store.collection<TokenRecord>('access_tokens')

  /** Forgets when an ended token was to expire, and its last use. */
  async function forget ({ id, holder = '' }: TokenRecord): Promise<void> {
    await Promise.all([ends.forget([id]), uses.forget(holder, id)])
  }

  /** A valid token with the end that it has now. @param linked what it depends on */
  const findValid = (document: TokenRecord, linked: Linked<TokenRecord>['linked']): TokenRecord | undefined =>
    checkValidity({ document, linked }, toTimestamp(now()), showPersonal)?.record

  /** Ends a token, also one that has ended since it was read. */
  async function end (record: TokenRecord): Promise<void> {
    await tokens.revoke(record)
    await forget(record)
  }

  return {
    findValid,
    end,

    /** Ends all tokens of a holder, whether they are valid or not. It may be called again after an interruption. */
    async endAll (holder: string): Promise<void> {
      for await (const batch of scan(records, { equal: { holder } })) for (const record of batch) await end(record)
    },

    /** The valid tokens of a holder, the latest first. @param linked what they depend on, beside the registry */
    async listValid (holder: string, linked: Linked<TokenRecord>['linked']): Promise<TokenRecord[]> {
      const registry_id = await readRegistry(store)
      const found: TokenRecord[] = []
      for await (const batch of scan(records, { equal: { holder } })) {
        found.push(...batch.flatMap((document) => findValid(document, { ...linked, registry_id }) ?? []))
      }
      return found.sort((one, other) => other.created_at < one.created_at ? -1 : 1)
    },

    /** Tokens in a list, with their last uses and without the tokens themselves. */
    async show (holder: string, found: readonly TokenRecord[]): Promise<ServiceToken[]> {
      const used = await uses.read(holder)
      return found.map(({ id, name = '', last4 = '', scopes = [], resource, created_at: createdAt, expired_at: expiresAt }) =>
        defined({ id, name, last4, scopes, resource, createdAt, expiresAt, lastUsedAt: used[id]?.time, lastUsedFrom: used[id]?.from }))
    },

    /** Ends a token of a holder. @param name of the holder, for the error @throws ErrNotFound */
    async remove (holder: string, id: string, name: string): Promise<void> {
      const record = await records.get(id)
      if (record?.holder !== holder) throw new IdentityError('ErrNotFound', `tokenId: the ${name} has no such token`)
      await end(record)
    },

    /** Removes a token that nobody has seen. */
    async withdraw (record: TokenRecord): Promise<void> {
      await records.delete(record.id)
      await forget(record)
    }
  }
}

export type NamedTokens = ReturnType<typeof createNamedTokens>
