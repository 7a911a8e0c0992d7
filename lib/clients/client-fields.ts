import type { PatchClient } from '../../schemas/client.ts'
import { type Checks, checkFields, checkImage, checkRedirectUris, checkRoles, checkScopes } from '../checks.ts'
import { paramError, permError } from '../errors.ts'
import { checkName } from '../names.ts'
import type { ClientRecord, Roles } from '../records.ts'
import { COMMON_SCOPES, isApiScope } from '../api-scopes.ts'
import { type Registry, findDeclarer, listUsableScopes } from '../resources/registry.ts'
import type { Actor } from '../roles.ts'
import type { Change, Json } from '../store/port.ts'
import { isAdminScope, listGrants } from './kinds.ts'

type Data = NonNullable<PatchClient['data']>

/** Checks of the fields that are stored under the same name. */
const CHECKS: Checks<Pick<ClientRecord, 'redirectUris' | 'scopes' | 'name' | 'image' | 'grants' | 'first_party' | 'roles' | 'id_token_claims'>> = {
  redirectUris: checkRedirectUris,
  scopes: checkScopes,
  name: (text) => checkName('name', text),
  image: checkImage,
  grants: (grants) => [...new Set(grants)].sort(),
  first_party: (value) => value,
  roles: (roles) => checkRoles(roles as Roles),
  id_token_claims: (value) => value
}

/** Fields that only an administrator may set. */
const ADMIN_FIELDS = ['pkce', 'first_party', 'roles', 'disabled'] as const

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
    if (isApiScope(scope) && !holds(scope)) throw permError(field, 'the access token does not have this scope itself')
    const isForUsers = !isAdminScope(scope, registry) && (declarer === undefined || isUnrestricted)
    if (!isForUsers && !isAdmin) throw permError(field, 'only an admin may add this scope')
  }
  return declared
}

/** Checks that the fields of a client fit together. Throws ErrParam. */
function checkKind (client: Pick<ClientRecord, 'grants' | 'redirectUris' | 'secret' | 'pkce' | 'roles'>): void {
  if (client.secret === undefined) {
    if (listGrants(client).includes('client')) throw paramError('grants', 'must not have client, because a public client has no credentials')
    if (client.pkce === 'optional') throw paramError('pkce', 'must be required for a public client')
  }
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
 * @param before the present client; a new one has no more than a secret
 * @throws ErrParam, ErrPerm
 */
export function toClientChange (
  data: Data, before: Pick<ClientRecord, 'scopes' | 'redirectUris' | 'secret' | 'declared'> & Partial<ClientRecord>, { registry, actor, time, checkUrl }: ChangeParts
): Change {
  const { image, pkce, disabled, backchannelLogoutUri, ...fields } = data
  for (const field of ADMIN_FIELDS) if (data[field] !== undefined && !actor.isAdmin) throw permError(field, 'only an admin may set it')
  const set: Record<string, Json> = checkFields({ ...fields, ...(image !== undefined && image !== null && { image }) }, CHECKS)
  const unset: string[] = []
  const change: Change = { set, unset }
  if (image === null) unset.push('image')
  if (backchannelLogoutUri === null) unset.push('backchannelLogoutUri', 'backchannel')
  else if (backchannelLogoutUri !== undefined) Object.assign(set, { backchannelLogoutUri: checkReceiver(backchannelLogoutUri, checkUrl), backchannel: true })
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
  }
  checkKind({ ...before, ...set, ...(pkce === 'required' && { pkce: undefined }) } as ClientRecord)
  return change
}

/** Removes a field instead of storing a value that means the same. */
function unsetInstead (unset: string[], set: Record<string, Json>, field: string): void {
  delete set[field]
  unset.push(field)
}
