import type { Grant, interactionPolicy, KoaContextWithOIDC } from 'oidc-provider'
import { randomBytes } from 'node:crypto'
import { type OurClient, isNativeUri } from './clients.ts'

/** What a sign-in at a browser remembers of a client: the scopes its user agreed to. */
interface Remembered { consented?: string }

const ours = (ctx: KoaContextWithOIDC) => ctx.oidc.client as unknown as OurClient

/**
 * When a user is asked. As oidc-provider does it, but for two things: a first-party client needs no consent, and what is
 * native is decided by the URI that is redirected to rather than by all that the client registered.
 */
export function createPolicy ({ base, Check }: typeof interactionPolicy): interactionPolicy.DefaultPolicy {
  const policy = base()
  const consent = policy.get('consent')
  for (const reason of ['consent_prompt', 'native_client_prompt']) {
    if (consent?.checks.get(reason) === undefined) throw new Error(`oidc-provider has no check ${reason}: this release of it is not supported`)
    consent.checks.remove(reason)
  }
  consent!.checks.add(new Check('consent_prompt', 'consent prompt was not resolved', 'consent_required', (ctx) =>
    !ours(ctx).first_party && ctx.oidc.prompts.has('consent') && ctx.oidc.promptPending('consent')))
  // RFC 8252, 8.6: an app on a device cannot prove who it is, so its user is asked each time.
  consent!.checks.add(new Check('native_client_prompt', 'native clients require End-User interaction', 'interaction_required', (ctx) => {
    const uri = ctx.oidc.params?.redirect_uri
    return !ours(ctx).first_party && (typeof uri !== 'string' || isNativeUri(uri)) && ctx.oidc.result?.consent === undefined
  }))
  return policy
}

/**
 * The grant of this authorization: one of its own, so that what comes of one sign-in ends without the others. It holds what
 * the user agreed to now or earlier in this browser. It is written with the code (codes.ts), when there is one.
 */
export async function loadGrant (ctx: KoaContextWithOIDC): Promise<Grant | undefined> {
  const { oidc } = ctx
  const { session, account } = oidc
  const { clientId, first_party } = ours(ctx)
  if (session === undefined || account === undefined) return undefined
  const asked = oidc.requestParamOIDCScopes
  session.ensureClientContainer(clientId)
  const memory = session.authorizationFor(clientId) as Remembered
  if (oidc.result?.consent !== undefined) {
    memory.consented = [...new Set([...(memory.consented?.split(' ') ?? []), ...asked])].join(' ')
  }
  const consented = new Set(memory.consented?.split(' '))
  const granted = [...asked].filter((scope) => first_party || consented.has(scope))
  if (granted.length === 0) return undefined
  const grant = new oidc.provider.Grant({ accountId: account.accountId, clientId })
  grant.jti = randomBytes(32).toString('base64url')
  grant.addOIDCScope(granted.join(' '))
  return grant
}
