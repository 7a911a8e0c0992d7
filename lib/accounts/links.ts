import { INTERACTION } from '../issuer.ts'
import type { Purpose } from '../tickets/tickets.ts'

/** An embedder's own pages, as URLs with `{token}` in the place of the link's token. */
export interface LinkOptions {
  reset?: string
  verify?: string
  invite?: string
  signUp?: string
}

/** The pages of the service, under the path of the account pages. */
export const PAGE_PATHS = {
  forgot: '/forgot',
  reset: '/reset',
  'sign-up': '/sign-up',
  verify: '/verify',
  change: '/verify',
  invite: '/invitation',
  undo: '/undo',
  enrol: '/enrol'
} as const satisfies Record<Purpose | 'forgot', string>

/** The paths of links that 1158eb3 has mailed. They lead to the page of an undo. */
export const EARLIER_UNDO_PATHS = ['/undo-factor', '/undo-link'] as const

/** The path of these pages where account pages are off. */
export const DEFAULT_ACCOUNT_PATH = '/account'

const TOKEN = '{token}'

/** The embedder's link for each purpose. An undo and an enrolment always use our own page. */
const OPTIONS: Partial<Record<Purpose, keyof LinkOptions>> = { reset: 'reset', verify: 'verify', change: 'verify', invite: 'invite', 'sign-up': 'signUp' }

/** @throws Error that names the option, for a URL without the token */
export function checkLinks (links: LinkOptions = {}): void {
  for (const [name, url] of Object.entries<string>({ ...links })) {
    const isUrl = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
    if (!isUrl || !url.includes(TOKEN)) throw new Error(`option links.${name}: must be an http or https URL with ${TOKEN}`)
  }
}

/**
 * Writes the URL of a link.
 * @param uid the interaction in which the person asked for a link `sign-up` or `reset`, which continues it in the same browser
 */
export type WriteLink = (purpose: Purpose, token: string, uid?: string) => string

/** Writes the URL of the page for a forgotten password. */
export function createForgotLink ({ getIssuer, accountPath }: { getIssuer: () => URL, accountPath: string }): () => string {
  return () => `${getIssuer().href.replace(/\/$/, '')}${accountPath}${PAGE_PATHS.forgot}`
}

/** Writes the URL of the page of a client. */
export function createClientLink ({ getIssuer, accountPath }: { getIssuer: () => URL, accountPath: string }): (client_id: string) => string {
  return (client_id) => `${getIssuer().href.replace(/\/$/, '')}${accountPath}/clients/${client_id}`
}

/** Writes the URL of the page of a person's own tokens. */
export function createTokensLink ({ getIssuer, accountPath }: { getIssuer: () => URL, accountPath: string }): () => string {
  return () => `${getIssuer().href.replace(/\/$/, '')}${accountPath}/tokens`
}

/** Writes the URL of the sign-in to the account pages. */
export function createSignInLink ({ getIssuer, accountPath }: { getIssuer: () => URL, accountPath: string }): () => string {
  return () => `${getIssuer().href.replace(/\/$/, '')}${accountPath}/sign-in`
}

/**
 * @param parts.getIssuer must not use the host of a request, because whoever controls the host of a link receives its token
 * @param parts.accountPath the path of the account pages
 */
export function createLinks ({ getIssuer, accountPath, links = {} }: {
  getIssuer: () => URL, accountPath: string, links?: LinkOptions | undefined
}): WriteLink {
  return (purpose, token, uid) => {
    const option = OPTIONS[purpose]
    const own = option === undefined ? undefined : links[option]
    if (own !== undefined) return own.replaceAll(TOKEN, token)
    const path = uid === undefined ? `${accountPath}${PAGE_PATHS[purpose]}` : `/api/v1${INTERACTION}/${uid}${PAGE_PATHS[purpose]}`
    return `${getIssuer().href.replace(/\/$/, '')}${path}?token=${token}`
  }
}
