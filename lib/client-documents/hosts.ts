import { DocumentError } from './error.ts'
import { MOST_URL } from './ids.ts'

/**
 * Whose documents are accepted: those of these hosts, or with `*` of any host at port 443. `redirects` are further hosts, and private
 * schemes with a colon, for one of them.
 */
export type DocumentHosts = '*' | readonly (string | { host: string, redirects: readonly string[] })[]

/**
 * The URL of a client id, which is compared as text: there is one way to write it (draft-ietf-oauth-client-id-metadata-document, 3).
 * @throws DocumentError
 */
export function readUrl (client_id: string): URL {
  const refuse = (reason: string) => new DocumentError('url', reason, { value: client_id })
  if (client_id.length > MOST_URL) throw refuse(`must have at most ${MOST_URL} characters`)
  const url = URL.parse(client_id)
  if (url === null || url.protocol !== 'https:') throw refuse('must be an https URL')
  if (url.username !== '' || url.password !== '') throw refuse('must not have user information')
  if (client_id.includes('#')) throw refuse('must not have a fragment')
  if (url.pathname === '/') throw refuse('must have a path')
  if (url.href !== client_id) throw refuse(`must be written as ${url.href.slice(0, MOST_URL)}`)
  return url
}

/** Reads the option. */
export function createHosts (hosts: DocumentHosts) {
  const entries = (hosts === '*' ? [hosts] : hosts).map((entry) => typeof entry === 'string' ? { host: entry, redirects: [] } : entry)
  const isAny = entries.some(({ host }) => host === '*')
  // A URL with the usual port names it no more.
  const named = new Map(entries.map(({ host, redirects }) => [host.toLowerCase().replace(/:443$/, ''), redirects]))

  return {
    /** Whether the operator has named the host. */
    isNamed: (host: string): boolean => named.has(host),

    /** @throws DocumentError */
    check ({ host, port }: URL): void {
      if (named.has(host) || (isAny && port === '')) return
      const what = isAny ? 'the host with this port, which is not 443,' : 'the host of the client_id'
      throw new DocumentError('host', `the operator has not named ${what} in oidc.documents, or IDENTITY_DOCUMENT_HOSTS`, { value: host })
    },

    /** The further hosts and private schemes to which documents of this host may redirect. */
    listRedirects: ({ host }: URL): readonly string[] => (named.get(host) ?? []).map((entry) => entry.toLowerCase())
  }
}

export type Hosts = ReturnType<typeof createHosts>
