import { createPrivateKey } from 'node:crypto'
import type { errors as OidcErrors } from 'oidc-provider'
import { LIMITS } from '../../schemas/common.ts'
import { signJwt } from '../crypto/jws.ts'
import { defined } from '../defined.ts'
import { randomText } from '../ids.ts'
import type { ClientRecord } from '../records/client.ts'
import type { GrantRecord, TokenRecord } from '../records/token.ts'
import type { UserRecord } from '../records/user.ts'
import type { Registry } from '../resources/registry.ts'
import type { RoleNames } from '../roles.ts'
import type { Store } from '../store/port.ts'
import { toTimestamp } from '../clock.ts'
import { toCaller } from '../tokens/caller.ts'
import type { UnnamedToken } from '../tokens/issue.ts'
import { showStrength } from '../tokens/strength.ts'
import { checkValidity } from '../tokens/validity.ts'
import type { Times } from './contract.ts'
import { showCustomClaims, showToken } from './introspection.ts'
import type { KeyRing, SigningAlg } from './keys.ts'

/** The media type of a JWT access token (RFC 9068, 2.1). */
const TYPE = 'at+jwt'

/** Characters of a `jti`. */
const ID_LENGTH = 22

interface SignerParts {
  store: Store
  times: Times
  keys: Pick<KeyRing, 'signing' | 'ecSigning'>
  issuer: string
  roles: RoleNames
  readRegistry: () => Promise<Registry>
  errors: typeof OidcErrors
}

/**
 * Signs access tokens for resources whose tokens are JWTs (RFC 9068). A token says what tokeninfo and introspection say of its record at that
 * time, so whoever verifies it alone learns no more, and nothing later.
 */
export function createTokenSigner ({ store, times, keys, issuer, roles, readRegistry, errors }: SignerParts) {
  const [users, clients, grants] = [store.collection<UserRecord>('users'), store.collection<ClientRecord>('clients'), store.collection<GrantRecord>('grants')]
  const imported = new Map<string, ReturnType<typeof createPrivateKey>>()

  function findKey (alg: SigningAlg): { kid: string, key: ReturnType<typeof createPrivateKey> } {
    const [jwk] = alg === 'ES256' ? keys.ecSigning : keys.signing
    if (jwk === undefined) throw new Error(`there is no signing key for ${alg}`)
    const key = imported.get(jwk.kid) ?? createPrivateKey({ key: jwk, format: 'jwk' })
    imported.set(jwk.kid, key)
    return { kid: jwk.kid, key }
  }

  /**
   * The text of a token that is about to be issued.
   * @throws InvalidGrant for a token that would not be valid, InvalidTarget for one that is too long to be sent
   */
  return async function sign (record: UnnamedToken, alg: SigningAlg): Promise<string> {
    const { user_id, client_id, grant_id } = record
    const [user, client, grant, registry] = await Promise.all([
      users.get(user_id), clients.get(client_id), grant_id === undefined ? null : grants.get(grant_id), readRegistry()
    ])
    const document: TokenRecord = { ...record, id: '' }
    const valid = checkValidity({ document, linked: { user_id: user, client_id: client, grant_id: grant, registry_id: registry } }, toTimestamp(times.now()))
    const caller = valid && toCaller(valid, roles.admin)
    if (client === null || valid === null || caller === null) throw new errors.InvalidGrant('the token would not be valid: its session has ended, or a role that the resource requires is missing')
    const held = Object.keys(caller.user.roles)
    const claims = defined({
      ...showCustomClaims('jwt', valid),
      ...showToken(document, client, registry, issuer),
      iat: times.toEpoch(record.created_at),
      exp: times.toEpoch(record.expired_at),
      jti: randomText(ID_LENGTH),
      roles: held.length > 0 ? held : undefined,
      cnf: record.jkt === undefined ? undefined : { jkt: record.jkt },
      act: record.act,
      ...showStrength(record.auth, times.toEpoch)
    })
    const { kid, key } = findKey(alg)
    const text = await signJwt(claims, { alg, kid, typ: TYPE }, key)
    if (text.length > LIMITS.accessToken) throw new errors.InvalidTarget('the token would be too long: it has too many scopes, roles or claims')
    return text
  }
}

export type SignToken = ReturnType<typeof createTokenSigner>
