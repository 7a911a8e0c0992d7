import type { Complete } from '../../schemas/common.ts'
import type { Resource } from '../../schemas/resource.ts'
import type { ResourceEntry } from './registry.ts'

/** The resource as the API shows it. */
export function showResource (resourceId: string, entry: ResourceEntry): Complete<Resource> {
  return {
    resourceId,
    id: entry.uri,
    name: entry.name,
    scopes: entry.scopes,
    selfService: entry.self_service,
    documents: entry.documents,
    accessTtl: entry.access_ttl,
    tokenFormat: entry.token_format,
    tokenAlg: entry.token_format === 'jwt' ? entry.token_alg ?? 'RS256' : undefined,
    roles: entry.roles,
    claims: entry.claims as Resource['claims'],
    fixed: entry.fixed === true ? true : undefined,
    createdAt: entry.created_at,
    modifiedAt: entry.modified_at
  }
}
