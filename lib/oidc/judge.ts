import type { errors as OidcErrors, KoaContextWithOIDC } from 'oidc-provider'
import type { Progress } from '../sign-in/steps/step.ts'
import { toBase } from '../sign-in/step-up.ts'
import { createBrowsers } from '../browsers/browsers.ts'
import type { Store } from '../store/port.ts'
import { type MaySignIn, findAskedAcr } from '../ways/may-sign-in.ts'
import { listProofs, requireProofs, requireUserEpoch } from './sign-in-sessions.ts'

/** The reason of a prompt that asks the user to prove more than they have proved in this browser. */
export const PROOFS_DEMANDED = 'proofs_demanded'

/**
 * Whether an authorization has to ask its user for more proofs: with an existing session, at the end of a sign-in, after consent, and at
 * the confirmation of a device.
 */
export function createProofsCheck (maySignIn: MaySignIn, errors: Pick<typeof OidcErrors, 'UnmetAuthenticationRequirements'>) {
  return async (ctx: KoaContextWithOIDC): Promise<boolean> => {
    const { session, client, params } = ctx.oidc
    if (session?.accountId === undefined) return false
    const judged = await maySignIn({
      user_id: session.accountId,
      epoch: requireUserEpoch(ctx),
      proofs: requireProofs(ctx),
      client_id: client?.clientId,
      acr: findAskedAcr(params?.acr_values)
    })
    if (!judged.may && judged.because === 'unmet') {
      throw new errors.UnmetAuthenticationRequirements('the user cannot sign in as acr_values asks')
    }
    return !judged.may
  }
}

/** What a sign-in of an interaction adds to. Undefined if the user is asked for all: then there is another reason to ask. */
export async function findBase (store: Store, now: number, { prompt, session }: {
  prompt: { name: string, reasons: string[] }, session?: { uid: string, accountId?: string | undefined } | undefined
}): Promise<Progress | undefined> {
  const isStepUp = prompt.name === 'login' && prompt.reasons.every((reason) => reason === PROOFS_DEMANDED)
  if (session?.accountId === undefined || !isStepUp) return undefined
  for await (const batch of createBrowsers(store).readAt(session.uid)) {
    const record = batch.find(({ user_id }) => user_id === session.accountId)
    if (record !== undefined) return toBase({ user_id: session.accountId, user_epoch: record.user_epoch ?? 0, proofs: listProofs(record) }, now)
  }
  return undefined
}
