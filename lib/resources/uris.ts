/** The scheme of a URI, and its host with the port. */
const HEAD = /^[a-z][a-z0-9+.-]*:(?:\/\/[^/?#]*)?/i

/** A URI with a scheme and a host in lower case; everything else stays as it is. */
export const normalizeUri = (uri: string): string => uri.replace(HEAD, (head) => head.toLowerCase())

/** The same for a parameter of a request, which may come several times. What is no text stays as it is. */
export function normalizeUris (value: unknown): unknown {
  if (typeof value === 'string') return normalizeUri(value)
  return Array.isArray(value) ? value.map(normalizeUris) : value
}
