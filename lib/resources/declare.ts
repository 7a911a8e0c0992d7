import { IdentityError, paramError } from '../errors.ts'
import { COMMON_SCOPES, RESERVED_SCOPES, isApiScope } from '../api-scopes.ts'
import { type Registry, type ResourceEntry, findByUri, findDeclarer } from './registry.ts'

/** The registry must stay small, because the look-up of every token reads it. */
const MOST_RESOURCES = 100
/** The size of the registry as JSON, including the names of deleted resources. */
const MOST_BYTES = 64 * 1024

/** The part of the registry that a change replaces. */
type Declared = Pick<Registry, 'resources' | 'names'>

function exists (field: string, cause: string): IdentityError {
  return new IdentityError('RESOURCE_EXIST', `${field}: ${cause}`)
}

function checkName (registry: Declared, scope: string, resourceId: string): void {
  if (COMMON_SCOPES.has(scope) || isApiScope(scope)) throw exists('scopes', `'${scope}' is reserved`)
  const declarer = findDeclarer(registry, scope)
  if (declarer === undefined && RESERVED_SCOPES.has(scope)) throw exists('scopes', `'${scope}' is reserved`)
  if (declarer !== undefined && declarer !== null && declarer !== resourceId) throw exists('scopes', `'${scope}' belongs to another resource`)
}

/** Returns the names after replacing the scopes of a resource. A name that no resource declares any more stays reserved. */
function replaceNames ({ names }: Declared, resourceId: string, scopes: string[]): Registry['names'] {
  const kept = Object.entries(names).map(([scope, declarer]): [string, string | null] => [scope, declarer === resourceId ? null : declarer])
  return Object.fromEntries([...kept, ...scopes.map((scope): [string, string] => [scope, resourceId])])
}

/**
 * Adds a resource, or replaces it.
 * @throws RESOURCE_EXIST for a URI or a scope of another resource, and for a reserved scope; ErrParam past a limit
 */
export function putResource (registry: Registry, resourceId: string, entry: ResourceEntry): Registry {
  const other = findByUri(registry, entry.uri)
  if (other !== undefined && other[0] !== resourceId) throw exists('id', 'a resource with this id exists')
  const scopes = Object.keys(entry.scopes)
  for (const scope of scopes) checkName(registry, scope, resourceId)
  const resources = { ...registry.resources, [resourceId]: entry }
  if (Object.keys(resources).length > MOST_RESOURCES) throw paramError('id', `the maximum of ${MOST_RESOURCES} resources is reached`)
  const next = { ...registry, resources, names: replaceNames(registry, resourceId, scopes) }
  if (Buffer.byteLength(JSON.stringify(next)) > MOST_BYTES) {
    throw paramError('scopes', `all resources and reserved scopes together must not have more than ${MOST_BYTES} bytes as JSON`)
  }
  return next
}

/** Removes a resource; its scopes stay reserved. */
export function dropResource (registry: Registry, resourceId: string): Registry {
  const { [resourceId]: _, ...resources } = registry.resources
  return { ...registry, resources, names: replaceNames(registry, resourceId, []) }
}

/** The names that belong to a different resource than before, or to none any more. */
export function listMoved (before: Declared, after: Declared): string[] {
  return Object.keys(after.names).filter((scope) => findDeclarer(before, scope) !== findDeclarer(after, scope))
}
