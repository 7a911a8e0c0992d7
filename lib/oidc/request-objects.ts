import type { KoaContextWithOIDC, errors as OidcErrors } from 'oidc-provider'
import { explainRefusal } from '../crypto/public-keys.ts'
import type { Callers } from './callers.ts'
import { toOurClient } from './context.ts'

/** Characters of a signed request. Its parameters have the limits of all others too (parameter-limits.ts). */
const LONGEST = 12 * 1024

/** Seconds between `nbf` and `exp` (FAPI 2.0 Message Signing, 5.3.1). */
const LIFE = 60 * 60

/** The claims and the header of a signed request that nobody has verified yet. */
type Members = Record<string, unknown>

/** Why a request of a client is refused; undefined if its claims are in order. */
function findFault (
  { client_id, sub, exp, nbf }: Members, { alg }: Members, client: { clientId: string, profile?: 'fapi2' }, time: number
): string | undefined {
  // oidc-provider would take a request without it for one of nobody.
  if (client_id !== client.clientId) return 'the claim client_id must be the client'
  // Whoever sees the request could present it as an assertion of the client (RFC 9101, 4 and 10.8).
  if (sub === client.clientId) return 'the claim sub must not be the client'
  // oidc-provider tolerates more than a pushed request lives.
  if (typeof exp !== 'number' || exp <= time) return 'the claim exp must be a time to come'
  if (client.profile !== 'fapi2') return undefined
  // FAPI 2.0 Security Profile, 5.4.1.
  if (alg === 'RS256') return 'the algorithm must be PS256, ES256 or EdDSA'
  return typeof nbf === 'number' && nbf < exp && exp - nbf <= LIFE ? undefined : `the claim exp must be at most ${LIFE} seconds after the claim nbf`
}

const mustSign = (client: { requireSignedRequestObject?: boolean }): boolean => client.requireSignedRequestObject === true

/**
 * What oidc-provider does not check about a signed request (RFC 9101), and the signature, whose failures are counted here. oidc-provider
 * verifies it once more, by the same keys, and then uses none but the signed parameters.
 */
export function createRequestCheck (errors: Pick<typeof OidcErrors, 'InvalidRequest' | 'InvalidRequestObject'>, callers: Pick<Callers, 'isRequest'>) {
  return async function checkRequest (ctx: KoaContextWithOIDC, claims: Members, header: Members, client: object): Promise<void> {
    // oidc-provider wraps a pushed request of any kind in a JWT, and checked it when it came. The client may have to sign since then.
    if (ctx.oidc.entities.PushedAuthorizationRequest !== undefined) {
      if (header.alg === 'none' && mustSign(client)) throw new errors.InvalidRequest('the pushed request must be signed by this client')
      return
    }
    const request = String(ctx.oidc.params?.request)
    if (request.length > LONGEST) throw new errors.InvalidRequest(`request must have at most ${LONGEST} characters`)
    const fault = findFault(claims, header, toOurClient(client), Math.floor(Date.now() / 1000))
    if (fault !== undefined) throw new errors.InvalidRequestObject(fault)
    if (!await callers.isRequest(ctx, toOurClient(client).clientId, request, header)) throw new errors.InvalidRequestObject(explainRefusal(header))
  }
}

/** The payload of a JWT that oidc-provider has judged; undefined without one. */
function readPayload (jwt: unknown): Members | undefined {
  return typeof jwt === 'string' && jwt !== '' ? JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()) as Members : undefined
}

/** The parameters as the client has sent them: pushed, signed or as they are. */
export function readSent ({ oidc: { entities, body }, method, query }: KoaContextWithOIDC): Members {
  const form: Members = (method === 'POST' ? body : query) ?? {}
  return readPayload(entities.PushedAuthorizationRequest?.request ?? form.request) ?? form
}
