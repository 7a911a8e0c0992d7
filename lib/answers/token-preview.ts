import type { TokenPreview } from '../../schemas/answers.ts'
import { API_RESOURCE_ID } from '../api-scopes.ts'
import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import { listGrants } from '../clients/kinds.ts'
import { notFound } from '../clients/stored-clients.ts'
import { findWithReason } from '../clients/usable.ts'
import { type ClaimPlace, type CustomClaims, listDeclared, readClaims } from '../custom-claims.ts'
import { defined } from '../defined.ts'
import { toApiUri, toIssuer } from '../issuer.ts'
import { readSome } from '../lists/first.ts'
import { toClaims } from '../oidc/accounts.ts'
import { showCustomClaims, showToken } from '../oidc/introspection.ts'
import { findResource, listImplied } from '../oidc/resource-indicators.ts'
import { CLAIMS, chooseDefaultScope, chooseScopeToAsk, isCommon, splitScopes } from '../oidc/scopes.ts'
import type { ClientRecord } from '../records/client.ts'
import type { GrantRecord } from '../records/token.ts'
import { type UserRecord, findInactive, isActive } from '../records/user.ts'
import { type Registry, findByUri, findDeclarer, findEntry, listUsableScopes, readRegistry } from '../resources/registry.ts'
import { holdsRole } from '../roles.ts'
import { CLIENT_CREDENTIALS } from '../tokens/validity.ts'
import { userNotFound } from '../user-changes/user-changes.ts'
import type { Refusal } from './methods.ts'

/** Grants of one person and one app that are read for what the person has allowed. */
const MOST_GRANTS = 100

/** What a token would be asked for. */
export interface TokenQuestion {
  client_id: string
  /** Absent: the client acts for itself. */
  user_id?: string | undefined
  /** As in a request. Absent: what a request without it asks for. */
  scope?: string | undefined
  /** The URI of a resource (RFC 8707). */
  resource?: string | undefined
}

type Absent = TokenPreview['absent'][number]

/** A token as far as its claims go. */
interface Sketch {
  client: ClientRecord
  user: UserRecord | null
  registry: Registry
  granted: string[]
  resource?: string | undefined
  resource_id?: string | undefined
}

/** The scopes of a stored grant, of all its audiences. */
function listGranted ({ payload }: GrantRecord): string[] {
  const { openid, resources = {} } = (payload ?? {}) as { openid?: { scope?: string }, resources?: { [uri: string]: string } }
  return [openid?.scope, ...Object.values(resources)].flatMap(splitScopes)
}

/** Why a claim is not in the token of a sign-in, by the scope that has it. */
function explainAbsence (scope: string, { granted }: Pick<Sketch, 'granted'>): 'not_requested' | 'no_value' {
  return granted.includes(scope) ? 'no_value' : 'not_requested'
}

/** The claims about a person that the granted scopes give, as userinfo has them, and why others are absent. */
function pickClaims (user: UserRecord, sketch: Sketch): { claims: Record<string, unknown>, absent: Omit<Absent, 'in'>[] } {
  const all = toClaims(user)
  const names = Object.entries(CLAIMS).flatMap(([scope, claims]) => claims.map((claim) => ({ scope, claim })))
  const given = names.filter(({ scope, claim }) => sketch.granted.includes(scope) && Object.hasOwn(all, claim))
  const claims = Object.fromEntries(given.map(({ claim }) => [claim, all[claim]]))
  const missing = names.filter(({ claim }) => !Object.hasOwn(claims, claim))
  return { claims, absent: missing.map(({ scope, claim }) => ({ claim, reason: explainAbsence(scope, sketch) })) }
}

/** The operator's own claims that are declared for a place and have no value to show there. */
function listMissing (where: Absent['in'], place: ClaimPlace, declared: readonly (CustomClaims | undefined)[], given: object): Absent[] {
  const missing = [...listDeclared(place, declared).keys()].filter((claim) => !Object.hasOwn(given, claim))
  return missing.map((claim) => ({ in: where, claim, reason: 'no_value' }))
}

/** The claims of the ID token and of userinfo. */
function describePerson (sketch: Sketch, user: UserRecord, issuer: string): Pick<TokenPreview, 'id_token' | 'userinfo' | 'absent'> {
  if (!sketch.granted.includes('openid')) {
    return { absent: [{ in: 'id_token', claim: '*', reason: 'not_requested' }, { in: 'userinfo', claim: '*', reason: 'not_requested' }] }
  }
  const { claims, absent } = pickClaims(user, sketch)
  const isWhole = sketch.client.id_token_claims === true
  const ofIdToken: Absent[] = isWhole
    ? absent.map((one) => ({ in: 'id_token', ...one }))
    : [
        ...Object.keys(claims).filter((claim) => claim !== 'sub').map((claim): Absent => ({ in: 'id_token', claim, reason: 'in_userinfo' })),
        ...absent.map((one): Absent => ({ in: 'id_token', ...one }))
      ]
  const ofSignIn = ['acr', 'amr', 'auth_time'].map((claim): Absent => ({ in: 'id_token', claim, reason: 'not_requested' }))
  const declared = [sketch.client.claims]
  const [ofClient, inUserinfo] = [readClaims('id_token', declared, user), readClaims('userinfo', declared, user)]
  const id_token = { ...ofClient, iss: issuer, aud: sketch.client.id, ...(isWhole ? claims : { sub: user.id }) }
  const absentInIdToken = [...ofIdToken, ...ofSignIn, ...listMissing('id_token', 'id_token', declared, ofClient)]
  // Userinfo takes no token that is for a resource.
  if (sketch.resource !== undefined) {
    return { id_token, absent: [...absentInIdToken, { in: 'userinfo', claim: '*', reason: 'other_audience' }] }
  }
  const absentInUserinfo = [...absent.map((one): Absent => ({ in: 'userinfo', ...one })), ...listMissing('userinfo', 'userinfo', declared, inUserinfo)]
  return { id_token, userinfo: { ...inUserinfo, ...claims }, absent: [...absentInIdToken, ...absentInUserinfo] }
}

/** The operator's own claims of the access token, and of introspection. */
function describeCustom ({ client, user, registry, resource_id }: Sketch): { access_token: object, introspection: object, absent: Absent[] } {
  if (user === null) return { access_token: {}, introspection: {}, absent: [] }
  const entry = findEntry(registry, resource_id)
  const show = (place: 'introspection' | 'jwt') => showCustomClaims(place, { record: { resource_id }, user, client, registry })
  const [declared, introspection] = [[client.claims, entry?.claims], show('introspection')]
  const absent = listMissing('introspection', 'introspection', declared, introspection)
  // An opaque token says nothing itself.
  if (entry?.token_format !== 'jwt') return { access_token: introspection, introspection, absent }
  const access_token = show('jwt')
  return { access_token, introspection, absent: [...listMissing('access_token', 'jwt', declared, access_token), ...absent] }
}

/**
 * Tells what tokens would say, by the functions that make and introspect real ones. It issues nothing, and has no signature.
 * @param getIssuer returns undefined where there is no authorization server
 */
export function createTokenPreviews ({ store, now, recorder, getIssuer }: Pick<Base, 'store' | 'now' | 'recorder'> & { getIssuer: () => URL | undefined }) {
  const users = store.collection<UserRecord>('users')
  const grants = store.collection<GrantRecord>('grants')

  /** The scopes that a person has allowed the app in a token session that lives. */
  async function listAllowed (user_id: string, client_id: string): Promise<Set<string>> {
    const filter = { equal: { user_id, client_id }, since: { expired_at: toTimestamp(now()) } }
    const found = await readSome(grants, { filter, sort: [], limit: MOST_GRANTS })
    return new Set(found.flatMap(listGranted))
  }

  async function findConsentNeeded (client: ClientRecord, user: UserRecord | null, granted: readonly string[]): Promise<Refusal[]> {
    if (user === null || client.first_party === true) return []
    const allowed = await listAllowed(user.id, client.id)
    return granted.filter((scope) => !allowed.has(scope)).map((scope) => ({ reason: 'consent_needed', detail: scope }))
  }

  async function findOwnerRefusal (client: ClientRecord): Promise<Refusal[]> {
    if (!listGrants(client).includes('client') || client.userId === undefined) return [{ reason: 'grant_not_allowed', detail: 'client_credentials' }]
    const owner = await users.get(client.userId)
    return owner === null || !isActive(owner, toTimestamp(now())) ? [{ reason: 'owner_stopped', detail: client.id }] : []
  }

  async function findSubjectRefusals (client: ClientRecord, user: UserRecord | null): Promise<Refusal[]> {
    if (user === null) return await findOwnerRefusal(client)
    const inactive = findInactive(user, toTimestamp(now()))
    const grants = listGrants(client)
    const signsIn = grants.includes('code') || grants.includes('device')
    const refusals: Refusal[] = inactive === undefined ? [] : [{ reason: inactive }]
    return signsIn ? refusals : [...refusals, { reason: 'grant_not_allowed', detail: 'authorization_code' }]
  }

  /** The audience that a request has: the one it names, or the one that its scopes imply. */
  function findAudience (
    registry: Registry, { resource, scope }: TokenQuestion, apiUri: string
  ): Pick<Sketch, 'resource' | 'resource_id'> & { refusals: Refusal[] } {
    const implied = listImplied(scope, registry, apiUri)
    const [first] = implied
    const uri = resource ?? (first === apiUri ? undefined : first)
    if (uri === undefined) return { refusals: [] }
    const found = findResource(registry, uri, apiUri)
    if (found === undefined) return { refusals: [{ reason: 'unknown_resource', detail: uri }] }
    const others = implied.filter((one) => one !== found.audience)
    const resource_id = found.audience === apiUri ? API_RESOURCE_ID : findByUri(registry, found.audience)?.[0]
    return { resource: found.audience, resource_id, refusals: others.map((other) => ({ reason: 'scope_not_allowed', detail: other })) }
  }

  function findRoleRefusal ({ registry, resource_id, client, user }: Sketch): Refusal[] {
    const entry = findEntry(registry, resource_id)
    const roles = (user === null ? client.roles : user.roles) ?? {}
    if (entry?.roles === undefined || entry.roles.some((role) => holdsRole(roles, role))) return []
    return [{ reason: 'role_missing', detail: entry.roles.join(' ') }]
  }

  /** The scopes that a request asks for. A client that acts for itself gets no scopes about a person. */
  function listRequested (client: ClientRecord, registry: Registry, asked: TokenQuestion, resource: string | undefined): string[] {
    if (asked.scope !== undefined) return splitScopes(asked.scope)
    const own_scopes = listUsableScopes(client, registry)
    const declared_scopes = own_scopes.filter((scope) => findDeclarer(registry, scope) !== undefined)
    const holder = { own_scopes, declared_scopes, first_party: client.first_party === true }
    const ofResource = resource === undefined ? [] : Object.keys(findByUri(registry, resource)?.[1].scopes ?? {}).filter((scope) => own_scopes.includes(scope))
    return splitScopes(asked.user_id === undefined ? chooseDefaultScope(holder) : chooseScopeToAsk(holder, ofResource))
  }

  return async function previewToken (asked: TokenQuestion): Promise<TokenPreview> {
    const { client, reason } = await findWithReason(store, asked.client_id, toTimestamp(now()))
    if (client === null) throw notFound()
    const user = asked.user_id === undefined ? null : await users.get(asked.user_id)
    if (asked.user_id !== undefined && user === null) throw userNotFound()
    const issuer = getIssuer() ?? new URL('http://localhost')
    const registry = await readRegistry(store)
    const { resource, resource_id, refusals } = findAudience(registry, asked, toApiUri(issuer))
    const requested = listRequested(client, registry, asked, resource)
    const usable = listUsableScopes(client, registry)
    const granted = requested.filter((scope) => (user !== null && isCommon(scope, client)) || usable.includes(scope))
    const sketch: Sketch = { client, user, registry, granted, resource, resource_id }
    const reasons: Refusal[] = [
      ...(reason === undefined ? [] : [{ reason, detail: client.id }]),
      ...await findSubjectRefusals(client, user),
      ...refusals,
      ...requested.filter((scope) => !granted.includes(scope)).map((scope): Refusal => ({ reason: 'scope_not_allowed', detail: scope })),
      ...findRoleRefusal(sketch)
    ]
    const consents = await findConsentNeeded(client, user, granted)
    const kind = user === null ? CLIENT_CREDENTIALS : undefined
    const record = defined({ kind, user_id: user?.id ?? client.userId ?? '', client_id: client.id, scopes: granted, resource, resource_id })
    const introspection = showToken(record, client, registry, toIssuer(issuer))
    const ofSignIn = ['exp', 'iat', ...(user === null ? [] : ['acr', 'amr', 'auth_time'])]
    const { absent, ...person } = user === null ? { absent: [] } : describePerson(sketch, user, toIssuer(issuer))
    const custom = describeCustom(sketch)
    await recorder.insert({ type: 'token.previewed', id: client.id, user_id: user?.id ?? null })
    return {
      allowed: reasons.length === 0,
      reasons: [...reasons, ...consents],
      ...person,
      // What an access token says is what introspection answers. A JWT also has the roles that tokeninfo shows.
      access_token: { ...custom.access_token, ...introspection },
      introspection: { active: true, ...custom.introspection, ...introspection },
      absent: [...absent, ...custom.absent, ...ofSignIn.map((claim): Absent => ({ in: 'introspection', claim, reason: 'of_sign_in' }))]
    }
  }
}
