import { isDeepStrictEqual } from 'node:util'
import type { errors as OidcErrors, KoaContextWithOIDC } from 'oidc-provider'
import type { Progress } from '../sign-in/steps/step.ts'
import { toBase } from '../sign-in/step-up.ts'
import { type Strength, toStrength } from '../proofs.ts'
import { createBrowsers } from '../browsers/browsers.ts'
import { type SignInSessionRecord, listProofs } from '../browsers/record.ts'
import type { Store } from '../store/port.ts'
import { type Judgement, type MaySignIn, findAskedAcr } from '../sign-in/may-sign-in.ts'
import type { Times } from './contract.ts'
import { requireProofs, requireUserEpoch } from './sign-in-sessions.ts'

/** The reason of a prompt that asks the user to prove more than they have proved in this browser. */
export const PROOFS_DEMANDED = 'proofs_demanded'

/** The judgement of each authorization in progress; undefined without a user. */
const judgements = new WeakMap<KoaContextWithOIDC, Promise<Judgement | undefined>>()

/**
 * The strength of what the user has proved, as it was judged in this request: a proof by a way that was removed since does not count.
 * @throws Error unless the user may go on: then there is no code
 */
export async function requireStrength (ctx: KoaContextWithOIDC): Promise<Strength> {
  const judged = await judgements.get(ctx)
  if (judged?.may !== true) throw new Error('the authorization was not judged')
  return judged.strength
}

/** What the policy asks about an authorization. */
export interface ProofChecks {
  /** Whether its user has to prove more: with an existing session, at the end of a sign-in, after consent, and at a device. */
  needsProofs (ctx: KoaContextWithOIDC): Promise<boolean>
  /** Resolves when the session says of its sign-in only what still stands. */
  settle (ctx: KoaContextWithOIDC): Promise<void>
}

export function createProofChecks (
  maySignIn: MaySignIn, errors: Pick<typeof OidcErrors, 'UnmetAuthenticationRequirements'>, toEpoch: Times['toEpoch']
): ProofChecks {
  async function judge (ctx: KoaContextWithOIDC): Promise<Judgement | undefined> {
    const { session, client, params } = ctx.oidc
    if (session?.accountId === undefined) return undefined
    const proofs = requireProofs(ctx)
    const judged = await maySignIn({
      user_id: session.accountId,
      epoch: requireUserEpoch(ctx),
      proofs,
      client_id: client?.clientId,
      acr: findAskedAcr(params?.acr_values)
    })
    const standing = judged.may ? judged.strength : judged.because === 'below' ? toStrength(judged.standing) : undefined
    // oidc-provider compares `max_age` with these fields, and writes them to ID tokens.
    if (standing === undefined) return judged
    const { acr, amr, time } = standing
    if (!isDeepStrictEqual({ acr, amr, time }, toStrength(proofs))) {
      Object.assign(session, { acr, amr, loginTs: toEpoch(time) })
    }
    return judged
  }

  async function judgeOnce (ctx: KoaContextWithOIDC): Promise<Judgement | undefined> {
    const judged = judgements.get(ctx) ?? judge(ctx)
    judgements.set(ctx, judged)
    return await judged
  }

  return {
    async needsProofs (ctx) {
      const judged = await judgeOnce(ctx)
      if (judged?.may === false && judged.because === 'unmet') {
        throw new errors.UnmetAuthenticationRequirements('the user cannot sign in as acr_values asks')
      }
      return judged?.may === false
    },

    async settle (ctx) {
      await judgeOnce(ctx)
    }
  }
}

/** The session of an interaction that only asks its user to prove more than they have. Undefined if there is another reason to ask. */
export async function findAsked (store: Store, { prompt, session }: {
  prompt: { name: string, reasons: string[] }, session?: { uid?: string | undefined, accountId?: string | undefined } | undefined
}): Promise<SignInSessionRecord | undefined> {
  const isStepUp = prompt.name === 'login' && prompt.reasons.every((reason) => reason === PROOFS_DEMANDED)
  if (session?.accountId === undefined || session.uid === undefined || !isStepUp) return undefined
  for await (const batch of createBrowsers(store).readAt(session.uid)) {
    const record = batch.find(({ user_id }) => user_id === session.accountId)
    if (record !== undefined) return record
  }
  return undefined
}

/** What a sign-in in this session adds to. */
export function findBase (record: SignInSessionRecord, now: number): Progress | undefined {
  const { user_id, user_epoch = 0 } = record
  return user_id === undefined ? undefined : toBase({ user_id, user_epoch, proofs: listProofs(record) }, now)
}
