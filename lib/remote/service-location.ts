import { parseServiceAddress, type ServiceAddress } from '../service-client/address.ts'

/** The location of the service: its base URL, or an issuer whose metadata contain the endpoint. */
export type ServiceLocation = { upstream: ServiceAddress } | { issuer: string, at: ServiceAddress }

/** Path below the service's base URL. */
export const TOKENINFO = '/api/v1/auth/tokeninfo'
/** Path below an issuer (OpenID Connect Discovery 1.0, 4). */
export const METADATA = '/.well-known/openid-configuration'

const TOKEN = /\/api\/v1\/auth\/token$/

/**
 * Parses the options for the location of the service. Exactly one of them must be present.
 * @throws Error that names the option
 */
export function parseLocation ({ upstream, issuer }: { upstream?: string, issuer?: string }): ServiceLocation {
  if (upstream !== undefined && issuer !== undefined) throw new Error('option issuer: cannot be combined with upstream')
  if (upstream !== undefined) return { upstream: parseServiceAddress(upstream) }
  if (issuer !== undefined) return { issuer, at: parseServiceAddress(issuer, 'issuer') }
  throw new Error('option upstream: is required, or issuer')
}

function parseMetadata (text: string, issuer: string): Record<string, unknown> {
  const metadata: unknown = JSON.parse(text)
  if (typeof metadata !== 'object' || metadata === null) throw new Error('the metadata are not an object')
  const { issuer: named } = metadata as Record<string, unknown>
  if (named !== issuer) throw new Error('the metadata are of another issuer than the option names')
  return metadata as Record<string, unknown>
}

function parseEndpoint (name: string, endpoint: string, issuer: string): ServiceAddress {
  const { origin, base } = parseServiceAddress(endpoint, 'issuer')
  if (issuer.startsWith('https:') && !origin.startsWith('https:')) throw new Error(`the metadata name a ${name} without TLS`)
  return { origin, base: base || '/' }
}

/**
 * Finds the token information endpoint in an issuer's metadata: `tokeninfo_endpoint`, or the sibling of this service's
 * token endpoint.
 * @param text the metadata document
 * @throws Error when the document belongs to another issuer (RFC 8414, 3.3), or has no endpoint or a less secure one
 */
export function readMetadata (text: string, issuer: string): ServiceAddress {
  const { tokeninfo_endpoint, token_endpoint } = parseMetadata(text, issuer)
  const sibling = typeof token_endpoint === 'string' && TOKEN.test(token_endpoint) ? `${token_endpoint}info` : undefined
  const endpoint = tokeninfo_endpoint ?? sibling
  if (typeof endpoint !== 'string') {
    throw new Error('the metadata name no tokeninfo_endpoint: is the issuer this service? The option upstream needs no metadata')
  }
  return parseEndpoint('tokeninfo_endpoint', endpoint, issuer)
}

/**
 * Finds the public keys in an issuer's metadata.
 * @throws Error when the document belongs to another issuer, or names no keys or less secure ones
 */
export function readKeysAddress (text: string, issuer: string): ServiceAddress {
  const { jwks_uri } = parseMetadata(text, issuer)
  if (typeof jwks_uri !== 'string') throw new Error('the metadata name no jwks_uri')
  return parseEndpoint('jwks_uri', jwks_uri, issuer)
}
