import { isDeepStrictEqual } from 'node:util'
import type { PatchClient } from '../../schemas/client.ts'
import { type Checks, checkFields, checkImage, checkRedirectUris, checkRoles, checkScopes } from '../checks.ts'
import { checkClaims } from '../custom-claims.ts'
import { listFields, setOrUnset } from '../defined.ts'
import { paramError, permError } from '../errors.ts'
import { checkName } from '../names.ts'
import type { ClientRecord } from '../records/client.ts'
import { COMMON_SCOPES, RESERVED_SCOPES, isApiScope } from '../api-scopes.ts'
import { type Registry, findDeclarer, listUsableScopes } from '../resources/registry.ts'
import type { Actor } from '../roles.ts'
import type { Change } from '../store/port.ts'
import { changeTokenAuth } from './change-token-auth.ts'
import { checkKeys, toKeysChange } from './client-keys.ts'
import { isAdminScope, listGrants } from './kinds.ts'
import { findTokenAuth, isConfidential } from './token-auth.ts'
import { readMessage } from '../failure.ts'

type Data = NonNullable<PatchClient['data']>

/** Fields that are stored otherwise than they are given. */
type Translated = 'disabled' | 'backchannelLogoutUri' | 'tokenAuth' | 'former' | 'jwks'

/** All other fields, which are stored under the same name. A schema field without a record field does not compile. */
type Plain = Pick<ClientRecord, Exclude<keyof Data, Translated>>

/** The checks of these. A field without one does not compile. */
const CHECKS: Checks<Plain> = {
  redirectUris: checkRedirectUris,
  scopes: checkScopes,
  name: (text) => checkName('name', text),
  image: checkImage,
  grants: (grants) => [...new Set(grants)].sort(),
  pkce: (value) => value,
  first_party: (value) => value,
  profile: (value) => value,
  roles: (roles) => checkRoles(roles),
  idTokenAlg: (value) => value,
  signedRequests: (value) => value,
  id_token_claims: (value) => value,
  claims: (claims) => checkClaims(claims)
}

/** Fields that a caller may set to null. */
type Nullable = { [K in keyof Data]-?: null extends Data[K] ? K : never }[keyof Data]

/** The values that are stored as the absence of their field. A field that may be null and is not here does not compile. */
const ABSENT = {
  image: null,
  pkce: 'required',
  first_party: false,
  profile: 'none',
  roles: {},
  idTokenAlg: 'RS256',
  signedRequests: 'optional',
  id_token_claims: false,
  claims: {}
} as const satisfies Omit<Data, Translated> & { [K in Exclude<Nullable, Translated>]: null }

const MAY_BE_ABSENT = listFields(ABSENT)

/** Fields that only an administrator may set. */
const ADMIN_FIELDS = ['pkce', 'first_party', 'roles', 'disabled', 'profile', 'claims'] as const

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
export interface ChangeParts {
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
    throw paramError('backchannelLogoutUri', readMessage(error))
  }
}

type ClientChange = Change<ClientRecord>

/** The present client; a new one has no id. */
type Before = Pick<ClientRecord, 'scopes' | 'redirectUris' | 'secret' | 'declared' | 'userId'> & Partial<ClientRecord>

/** Changes the fields that are stored as they are given. @throws ErrParam */
function changePlain (fields: Omit<Data, Translated>): ClientChange {
  const absent = MAY_BE_ABSENT.filter((field) => isDeepStrictEqual(fields[field], ABSENT[field]))
  const kept = { ...fields } as Partial<Plain>
  for (const field of absent) delete kept[field]
  return { set: checkFields(kept, CHECKS), unset: absent }
}

/** @throws ErrParam */
function changeReceiver (url: string | null, checkUrl: ChangeParts['checkUrl']): ClientChange {
  return url === null ? { unset: ['backchannelLogoutUri', 'backchannel'] } : { set: { backchannelLogoutUri: checkReceiver(url, checkUrl), backchannel: true } }
}

function changeDisabled (disabled: boolean, { disabled_at }: Before, time: string): ClientChange {
  if (!disabled) return { unset: ['disabled_at'] }
  return disabled_at === undefined ? { set: { disabled_at: time }, increment: { epoch: 1 } } : { set: { disabled_at } }
}

/** Checks the scopes that a client gets, and stores who could give them. @throws ErrParam, ErrPerm */
function changeScopes (scopes: string[], before: Before, registry: Registry, actor: Actor): ClientChange {
  const held = listUsableScopes(before, registry)
  const declared = checkGiven(scopes, held, registry, actor)
  const given = scopes.filter((scope) => held.includes(scope) ? before.admin_scopes?.includes(scope) : isAdminScope(scope, registry))
  const { set, unset } = setOrUnset({
    declared: Object.keys(declared).length > 0 ? declared : undefined,
    admin_scopes: given.length > 0 ? given : undefined
  })
  const isFree = before.reserved === true && !scopes.some((scope) => RESERVED_SCOPES.has(scope))
  return { set, unset: isFree ? [...unset, 'reserved'] : unset }
}

type JoinedChange = ClientChange & Required<Pick<ClientChange, 'set' | 'unset'>>

/** Several changes as one. */
function joinChanges (...changes: ClientChange[]): JoinedChange {
  return {
    set: Object.assign({}, ...changes.map(({ set }) => set)) as JoinedChange['set'],
    unset: [...new Set(changes.flatMap(({ unset = [] }) => unset))],
    increment: changes.some(({ increment }) => increment?.epoch !== undefined) ? { epoch: 1 } : undefined
  }
}

/** @throws ErrPerm for fields that this actor may not set, ErrParam for fields that exclude each other */
function checkGivenFields (data: Data, { userId }: Before, { isAdmin }: Actor): void {
  for (const field of ADMIN_FIELDS) if (data[field] !== undefined && !isAdmin) throw permError(field, 'only an admin may set it')
  if (userId === undefined && data.grants?.includes('client') === true) throw paramError('grants', 'must not have client, because nobody owns the client')
  if (data.tokenAuth === 'none' && data.jwks !== undefined && data.jwks.keys.length > 0) throw paramError('jwks', 'must be absent with tokenAuth none')
}

/**
 * Turns the fields that a caller gave into a change of a client.
 * @throws ErrParam, ErrPerm
 */
export function toClientChange (data: Data, before: Before, { registry, actor, time, checkUrl }: ChangeParts): JoinedChange {
  checkGivenFields(data, before, actor)
  const { disabled, backchannelLogoutUri, tokenAuth, former, jwks, ...fields } = data
  const { keys: present, ...others } = before
  const keys = jwks === undefined ? present ?? [] : checkKeys(jwks, present, time)
  const authentication = changeTokenAuth({ tokenAuth, former }, { ...others, keys: keys.length > 0 ? keys : undefined }, actor, time)
  const plain = changePlain(fields)
  const change = joinChanges(
    jwks === undefined ? {} : toKeysChange(keys),
    authentication,
    plain,
    backchannelLogoutUri === undefined ? {} : changeReceiver(backchannelLogoutUri, checkUrl),
    disabled === undefined ? {} : changeDisabled(disabled, before, time),
    plain.set?.scopes === undefined ? {} : changeScopes(plain.set.scopes, before, registry, actor)
  )
  const changed = { ...before, ...Object.fromEntries(change.unset.map((field) => [field, undefined])), ...change.set }
  checkKind(changed)
  // Keys may be removed all the same: then no request passes.
  if (data.signedRequests !== undefined || tokenAuth !== undefined) checkSigns(changed)
  return change
}

/** Refuses what a client from a document cannot have: its document decides all other fields, and it has no owner. @throws ErrParam */
export function checkDocumentChange ({ data = {}, take_over }: PatchClient): void {
  const field = Object.keys(data).find((name) => name !== 'disabled')
  if (field !== undefined) throw paramError(field, 'comes from the document of the client; only disabled can be changed')
  if (take_over === true) throw paramError('take_over', 'a client from a document has no owner')
}
