/** The origin of another service, and the path of its API without a slash at the end. */
export interface ServiceAddress {
  origin: string
  base: string
}

/**
 * Reads the base URL of another service.
 * @throws Error that names the option, and never repeats the URL: it may contain a password
 */
export function parseServiceAddress (text: string, option = 'upstream'): ServiceAddress {
  if (!URL.canParse(text)) throw new Error(`option ${option}: must be an absolute URL`)
  const url = new URL(text)
  if (!/^https?:$/.test(url.protocol)) throw new Error(`option ${option}: must be an http or https URL`)
  if (url.username !== '' || url.password !== '') throw new Error(`option ${option}: must not hold credentials`)
  if (url.search !== '' || url.hash !== '') throw new Error(`option ${option}: must not have a query or a fragment`)
  return { origin: url.origin, base: url.pathname.replace(/\/+$/, '') }
}
