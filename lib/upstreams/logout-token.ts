import {
  compactVerify, createLocalJWKSet, decodeJwt, decodeProtectedHeader, errors, type JSONWebKeySet, type JWSHeaderParameters, type JWTPayload
} from 'jose'

/** Characters of a logout token. */
export const LONGEST_TOKEN = 8 * 1024

/** Seconds for which a logout token is good, and those that are tolerated because clocks differ. */
const GOOD_FOR = 5 * 60
const CLOCK = 60

/** Characters of `sub`, `sid` and `jti`. */
const LONGEST = 255

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

/** Only signatures that a public key verifies. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']

/** A logout token that is refused. The message says which rule it breaks, without what the token says. */
export class LogoutTokenError extends Error {
  override readonly name = 'LogoutTokenError'
}

/** What a logout token is about: a session, an identity, or both. */
export interface LogoutClaims {
  jti: string
  sub?: string | undefined
  sid?: string | undefined
}

/** Whom a logout token must come from, and whom it must be for. */
export interface LogoutParties {
  issuer: string
  clientId: string
}

function readText (claims: JWTPayload, claim: 'sub' | 'sid' | 'jti'): string | undefined {
  const value = claims[claim]
  if (value === undefined) return undefined
  if (typeof value !== 'string' || value === '' || value.length > LONGEST) {
    throw new LogoutTokenError(`${claim}: must be a text of 1 to ${LONGEST} characters`)
  }
  return value
}

function isObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether the claim says that it is a logout token, in the one way that the standard has. */
function isLogout (events: unknown): boolean {
  if (!isObject(events) || !Object.hasOwn(events, EVENT)) return false
  const member = events[EVENT]
  return isObject(member) && Object.keys(member).length === 0
}

/** Whether a time is the present, within the tolerance. */
function checkTimes ({ iat, exp, nbf = 0 }: JWTPayload, seconds: number): void {
  if (typeof iat !== 'number' || !(iat <= seconds + CLOCK)) throw new LogoutTokenError('iat: must be a time that is not ahead')
  if (!(iat >= seconds - GOOD_FOR)) throw new LogoutTokenError(`iat: must be at most ${GOOD_FOR} seconds ago`)
  if (exp !== undefined && !(typeof exp === 'number' && exp > seconds - CLOCK)) throw new LogoutTokenError('exp: is over')
  if (!(typeof nbf === 'number' && nbf <= seconds + CLOCK)) throw new LogoutTokenError('nbf: is ahead')
}

/**
 * Checks the claims of a logout token (OpenID Connect Back-Channel Logout 1.0, 2.6).
 * @throws LogoutTokenError
 */
function checkClaims (claims: JWTPayload, { issuer, clientId }: LogoutParties, seconds: number): LogoutClaims {
  if (claims.iss !== issuer) throw new LogoutTokenError('iss: must be the issuer of the upstream')
  if (![claims.aud].flat().includes(clientId)) throw new LogoutTokenError('aud: must name the client id of the upstream')
  checkTimes(claims, seconds)
  // Otherwise an ID token would pass.
  if (Object.hasOwn(claims, 'nonce')) throw new LogoutTokenError('nonce: must be absent')
  if (!isLogout(claims['events'])) throw new LogoutTokenError('events: must have the member of a logout, an empty object')
  const [jti, sub, sid] = [readText(claims, 'jti'), readText(claims, 'sub'), readText(claims, 'sid')]
  if (jti === undefined) throw new LogoutTokenError('jti: is required')
  if (sub === undefined && sid === undefined) throw new LogoutTokenError('sub: is required without sid')
  return { jti, sub, sid }
}

/** Whether the header is one of a logout token. The type is optional, and that of another kind of token refuses it. */
function checkHeader ({ alg, typ, crit }: JWSHeaderParameters): void {
  // No extension is one that a JWT of a provider needs, and RFC 7797 would give the payload another meaning.
  if (crit !== undefined) throw new LogoutTokenError('crit: must be absent')
  if (!ALGORITHMS.includes(String(alg))) throw new LogoutTokenError('alg: must be an asymmetric algorithm')
  const type = typ === undefined ? 'jwt' : String(typ).toLowerCase().replace(/^application\//, '')
  if (type !== 'jwt' && type !== 'logout+jwt') throw new LogoutTokenError('typ: must be logout+jwt')
}

/** Verifies a signature with the keys. Without an id of the key, each that fits is tried. */
async function hasSignature (token: string, keys: JSONWebKeySet): Promise<boolean> {
  const options = { algorithms: ALGORITHMS }
  try {
    await compactVerify(token, createLocalJWKSet(keys), options)
    return true
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return false
    for await (const key of error) if (await compactVerify(token, key, options).then(() => true, () => false)) return true
    return false
  }
}

/**
 * Verifies a logout token: first what costs nothing, then the signature.
 * @param readKeys the keys of the provider, among them the one with this id if there is one
 * @param now of the wall clock, by which the provider has signed
 * @throws LogoutTokenError, and what `readKeys` throws
 */
export async function verifyLogoutToken (
  token: string, parties: LogoutParties, readKeys: (kid: string | undefined) => Promise<JSONWebKeySet>, now = Date.now()
): Promise<LogoutClaims> {
  if (token.length > LONGEST_TOKEN) throw new LogoutTokenError(`logout_token: must have at most ${LONGEST_TOKEN} characters`)
  let header, claims
  try {
    [header, claims] = [decodeProtectedHeader(token), decodeJwt(token)]
  } catch {
    throw new LogoutTokenError('logout_token: must be a signed JWT')
  }
  checkHeader(header)
  const checked = checkClaims(claims, parties, Math.floor(now / 1000))
  const kid = typeof header.kid === 'string' ? header.kid : undefined
  if (!await hasSignature(token, await readKeys(kid))) throw new LogoutTokenError('logout_token: the signature is wrong, or its key is not known')
  return checked
}
