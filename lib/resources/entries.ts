import type { NewResource, PatchResource } from '../../schemas/resource.ts'
import { checkFields } from '../checks.ts'
import { defined } from '../defined.ts'
import { paramError } from '../errors.ts'
import { CHECKS, checkSelfService, checkTokenFormat } from './checks.ts'
import type { ResourceEntry } from './registry.ts'

/** The fields of a declaration as text. Scopes are shown in their order, so that it counts. */
function toText ({ created_at: _created, modified_at: _modified, ...fields }: ResourceEntry): string {
  return JSON.stringify(Object.entries(fields).sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** Whether two declarations are the same, whenever they were made. */
export const isSameEntry = (one: ResourceEntry, other: ResourceEntry): boolean => toText(one) === toText(other)

function checkIsNotApi (uri: string, api: string | undefined): void {
  if (api !== undefined && new URL(uri).href.replace(/\/$/, '') === new URL(api).href.replace(/\/$/, '')) {
    throw paramError('id', "must not be the URI of this service's own API")
  }
}

const isFilled = (fields: object): boolean => Object.keys(fields).length > 0

/** The stored fields of the format of tokens: defaults are not stored. */
const toTokenFields = (format: NewResource['tokenFormat'], alg: NewResource['tokenAlg']): Pick<ResourceEntry, 'token_format' | 'token_alg'> =>
  ({ ...(format === 'jwt' && { token_format: format }), ...(alg === 'ES256' && { token_alg: alg }) })

/**
 * The entry of a resource that is declared, or declared anew.
 * @param api the URI of the service's own API, if known
 * @throws ErrParam
 */
export function toEntry (
  data: NewResource, { time, api, before }: { time: string, api: string | undefined, before?: ResourceEntry | undefined }
): ResourceEntry {
  const { id: uri, selfService: self_service = [], accessTtl: access_ttl, tokenFormat, tokenAlg, claims = {}, ...fields } = checkFields(data, CHECKS)
  checkIsNotApi(uri, api)
  if (tokenAlg !== undefined && tokenFormat !== 'jwt') throw paramError('tokenAlg', 'must come with tokenFormat jwt')
  const settings = { ...fields, ...defined({ access_ttl }), ...toTokenFields(tokenFormat, tokenAlg), ...(isFilled(claims) && { claims }) }
  const entry = { uri, ...settings, self_service, created_at: before?.created_at ?? time, modified_at: time }
  checkSelfService(entry)
  checkTokenFormat(entry)
  return entry
}

/**
 * An entry after a patch. Null removes a field. A list of scopes that the patch leaves out keeps those scopes that are still declared.
 * @throws ErrParam
 */
export function patchEntry (entry: ResourceEntry, { roles, accessTtl, ...data }: PatchResource['data'], time: string): ResourceEntry {
  const given = checkFields({ ...data, roles: roles ?? undefined, accessTtl: accessTtl ?? undefined }, CHECKS)
  const { name = entry.name, scopes = entry.scopes } = given
  const isKept = (scope: string) => Object.hasOwn(scopes, scope)
  const isJwt = (given.tokenFormat ?? entry.token_format) === 'jwt'
  if (given.tokenAlg !== undefined && !isJwt) throw paramError('tokenAlg', 'must come with tokenFormat jwt')
  const alg = given.tokenAlg ?? entry.token_alg
  const claims = given.claims ?? entry.claims ?? {}
  const patched = defined({
    ...entry,
    name,
    scopes,
    self_service: given.selfService ?? entry.self_service.filter(isKept),
    documents: given.documents ?? entry.documents?.filter(isKept),
    roles: roles === null ? undefined : given.roles ?? entry.roles,
    token_format: isJwt ? 'jwt' as const : undefined,
    token_alg: isJwt && alg === 'ES256' ? alg : undefined,
    claims: isFilled(claims) ? claims : undefined,
    access_ttl: accessTtl === null ? undefined : given.accessTtl ?? entry.access_ttl,
    modified_at: time
  })
  checkSelfService(patched)
  checkTokenFormat(patched)
  return patched
}
