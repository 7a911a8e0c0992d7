/** The origin of an upstream, and the path of its API without a slash at the end. */
export interface Upstream {
  origin: string
  base: string
}

/**
 * Reads the base URL of an upstream.
 * @throws Error that names the option, and never repeats the URL: it may contain a password
 */
export function parseUpstream (text: string, option = 'upstream'): Upstream {
  if (!URL.canParse(text)) throw new Error(`option ${option}: must be an absolute URL`)
  const url = new URL(text)
  if (!/^https?:$/.test(url.protocol)) throw new Error(`option ${option}: must be an http or https URL`)
  if (url.username !== '' || url.password !== '') throw new Error(`option ${option}: must not hold credentials`)
  if (url.search !== '' || url.hash !== '') throw new Error(`option ${option}: must not have a query or a fragment`)
  return { origin: url.origin, base: url.pathname.replace(/\/+$/, '') }
}
