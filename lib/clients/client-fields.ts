import type { PatchClient } from '../../schemas/client.ts'
import { type Checks, checkFields, checkImage, checkRedirectUris, checkRoles, checkScopes } from '../checks.ts'
import { paramError, permError } from '../errors.ts'
import { checkName } from '../names.ts'
import type { ClientRecord } from '../records.ts'
import { COMMON_SCOPES, RESERVED_SCOPES, isApiScope } from '../api-scopes.ts'
import { type Registry, findDeclarer, listUsableScopes } from '../resources/registry.ts'
import type { Actor } from '../roles.ts'
import type { Change, Json } from '../store/port.ts'
import { changeTokenAuth } from './change-token-auth.ts'
import { checkKeys, toKeysChange } from './client-keys.ts'
import { isAdminScope, listGrants } from './kinds.ts'
import { findTokenAuth, isConfidential } from './token-auth.ts'

type Data = NonNullable<PatchClient['data']>

/** Fields that toClientChange translates: they are stored otherwise than they are given. */
type Translated = 'pkce' | 'disabled' | 'backchannelLogoutUri' | 'tokenAuth' | 'former' | 'jwks' | 'idTokenAlg' | 'signedRequests' | 'profile'

/** Checks of all other fields, which are stored under the same name. A schema field without a check or a record field does not compile. */
const CHECKS: Checks<Pick<ClientRecord, Exclude<keyof Data, Translated>>> = {
  redirectUris: checkRedirectUris,
  scopes: checkScopes,
  name: (text) => checkName('name', text),
  image: checkImage,
  grants: (grants) => [...new Set(grants)].sort(),
  first_party: (value) => value,
  roles: (roles) => checkRoles(roles),
  id_token_claims: (value) => value
}

/** Fields that only an administrator may set. */
const ADMIN_FIELDS = ['pkce', 'first_party', 'roles', 'disabled', 'profile'] as const

/**
 * Checks the scopes that a client gets. Callers cannot give a client more power than they have. An API scope requires that the
 * calling token has it. A declared scope requires an administrator or, where the resource allows users to give it, a token with all
 * of the user's power. Any caller may give a free scope.
 * @param held the scopes that the client can use already
 * @returns the ids of the resources of the declared scopes, for ClientRecord.declared
 * @throws ErrParam, ErrPerm
 */
function checkGiven (scopes: string[], held: string[], registry: Registry, actor: Actor): NonNullable<ClientRecord['declared']> {
  const { holds = () => true, isUnrestricted = true, isAdmin } = actor
  const declared: NonNullable<ClientRecord['declared']> = {}
  for (const [index, scope] of scopes.entries()) {
    const field = `scopes[${index}]`
    if (COMMON_SCOPES.has(scope)) throw paramError(field, 'is a scope that every client may request, and cannot be a scope of its own')
    const declarer = findDeclarer(registry, scope)
    if (declarer === null) throw paramError(field, 'is reserved: its resource was deleted')
    if (declarer !== undefined) declared[scope] = declarer
    if (held.includes(scope)) continue
    if (declarer === undefined && RESERVED_SCOPES.has(scope)) throw paramError(field, 'is reserved')
    if (isApiScope(scope) && !holds(scope)) throw permError(field, 'the access token does not have this scope itself')
    const isForUsers = !isAdminScope(scope, registry) && (declarer === undefined || isUnrestricted)
    if (!isForUsers && !isAdmin) throw permError(field, 'only an admin may add this scope')
  }
  return declared
}

/** Checks that the fields of a client fit together. Throws ErrParam. */
function checkKind (client: Pick<ClientRecord, 'grants' | 'redirectUris' | 'secret' | 'tokenAuth' | 'pkce' | 'profile'>): void {
  if (client.profile === 'fapi2') {
    if (findTokenAuth(client) !== 'private_key_jwt') throw paramError('profile', 'fapi2 requires tokenAuth private_key_jwt')
    if (client.pkce === 'optional') throw paramError('pkce', 'must be required with profile fapi2')
  }
  if (!isConfidential(client)) {
    if (listGrants(client).includes('client')) throw paramError('grants', 'must not have client, because a public client has no credentials')
    if (client.pkce === 'optional') throw paramError('pkce', 'must be required for a public client')
  }
}

/** @throws ErrParam when a client without keys must sign its requests */
function checkSigns ({ signedRequests, keys = [] }: Pick<ClientRecord, 'signedRequests' | 'keys'>): void {
  if (signedRequests === 'required' && keys.length === 0) throw paramError('signedRequests', 'must be optional for a client without keys')
}

/** Further input of a change of a client. */
interface ChangeParts {
  registry: Registry
  actor: Actor
  /** The current time, for timestamps. */
  time: string
  /** Checks a URL that the service will call. Throws Error with the reason. */
  checkUrl: (url: string) => string
}

/** Checks the URL where a client receives logout tokens. Throws ErrParam. */
function checkReceiver (url: string, checkUrl: ChangeParts['checkUrl']): string {
  try {
    return checkUrl(url)
  } catch (error) {
    throw paramError('backchannelLogoutUri', (error as Error).message)
  }
}

/**
 * Turns the fields that a caller gave into a change of a client.
 * @param before the present client; a new one has no id
 * @throws ErrParam, ErrPerm
 */
export function toClientChange (
  data: Data, before: Pick<ClientRecord, 'scopes' | 'redirectUris' | 'secret' | 'declared' | 'userId'> & Partial<ClientRecord>, { registry, actor, time, checkUrl }: ChangeParts
): Change {
  const { image, pkce, disabled, backchannelLogoutUri, tokenAuth, former, jwks, idTokenAlg, signedRequests, profile, ...fields } = data
  for (const field of ADMIN_FIELDS) if (data[field] !== undefined && !actor.isAdmin) throw permError(field, 'only an admin may set it')
  if (before.userId === undefined && fields.grants?.includes('client') === true) throw paramError('grants', 'must not have client, because nobody owns the client')
  if (tokenAuth === 'none' && jwks !== undefined && jwks.keys.length > 0) throw paramError('jwks', 'must be absent with tokenAuth none')
  const { keys: present, ...others } = before
  const keys = jwks === undefined ? present ?? [] : checkKeys(jwks, present, time)
  const keysChange = jwks === undefined ? {} : toKeysChange(keys)
  const method = changeTokenAuth({ tokenAuth, former }, { ...others, ...(keys.length > 0 && { keys }) }, actor, time)
  const set: Record<string, Json> = { ...keysChange.set, ...method.set, ...checkFields({ ...fields, ...(image !== undefined && image !== null && { image }) }, CHECKS) }
  const unset: string[] = [...method.unset ?? [], ...keysChange.unset ?? []]
  const change: Change = { ...method, set, unset }
  if (image === null) unset.push('image')
  if (backchannelLogoutUri === null) unset.push('backchannelLogoutUri', 'backchannel')
  else if (backchannelLogoutUri !== undefined) Object.assign(set, { backchannelLogoutUri: checkReceiver(backchannelLogoutUri, checkUrl), backchannel: true })
  if (profile === 'fapi2') set.profile = profile
  else if (profile === 'none') unset.push('profile')
  if (idTokenAlg === 'ES256') set.idTokenAlg = idTokenAlg
  else if (idTokenAlg === 'RS256') unset.push('idTokenAlg')
  if (signedRequests === 'required') set.signedRequests = signedRequests
  else if (signedRequests === 'optional') unset.push('signedRequests')
  if (pkce === 'optional') set.pkce = pkce
  else if (pkce === 'required') unset.push('pkce')
  if (disabled === true) {
    set.disabled_at = before.disabled_at ?? time
    if (before.disabled_at === undefined) change.increment = { epoch: 1 }
  } else if (disabled === false) unset.push('disabled_at')
  if (fields.first_party === false) unsetInstead(unset, set, 'first_party')
  if (fields.id_token_claims === false) unsetInstead(unset, set, 'id_token_claims')
  if (fields.roles !== undefined && Object.keys(fields.roles).length === 0) unsetInstead(unset, set, 'roles')
  if (set.scopes !== undefined) {
    const scopes = set.scopes as string[]
    const held = listUsableScopes(before, registry)
    const declared = checkGiven(scopes, held, registry, actor)
    if (Object.keys(declared).length > 0) set.declared = declared
    else unset.push('declared')
    const given = scopes.filter((scope) => held.includes(scope) ? before.admin_scopes?.includes(scope) : isAdminScope(scope, registry))
    if (given.length > 0) set.admin_scopes = given
    else unset.push('admin_scopes')
    if (before.reserved === true && !scopes.some((scope) => RESERVED_SCOPES.has(scope))) unset.push('reserved')
  }
  const changed = { ...before, ...Object.fromEntries(unset.map((field) => [field, undefined])), ...set }
  checkKind(changed)
  // Keys may be removed all the same: then no request passes.
  if (signedRequests !== undefined || tokenAuth !== undefined) checkSigns(changed)
  return change
}

/** Removes a field instead of storing a value that means the same. */
function unsetInstead (unset: string[], set: Record<string, Json>, field: string): void {
  delete set[field]
  unset.push(field)
}

/** Refuses what a client from a document cannot have: its document decides all other fields, and it has no owner. @throws ErrParam */
export function checkDocumentChange ({ data = {}, take_over }: PatchClient): void {
  const field = Object.keys(data).find((name) => name !== 'disabled')
  if (field !== undefined) throw paramError(field, 'comes from the document of the client; only disabled can be changed')
  if (take_over === true) throw paramError('take_over', 'a client from a document has no owner')
}
