import type { PersonalTokens } from '../../schemas/options.ts'
import { API_SCOPES, isApiScope, isNeverPersonal } from '../api-scopes.ts'
import { type Registry, findDeclarer } from '../resources/registry.ts'
import { normalizeUri } from '../resources/uris.ts'

const ROLES = 'roles'

/** The scopes of a resource that the settings offer: those that they name, or else those that any person may give to an app of theirs. */
function listOfResource ({ scopes: allowed }: Pick<PersonalTokens, 'scopes'>, { resources }: Registry, resource_id: string): string[] {
  const entry = resources[resource_id]
  if (entry === undefined) return []
  return allowed === undefined ? entry.self_service : Object.keys(entry.scopes).filter((scope) => allowed.includes(scope))
}

/** The scopes that a personal access token may have: of a resource, or of this service. */
export function listOffered (settings: Pick<PersonalTokens, 'scopes'>, registry: Registry, resource_id: string | undefined): string[] {
  const { scopes: allowed } = settings
  const isOffered = (scope: string): boolean => !isNeverPersonal(scope) && (allowed?.includes(scope) ?? true)
  if (resource_id !== undefined) return [...listOfResource(settings, registry, resource_id), ROLES].filter(isOffered)
  const free = (allowed ?? []).filter((scope) => scope !== ROLES && !isApiScope(scope) && findDeclarer(registry, scope) === undefined)
  return [...Object.keys(API_SCOPES), ROLES, ...free].filter(isOffered)
}

/** Whether the settings offer tokens for a resource with this URI. */
export const isOfferedResource = ({ resources }: Pick<PersonalTokens, 'resources'>, uri: string): boolean =>
  resources?.some((one) => normalizeUri(one) === normalizeUri(uri)) ?? true
