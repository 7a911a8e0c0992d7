import type { ClientRecord } from '../records.ts'

/** The claims of each scope (OpenID Connect Core, 5.4). `openid` alone tells an app who the user is, and nothing about them. */
export const CLAIMS: Readonly<Record<string, readonly string[]>> = {
  openid: ['sub'],
  profile: ['preferred_username', 'name'],
  email: ['email', 'email_verified'],
  roles: ['roles']
}

/** The `acr` of a sign-in with a password: level 1 of ISO/IEC 29115 (OpenID Connect Core, 2). */
export const PASSWORD_ACR = '1'

/** Scopes that any client may request, beside its own. */
export const COMMON_SCOPES: ReadonlySet<string> = new Set(['openid', 'offline_access', ...Object.keys(CLAIMS)])

/** Splits a scope parameter. */
export function splitScopes (text: unknown): string[] {
  return typeof text === 'string' ? text.split(' ').filter(Boolean) : []
}

/** The first scope that this client may not request. */
export function findForeignScope (requested: Iterable<string>, own: readonly string[]): string | undefined {
  for (const scope of requested) if (!COMMON_SCOPES.has(scope) && !own.includes(scope)) return scope
}

/**
 * The scopes of a client that requests none (RFC 6749, 3.3): all of its own. A client without scopes may still sign users
 * in, and oidc-provider needs at least one scope, so it gets `openid`.
 */
export function chooseDefaultScope (own: readonly string[]): string {
  return own.length > 0 ? own.join(' ') : 'openid'
}

/** The scope parameter of a minted token. */
export function describeMinted (record: { scopes?: string[] }, client: Pick<ClientRecord, 'scopes'>): string {
  const own = record.scopes === undefined ? client.scopes : client.scopes.filter((scope) => record.scopes?.includes(scope))
  return [...new Set(['openid', ...own])].join(' ')
}
