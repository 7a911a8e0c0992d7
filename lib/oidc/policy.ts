import type { Grant, interactionPolicy, KoaContextWithOIDC } from 'oidc-provider'
import { hash, randomBytes } from 'node:crypto'
import { API_SCOPES, isApiScope } from '../api-scopes.ts'
import { type Registry, findDeclarer } from '../resources/registry.ts'
import { nameSid } from '../logout/record.ts'
import type { PageScope } from '../pages/contract.ts'
import { endsWithCode } from '../proofs.ts'
import { type OurClient, toOurs, requireClient } from './context.ts'
import { type ProofChecks, PROOFS_DEMANDED } from './judge.ts'
import { isNativeUri } from '../clients/registered-uris.ts'

/**
 * The consents that a sign-in session stores for a client: resource -> scope -> identifyConsent. The key of scopes without a
 * resource is ''.
 */
interface RememberedConsent { consented?: { [resource: string]: { [scope: string]: string } } }

/** The prompt after a sign-in with a recovery code, and the key of its result. */
export const CODE_USED = 'code_used'

const unsupported = (check: string) => new Error(`oidc-provider has no check ${check}: this release of it is not supported`)

/**
 * With prompt=none, an app that the person has not allowed gets one answer, that of the missing consent, whatever else is asked of the sign-in:
 * it would learn which factors there are, and when they were used. It still learns that nobody is signed in.
 */
function askForConsentFirst (login: interactionPolicy.Prompt, consent: interactionPolicy.Prompt): void {
  const needed = new WeakMap<KoaContextWithOIDC, Promise<boolean>>()

  async function needsConsent (ctx: KoaContextWithOIDC): Promise<boolean> {
    if (!ctx.oidc.promptPending('none') || ctx.oidc.session?.accountId === undefined) return false
    const answers = await Promise.all(consent.checks.map(async ({ check }) => await check(ctx)))
    return answers.includes(true)
  }

  for (const one of login.checks) {
    if (one.reason === 'no_session') continue
    const { check } = one
    one.check = async (ctx) => {
      const isFirst = needed.get(ctx) ?? needsConsent(ctx)
      needed.set(ctx, isFirst)
      return !await isFirst && await check(ctx)
    }
  }
}

/**
 * After a sign-in with a recovery code, and before anything else is asked, a page says how many are left. The person is signed in by then, so it
 * can lead to their account. It proves nothing, and is shown once.
 */
function addCodeUsed (
  policy: interactionPolicy.DefaultPolicy, login: interactionPolicy.Prompt, { Check, Prompt }: Pick<typeof interactionPolicy, 'Check' | 'Prompt'>
): void {
  policy.add(new Prompt({ name: CODE_USED }, new Check(CODE_USED, 'End-User has to read that they used a backup code', (ctx) => {
    const { result } = toOurs(ctx)
    return result?.login !== undefined && endsWithCode(result.login.proofs ?? []) && result[CODE_USED] === undefined
  })), policy.indexOf(login) + 1)
}

/**
 * Decides when a user is prompted. This is oidc-provider's policy with these changes. A first-party client needs no consent,
 * except in the device flow, because there the client's id does not prove who started the flow. Whoever has not proved what is demanded
 * of them signs in, also with a session. A public client counts as native by
 * the redirect URI of the request, not by all of its registered URIs.
 */
export function createPolicy (
  { base, Check, Prompt }: typeof interactionPolicy, signUp: boolean, { needsProofs, settle }: ProofChecks
): interactionPolicy.DefaultPolicy {
  const policy = base()
  // Initiating User Registration via OpenID Connect 1.0: this prompt comes before the sign-in prompt, and ends with a sign-in.
  if (signUp) policy.add(new Prompt({ name: 'create', requestable: true }), 0)
  // After the others: the pages of a sign-in and of a consent let the person choose, so they answer it too.
  policy.add(new Prompt({ name: 'select_account', requestable: true }))
  const login = policy.get('login')
  const consent = policy.get('consent')
  if (login === undefined || consent === undefined) throw unsupported('login')
  addCodeUsed(policy, login, { Check, Prompt })
  login.checks.add(new Check(PROOFS_DEMANDED, 'End-User has to prove more', 'login_required', needsProofs))
  const aged = login.checks.get('max_age')
  if (aged === undefined) throw unsupported('max_age')
  const isTooOld = aged.check
  // oidc-provider calls the checks of a prompt at once.
  aged.check = async (ctx) => {
    await settle(ctx)
    return await isTooOld(ctx)
  }
  for (const reason of ['consent_prompt', 'native_client_prompt']) {
    if (consent.checks.get(reason) === undefined) throw unsupported(reason)
    consent.checks.remove(reason)
  }
  consent.checks.add(new Check('consent_prompt', 'consent prompt was not resolved', 'consent_required', (ctx) =>
    !requireClient(ctx).first_party && ctx.oidc.prompts.has('consent') && ctx.oidc.promptPending('consent')))
  // The decision of a person stores a client from a document, and stores it again with another content.
  consent.checks.add(new Check('document_not_accepted', 'nobody has allowed this version of the client', 'consent_required', (ctx) =>
    requireClient(ctx).document?.accepted === false))
  // RFC 8252, 8.6: a native app cannot authenticate itself, so its user is asked each time.
  consent.checks.add(new Check('native_client_prompt', 'native clients require End-User interaction', 'interaction_required', (ctx) => {
    const uri = ctx.oidc.params?.redirect_uri
    const isUnproven = typeof uri !== 'string' || (requireClient(ctx).public && isNativeUri(uri))
    return isUnproven && ctx.oidc.result?.consent === undefined
  }))
  askForConsentFirst(login, consent)
  return policy
}

/** The meaning of a scope, as users read it. */
function describeMeaning (scope: string, registry: Registry): string | undefined {
  if (isApiScope(scope)) return API_SCOPES[scope]
  const declarer = findDeclarer(registry, scope)
  return typeof declarer === 'string' ? registry.resources[declarer]?.scopes[scope] : undefined
}

/**
 * The scopes with their meanings, for a page.
 * @param at the name of the resource that the tokens are for. With `roles`, such tokens have the user's roles there
 */
export function describeScopes (scopes: string[], registry: Registry, at?: string): PageScope[] {
  return scopes.map((scope) => {
    const meaning = describeMeaning(scope, registry)
    return { scope, meaning, at: scope === 'roles' && at !== undefined ? at : undefined }
  })
}

/** Identifies a consent. Another name or other redirect URIs of the client, or another meaning of the scope, need a new consent. */
function identifyConsent ({ clientName, registered_uris, document }: OurClient, scope: string, registry: Registry): string {
  const content = [
    clientName,
    registered_uris,
    scope,
    describeMeaning(scope, registry),
    findDeclarer(registry, scope),
    ...(document === undefined ? [] : [document.print])
  ]
  return hash('sha256', JSON.stringify(content), 'base64url').slice(0, 22)
}

/**
 * Builds the grant of this authorization. Each authorization has its own, so that its token session ends without the others.
 * It holds the scopes that the user consented to now or earlier in this browser. codes.ts stores it together with the code.
 */
export function createGrantLoader (readRegistry: () => Promise<Registry>) {
  return async function loadGrant (ctx: KoaContextWithOIDC): Promise<Grant | undefined> {
    const { oidc } = ctx
    const { session, account } = oidc
    const client = requireClient(ctx)
    if (session === undefined || account === undefined) return undefined
    session.ensureClientContainer(client.clientId)
    session.sidFor(client.clientId, nameSid(session.uid, client.clientId))
    const remembered = session.authorizationFor(client.clientId) as RememberedConsent
    const registry = await readRegistry()

    function filterGranted (resource: string, requested: Iterable<string>): string[] {
      const scopes = [...requested]
      // The person has seen one version of a document, and has decided on no other.
      const isDecided = oidc.result?.consent !== undefined && toOurs(ctx).result?.consent?.document === client.document?.print
      if (isDecided) {
        const consent = Object.fromEntries(scopes.map((scope) => [scope, identifyConsent(client, scope, registry)]))
        remembered.consented = { ...remembered.consented, [resource]: { ...remembered.consented?.[resource], ...consent } }
      }
      const consented = remembered.consented?.[resource] ?? {}
      return scopes.filter((scope) => client.first_party || consented[scope] === identifyConsent(client, scope, registry))
    }

    // For a token without an audience, `roles` is a claim; for a resource it is power there. So these are two consents.
    const [resource] = Object.keys(oidc.resourceServers ?? {})
    const isRolesAtResource = (scope: string) => scope === 'roles' && resource !== undefined
    const requested = [...oidc.requestParamOIDCScopes]
    const own = [
      ...filterGranted('', requested.filter((scope) => !isRolesAtResource(scope))),
      ...filterGranted(resource ?? '', requested.filter(isRolesAtResource))
    ]
    const ofResources = Object.entries(oidc.resourceServers ?? {}).map(([uri, { scopes }]) =>
      [uri, filterGranted(uri, [...oidc.requestParamScopes].filter((scope) => scopes.has(scope)))] as const)
    if (own.length === 0 && ofResources.every(([, scopes]) => scopes.length === 0)) return undefined
    const grant = new oidc.provider.Grant({ accountId: account.accountId, clientId: client.clientId })
    grant.jti = randomBytes(32).toString('base64url')
    if (own.length > 0) grant.addOIDCScope(own.join(' '))
    for (const [uri, scopes] of ofResources) if (scopes.length > 0) grant.addResourceScope(uri, scopes.join(' '))
    return grant
  }
}
