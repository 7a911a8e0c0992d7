import type { ClientRecord } from '../records.ts'

/** The claims a scope stands for. Everyone who signs in is told who it is; roles are told when they are asked for. */
export const CLAIMS: Readonly<Record<string, readonly string[]>> = {
  openid: ['sub', 'preferred_username', 'name', 'email', 'email_verified'],
  profile: ['preferred_username', 'name'],
  email: ['email', 'email_verified'],
  roles: ['roles']
}

/** Scopes that any client may ask for, beside its own. */
export const COMMON_SCOPES: ReadonlySet<string> = new Set(['openid', 'offline_access', ...Object.keys(CLAIMS)])

/** Splits a scope parameter. */
export function splitScopes (text: unknown): string[] {
  return typeof text === 'string' ? text.split(' ').filter(Boolean) : []
}

/** The first scope that this client may not ask for. */
export function findForeignScope (asked: Iterable<string>, own: readonly string[]): string | undefined {
  for (const scope of asked) if (!COMMON_SCOPES.has(scope) && !own.includes(scope)) return scope
}

/**
 * What a client gets that asks for nothing (RFC 6749, 3.3): all of its own. One that has none may still sign users in,
 * and an authorization without any scope is none, so it gets `openid`.
 */
export function chooseDefaultScope (own: readonly string[]): string {
  return own.length > 0 ? own.join(' ') : 'openid'
}

/** What a token that was minted without oidc-provider was granted, in oidc-provider's terms. */
export function describeMinted (record: { scopes?: string[] }, client: Pick<ClientRecord, 'scopes'>): string {
  const own = record.scopes === undefined ? client.scopes : client.scopes.filter((scope) => record.scopes?.includes(scope))
  return [...new Set(['openid', ...own])].join(' ')
}
