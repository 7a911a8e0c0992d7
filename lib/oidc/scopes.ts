import type { TokenRecord } from '../records/token.ts'
import { COMMON_SCOPES, isApiScope } from '../api-scopes.ts'
import { type Registry, type ScopeHolder, listUsableScopes, narrowScopes } from '../resources/registry.ts'
import type { OurClient } from './context.ts'

/** The claims of each scope (OpenID Connect Core, 5.4). `openid` alone tells an app who the user is, and nothing about them. */
export const CLAIMS: Readonly<Record<string, readonly string[]>> = {
  openid: ['sub'],
  profile: ['preferred_username', 'name'],
  email: ['email', 'email_verified'],
  roles: ['roles']
}

/** Splits a scope parameter. */
export function splitScopes (text: unknown): string[] {
  return typeof text === 'string' ? text.split(' ').filter(Boolean) : []
}

/** Whether a client may request the scope beside its own. The roles of a user are power, which a client from a document never gets. */
export const isCommon = (scope: string, { document }: { document?: unknown }): boolean => (
  COMMON_SCOPES.has(scope) && !(scope === 'roles' && document !== undefined))

/** The first scope that this client may not request. */
export function findForeignScope (requested: Iterable<string>, own: readonly string[], client: { document?: unknown } = {}): string | undefined {
  for (const scope of requested) if (!isCommon(scope, client) && !own.includes(scope)) return scope
}

/**
 * The scopes of a client that requests none (RFC 6749, 3.3): its free scopes. Scopes that give power are never a default. A
 * client without free scopes may still sign users in, and oidc-provider needs at least one scope, so it gets `openid`.
 */
export function chooseDefaultScope ({ own_scopes, declared_scopes }: Pick<OurClient, 'own_scopes' | 'declared_scopes'>): string {
  const free = own_scopes.filter((scope) => !isApiScope(scope) && !declared_scopes.includes(scope))
  return free.length > 0 ? free.join(' ') : 'openid'
}

/**
 * The scopes of an authorization that names none, and perhaps a resource. One that does asks the person for the scopes of it that the client
 * may request: MCP clients leave them out where the resource does not name them. A first-party client names them itself, because nobody is
 * asked, and so does every client that wants power over this service.
 * @param ofResource the scopes of the resource that the client may request
 */
export function chooseScopeToAsk (client: Pick<OurClient, 'own_scopes' | 'declared_scopes' | 'first_party'>, ofResource: readonly string[]): string {
  const asked = client.first_party ? [] : ofResource.filter((scope) => !isApiScope(scope))
  return asked.length > 0 ? asked.join(' ') : chooseDefaultScope(client)
}

/** A granted scope parameter without the scopes that the client may no longer use. */
export function narrowGranted (scope: string | undefined, client: ScopeHolder, registry: Registry): string {
  const usable = listUsableScopes(client, registry)
  return splitScopes(scope).filter((one) => isCommon(one, client) || usable.includes(one)).join(' ')
}

/** The scope parameter of a token: the granted scopes that its client may still use. */
export function toScopeParameter (record: Pick<TokenRecord, 'scopes' | 'operator' | 'resource_id'>, client: ScopeHolder, registry: Registry): string {
  const common = record.operator === undefined ? (record.scopes ?? []).filter((scope) => isCommon(scope, client)) : ['openid']
  const hasIdentity = record.resource_id === undefined
  return [...(hasIdentity ? common : []), ...narrowScopes(record, client, registry)].join(' ')
}
