import ajvFormats from 'ajv-formats/dist/formats.js'
import { LIMITS } from '../schemas/common.ts'
import { LOOPBACK_URI } from './loopback.ts'

const isUri = ajvFormats.fullFormats.uri as (text: string) => boolean

const HTTPS = /^https:\/\/[^/?]/i
/** A private-use scheme is a reversed domain name (RFC 8252, 7.1), so it contains a dot. Schemes of browsers contain none. */
const PRIVATE = /^[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+:/i
/** The authority of a URI, between the scheme and the path. */
const AUTHORITY = /^[^:]+:\/\/([^/?#]*)/

/** Parameters that an authorization response may add to a redirect URI (RFC 6749, RFC 9207, JARM, OpenID Connect). */
const RESPONSE_PARAMETERS = new Set([
  'code', 'state', 'iss', 'error', 'error_description', 'error_uri', 'response', 'session_state', 'scope',
  'id_token', 'access_token', 'refresh_token', 'token_type', 'expires_in'
])

const isOpenScheme = (text: string): boolean => HTTPS.test(text) || LOOPBACK_URI.test(text) || PRIVATE.test(text)

/**
 * The reason why a redirect URI is refused; undefined for an acceptable one. It never quotes the URI.
 * @param isSchemeAllowed absent: those that anybody may register
 */
export function findRedirectUriProblem (text: string, isSchemeAllowed = isOpenScheme): string | undefined {
  if (text.length > LIMITS.uri) return `must not have more than ${LIMITS.uri} characters`
  if (!isUri(text)) return 'must be an absolute URI'
  if (text.includes('#')) return 'must not have a fragment'
  const authority = AUTHORITY.exec(text)?.[1] ?? ''
  if (authority.includes('@')) return 'must not have user information'
  const port = /:(\d+)$/.exec(authority)?.[1]
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) return 'must have a port from 1 to 65535'
  if (!isSchemeAllowed(text)) {
    return 'must begin with https://, with http:// and localhost, 127.0.0.1 or [::1], or with a private scheme that has a dot, such as com.example.app:'
  }
  const url = URL.parse(text)
  if (url === null) return 'must be an absolute URI'
  // A client could mistake the URI's own parameter for the response's.
  const parameter = [...url.searchParams.keys()].map((name) => name.toLowerCase()).find((name) => RESPONSE_PARAMETERS.has(name))
  if (parameter !== undefined) return `must not have the query parameter ${parameter}, which belongs to the response`
}
