import { toTimestamp } from '../clock.ts'
import { KeyError, MOST_KEYS, type PublicKey, listAlgorithms, readPublicKeys, toClientKeys } from '../crypto/public-keys.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import type { ClientKey, ClientRecord } from '../records/client.ts'
import type { Actor } from '../roles.ts'
import type { Change } from '../store/port.ts'
import type { CredentialParts } from './named-secrets.ts'

const refuse = (message: string) => paramError('jwks', message)

/** Why a key is of no use here. */
function describeUse ({ kty, alg, use, crv }: PublicKey): string {
  if (use !== undefined && use !== 'sig') return 'must have the use sig, or none'
  if (alg !== undefined && !['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'].includes(alg)) return 'must have the alg RS256, PS256, ES256 or EdDSA, or none'
  if (kty === 'RSA') return 'must have the alg RS256 or PS256, or none'
  return `must be on the curve P-256 (ES256) or Ed25519 (EdDSA), not ${crv}`
}

/** @throws ErrParam */
function read (jwks: object): PublicKey[] {
  try {
    return readPublicKeys(jwks)
  } catch (error) {
    throw error instanceof KeyError ? refuse(`${error.message}${error.value === undefined ? '' : `: ${String(error.value)}`}`) : error
  }
}

function checkUnique (keys: ClientKey[]): ClientKey[] {
  for (const [index, { id, jwk }] of keys.entries()) {
    const first = keys.findIndex((other) => other.id === id || other.jwk.kid === jwk.kid)
    if (first !== index) throw refuse(`keys[${index}] is the same key as keys[${first}], or has its kid`)
  }
  return keys
}

/**
 * The keys that a caller gives for a client. An empty set is possible: keys in the wrong hands are removed at once.
 * @throws ErrParam
 */
export function checkKeys (jwks: { keys: unknown[] }, before: readonly ClientKey[] | undefined, time: string): ClientKey[] {
  if (jwks.keys.length === 0) return []
  const given = read(jwks)
  const index = given.findIndex((key) => listAlgorithms(key).length === 0)
  if (index !== -1) throw refuse(`keys[${index}] ${describeUse(given[index]!)}`)
  return checkUnique(toClientKeys(given, before, time))
}

/** The set of public keys, as it is shown. */
export const showKeys = (keys: readonly ClientKey[]): { keys: PublicKey[] } => ({ keys: keys.map(({ jwk }) => jwk) })

/** The change to these keys. */
export const toKeysChange = (keys: ClientKey[]): Change<ClientRecord> => keys.length === 0 ? { unset: ['keys'] } : { set: { keys } }

/** The ids of the keys that a change adds and removes. */
export function compareKeys (record: Pick<ClientRecord, 'keys'>, { set = {}, unset = [] }: Change<ClientRecord>): { added: string[], removed: string[] } {
  const listIds = (keys: readonly ClientKey[] = []) => keys.map(({ id }) => id)
  const before = listIds(record.keys)
  const after = unset.includes('keys') ? [] : 'keys' in set ? listIds(set.keys) : before
  return { added: after.filter((id) => !before.includes(id)), removed: before.filter((id) => !after.includes(id)) }
}

/** @throws ErrPerm for an actor who may not see the secrets of a client: with a key of their own they could act as the client */
export function checkMayGiveKeys (record: ClientRecord, actor: Actor, maySeeSecret: CredentialParts['maySeeSecret']): void {
  if (!maySeeSecret(record, actor)) throw permError('jwks', 'the caller may not see secrets of this client')
}

/** A key of a client, in a list. */
export interface KeyView { id: string, kid: string, algorithms: string[], createdAt: string, lastUsedAt?: string }

/** Single keys of clients, beside `jwks`, which has them all. The tokens of the others go on. */
export function createClientKeys ({ now, uses, requireManaged, change, maySeeSecret }: CredentialParts) {
  return {
    /** Adds keys. The present ones stay. @throws ErrParam, ErrLimit, ErrNotFound, ErrPerm */
    async addKeys (clientId: string, jwks: { keys: unknown[] }, actor: Actor): Promise<ClientKey[]> {
      if (jwks.keys.length === 0) throw refuse('must have a key')
      const added: ClientKey[] = []
      await change(clientId, actor, (record) => {
        checkMayGiveKeys(record, actor, maySeeSecret)
        if (record.document !== undefined) throw paramError('clientId', 'must not be a client from a document')
        const { keys = [] } = record
        added.splice(0, added.length, ...checkKeys(jwks, keys, toTimestamp(now())))
        if (keys.length + added.length > MOST_KEYS) throw new IdentityError('ErrLimit', `jwks: a client may have at most ${MOST_KEYS} keys`)
        return toKeysChange(checkUnique([...keys, ...added]))
      })
      return added
    },

    /** @throws ErrNotFound, ErrPerm */
    async listKeys (clientId: string, actor: Actor): Promise<KeyView[]> {
      const { id: client_id, keys = [] } = await requireManaged(clientId, actor)
      const used = await uses.read(client_id)
      return keys.map(({ id, jwk, created_at: createdAt }) =>
        ({ id, kid: jwk.kid!, algorithms: listAlgorithms(jwk), createdAt, lastUsedAt: used[id]?.time }))
    },

    /** Removes a key by its `kid` or its thumbprint. The access tokens that it got end. @throws ErrNotFound, ErrPerm */
    async removeKey (clientId: string, name: string, actor: Actor): Promise<void> {
      await change(clientId, actor, ({ document, keys = [] }) => {
        if (document !== undefined) throw paramError('clientId', 'must not be a client from a document')
        // The owner chooses each kid, and one may be the thumbprint of another key.
        const gone = keys.find(({ jwk }) => jwk.kid === name) ?? keys.find(({ id }) => id === name)
        if (gone === undefined) throw new IdentityError('ErrNotFound', 'key: the client has no such key')
        return toKeysChange(keys.filter((key) => key !== gone))
      })
    }
  }
}
