import type { ClientRecord } from '../records.ts'

/** The claims of each scope. `openid` alone gives the user's identity; roles are given only for the scope `roles`. */
export const CLAIMS: Readonly<Record<string, readonly string[]>> = {
  openid: ['sub', 'preferred_username', 'name', 'email', 'email_verified'],
  profile: ['preferred_username', 'name'],
  email: ['email', 'email_verified'],
  roles: ['roles']
}

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
