import { LOOPBACK_URI } from '../loopback.ts'

/** The loopback URI without its port (RFC 8252, 7.3); null for any other URI. */
function withoutPort (uri: string): string | null {
  return LOOPBACK_URI.test(uri) ? uri.replace(LOOPBACK_URI, 'http://$1') : null
}

/** Whether the URI leads to an app on the user's own device (RFC 8252, 7), which cannot be authenticated. */
export function isNativeUri (uri: string): boolean {
  return LOOPBACK_URI.test(uri) || (URL.canParse(uri) && !/^https?:$/.test(new URL(uri).protocol))
}

/** Exact match (RFC 9700, 2.1), except for the port of a public client's loopback URI. */
export function isRegisteredUri (client: { registered_uris: string[], public: boolean }, uri: unknown): boolean {
  // A loopback URI may have any port, but it must be a valid one.
  if (typeof uri !== 'string' || !URL.canParse(uri)) return false
  if (client.registered_uris.includes(uri)) return true
  const bare = client.public ? withoutPort(uri) : null
  return bare !== null && client.registered_uris.some((registered) => withoutPort(registered) === bare)
}

/** Whether a page of this origin belongs to the client, by its redirect URIs. An opaque origin belongs to no client. */
export function isOwnOrigin (registeredUris: string[], origin: string): boolean {
  return origin !== 'null' && registeredUris.some((uri) => URL.parse(uri)?.origin === origin)
}
