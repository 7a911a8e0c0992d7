import type { Grant, interactionPolicy, KoaContextWithOIDC } from 'oidc-provider'
import { randomBytes } from 'node:crypto'
import { type OurClient, isNativeUri } from './clients.ts'

/** What a sign-in session stores about a client: the scopes its user consented to. */
interface RememberedConsent { consented?: string }

const readClient = (ctx: KoaContextWithOIDC) => ctx.oidc.client as unknown as OurClient

/**
 * Decides when a user is prompted. This is oidc-provider's policy with two changes: a first-party client needs no consent,
 * and a client counts as native by the redirect URI of this request, not by all the URIs it registered.
 */
export function createPolicy ({ base, Check }: typeof interactionPolicy): interactionPolicy.DefaultPolicy {
  const policy = base()
  const consent = policy.get('consent')
  for (const reason of ['consent_prompt', 'native_client_prompt']) {
    if (consent?.checks.get(reason) === undefined) throw new Error(`oidc-provider has no check ${reason}: this release of it is not supported`)
    consent.checks.remove(reason)
  }
  consent!.checks.add(new Check('consent_prompt', 'consent prompt was not resolved', 'consent_required', (ctx) =>
    !readClient(ctx).first_party && ctx.oidc.prompts.has('consent') && ctx.oidc.promptPending('consent')))
  // RFC 8252, 8.6: a native app cannot authenticate itself, so its user is asked each time.
  consent!.checks.add(new Check('native_client_prompt', 'native clients require End-User interaction', 'interaction_required', (ctx) => {
    const uri = ctx.oidc.params?.redirect_uri
    return !readClient(ctx).first_party && (typeof uri !== 'string' || isNativeUri(uri)) && ctx.oidc.result?.consent === undefined
  }))
  return policy
}

/**
 * Builds the grant of this authorization. Each authorization has its own, so that its token session ends without the others.
 * It holds the scopes that the user consented to now or earlier in this browser. codes.ts stores it together with the code.
 */
export async function loadGrant (ctx: KoaContextWithOIDC): Promise<Grant | undefined> {
  const { oidc } = ctx
  const { session, account } = oidc
  const { clientId, first_party } = readClient(ctx)
  if (session === undefined || account === undefined) return undefined
  const requested = oidc.requestParamOIDCScopes
  session.ensureClientContainer(clientId)
  const remembered = session.authorizationFor(clientId) as RememberedConsent
  if (oidc.result?.consent !== undefined) {
    remembered.consented = [...new Set([...(remembered.consented?.split(' ') ?? []), ...requested])].join(' ')
  }
  const consented = new Set(remembered.consented?.split(' '))
  const granted = [...requested].filter((scope) => first_party || consented.has(scope))
  if (granted.length === 0) return undefined
  const grant = new oidc.provider.Grant({ accountId: account.accountId, clientId })
  grant.jti = randomBytes(32).toString('base64url')
  grant.addOIDCScope(granted.join(' '))
  return grant
}
