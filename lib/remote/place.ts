import { parseUpstream, type Upstream } from '../bridge/upstream.ts'

/** Where the service is: its base, or an issuer whose metadata tell. */
export type ServiceLocation = { upstream: Upstream } | { issuer: string, at: Upstream }

/** Below the base of a service. */
export const TOKENINFO = '/api/v1/auth/tokeninfo'
/** Below an issuer (OpenID Connect Discovery 1.0, 4). */
export const METADATA = '/.well-known/openid-configuration'

const TOKEN = /\/api\/v1\/auth\/token$/

/**
 * Where an issuer's metadata say that token information is: at `tokeninfo_endpoint`, or beside this service's token endpoint.
 * @param text the document
 * @throws Error when it is not that issuer's (RFC 8414, 3.3), names no such place, or one that is less safe
 */
export function readMetadata (text: string, issuer: string): Upstream {
  const metadata: unknown = JSON.parse(text)
  if (typeof metadata !== 'object' || metadata === null) throw new Error('the metadata are not an object')
  const { issuer: named, tokeninfo_endpoint, token_endpoint } = metadata as Record<string, unknown>
  if (named !== issuer) throw new Error('the metadata are of another issuer than the option names')
  const beside = typeof token_endpoint === 'string' && TOKEN.test(token_endpoint) ? `${token_endpoint}info` : undefined
  const endpoint = tokeninfo_endpoint ?? beside
  if (typeof endpoint !== 'string') throw new Error('the metadata name no tokeninfo_endpoint: is the issuer this service? The option upstream goes without metadata')
  const { origin, base } = parseUpstream(endpoint, 'issuer')
  if (issuer.startsWith('https:') && !origin.startsWith('https:')) throw new Error('the metadata name a tokeninfo_endpoint without TLS')
  return { origin, base: base || '/' }
}
