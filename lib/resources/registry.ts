import type { CustomClaims } from '../custom-claims.ts'
import type { ClientRecord } from '../records/client.ts'
import type { TokenRecord } from '../records/token.ts'
import type { Document, Store } from '../store/port.ts'
import { readShared } from '../store/shared.ts'
import { API_RESOURCE_ID, isApiScope } from '../api-scopes.ts'
import { normalizeUri } from './uris.ts'

/** A stored resource. */
export interface ResourceEntry {
  /** The resource indicator (RFC 8707): the audience of its tokens. */
  uri: string
  name: string
  /** Scope -> description. */
  scopes: { [scope: string]: string }
  /** Scopes that any user may give to their clients. */
  self_service: string[]
  /** Scopes that clients from documents may request. Absent: none. */
  documents?: string[]
  /** Seconds that access tokens for it live. Absent: as long as all others. */
  access_ttl?: number
  /** Its access tokens are JWTs (RFC 9068). Absent: they are opaque. */
  token_format?: 'jwt'
  /** How they are signed. Absent: RS256. */
  token_alg?: 'ES256'
  /** The user must have one of these roles. Absent: no role is needed. */
  roles?: string[]
  /** Claims of the operator's own about users in access tokens for it. Absent: none. */
  claims?: CustomClaims
  /** True for a resource that an option of the host declares. Only that option can change it. */
  fixed?: boolean
  created_at: string
  modified_at: string
}

/**
 * All declared resources, in one document. So a change of several names is a single write, each name belongs to only one resource,
 * and the look-up of a token reads the registry like the token's user and client.
 */
export interface Registry extends Document {
  revision: number
  resources: { [resourceId: string]: ResourceEntry }
  /** Scope -> id of its resource; null for a name that stays reserved after its resource was deleted. */
  names: { [scope: string]: string | null }
}

/** The id of the only document of the collection `resources`. Tokens refer to it by this id. */
export const REGISTRY_ID = 'registry'

export const EMPTY_REGISTRY: Registry = { id: REGISTRY_ID, revision: 0, resources: {}, names: {} }

/** The registry, to be read only. */
export async function readRegistry (store: Store): Promise<Registry> {
  return await readShared(store.collection<Registry>('resources'), REGISTRY_ID) ?? EMPTY_REGISTRY
}

/** The id of the resource that declares a scope; null for a reserved name; undefined for a free scope. */
export function findDeclarer ({ names }: Pick<Registry, 'names'>, scope: string): string | null | undefined {
  return Object.hasOwn(names, scope) ? names[scope] : undefined
}

/** The resource with this URI. Its scheme and host have no case. */
export function findByUri ({ resources }: Registry, uri: string): [id: string, entry: ResourceEntry] | undefined {
  const wanted = normalizeUri(uri)
  return Object.entries(resources).find(([, entry]) => normalizeUri(entry.uri) === wanted)
}

/** The resource of a token; undefined for one without, and for the service's own API. */
export const findEntry = ({ resources }: Pick<Registry, 'resources'>, resource_id: string | undefined): ResourceEntry | undefined =>
  resource_id !== undefined && Object.hasOwn(resources, resource_id) ? resources[resource_id] : undefined

/** The fields of a client that decide about its scopes. */
export type ScopeHolder = Pick<ClientRecord, 'scopes' | 'declared' | 'document'>

/** The scopes that clients from documents may request: those that resources open to them. A document may limit itself further. */
function listDocumentScopes ({ scope: own }: NonNullable<ClientRecord['document']>, { resources }: Pick<Registry, 'resources'>): string[] {
  const open = Object.values(resources).flatMap(({ documents = [] }) => documents)
  return own === undefined ? open : open.filter((scope) => own.includes(scope))
}

/**
 * The scopes that a client can use now. A declared scope counts only if the client got it for the resource that now declares it. A
 * client that got the scope while its name was free cannot use it.
 */
export function listUsableScopes ({ scopes, declared = {}, document }: ScopeHolder, registry: Pick<Registry, 'names' | 'resources'>): string[] {
  if (document !== undefined) return listDocumentScopes(document, registry)
  return scopes.filter((scope) => {
    const declarer = findDeclarer(registry, scope)
    return declarer === undefined || (declarer !== null && Object.hasOwn(declared, scope) && declared[scope] === declarer)
  })
}

/** Whether a scope is valid in a token for this resource. `resource_id` is undefined for a token without an audience. */
function isScopeOf (registry: Pick<Registry, 'names'>, scope: string, resource_id: string | undefined): boolean {
  const declarer = findDeclarer(registry, scope)
  if (resource_id === undefined) return declarer === undefined
  return resource_id === API_RESOURCE_ID ? isApiScope(scope) : declarer === resource_id
}

/** The effective scopes of a token: the granted scopes that its client can still use and that belong to its audience. */
export function narrowScopes (
  { scopes: granted, resource_id, operator }: Pick<TokenRecord, 'scopes' | 'resource_id' | 'operator'>, client: ScopeHolder, registry: Pick<Registry, 'names' | 'resources'>
): string[] {
  const usable = listUsableScopes(client, registry)
  // An operator may name scopes of the API that the client does not have.
  const extra = operator === undefined ? [] : (granted ?? []).filter((scope) => isApiScope(scope) && !usable.includes(scope))
  return [...usable.filter((scope) => granted?.includes(scope) ?? true), ...extra].filter((scope) => isScopeOf(registry, scope, resource_id))
}
