import { IdentityError } from '../../errors.ts'
import type { Proof } from '../../proofs.ts'
import type { EnrolmentResult, Enrolments } from '../../ways/enrolments.ts'
import { WayError } from '../../ways/way-error.ts'
import type { WayActor } from '../../ways/ways.ts'
import { CODE_LENGTH } from './code.ts'
import type { EnrolView, Progress, Step, Verdict } from './step.ts'

/** A person in a sign-in, as the actor of an enrolment: with what they have proved, and the enrolment whose link they came by. */
export type EnrolActor = WayActor & { proofs: readonly Proof[], link?: string | undefined }

export const WHY: EnrolView = { at: 'why' }

export const toActor = ({ user_id, user_epoch: epoch, proofs, link }: Progress): EnrolActor => ({ user_id, epoch, proofs, link })

/** Why a form was refused, or which page follows. @throws every other error */
export function explain (error: unknown): Verdict {
  if (error instanceof WayError && error.refusal === 'unknown') return { shown: WHY }
  if (!(error instanceof IdentityError)) throw error
  if (error.message.startsWith('passkey:') || (error instanceof WayError && error.refusal === 'in_use')) return { refused: { reason: 'wrong-passkey' } }
  if (error.message.startsWith('code:')) return { refused: { reason: 'wrong-code' } }
  // The session has ended, or another browser was faster: then its factor is asked for.
  if (error.code === 'ErrUnknown') return { refused: { reason: 'ended' } }
  if (error.code === 'ErrTicket') return { refused: { reason: 'missing' } }
  throw error
}

/** The next page, or what the person has proved by the factor that counts from now on. */
export function settle ({ user_id, user_epoch }: Progress, result: EnrolmentResult): Verdict {
  if ('view' in result) return { shown: result.view, enrolling: result.enrolling }
  const { way, uv } = result.proof
  return { passed: { user_id, user_epoch, way, uv } }
}

/** Adds an authenticator app as the first factor, for a person of whom one is demanded: why, the app and its proof, the recovery codes. */
export function createEnrolStep (enrolments: Enrolments<EnrolActor>): Step {
  const kind = 'totp'
  return {
    kind,
    page: 'enrol',
    async show (progress) {
      const { enrolling } = progress
      return (enrolling?.kind === kind && await enrolments.find(toActor(progress), enrolling)) || WHY
    },
    async verify ({ form, limit }, progress): Promise<Verdict> {
      if (progress === null) return { refused: { reason: 'ended' } }
      await limit(progress.account)
      const actor = toActor(progress)
      const { enrolling } = progress
      try {
        if (enrolling?.kind !== kind) {
          const begun = await enrolments.begin(actor, kind)
          return { shown: await enrolments.find(actor, begun) ?? WHY, enrolling: begun }
        }
        const code = (form.get('code') ?? '').replaceAll(' ', '').slice(0, CODE_LENGTH)
        return settle(progress, await enrolments.submit(actor, enrolling, { code, kept: (form.get('kept') ?? '') !== '' }))
      } catch (error) {
        return explain(error)
      }
    }
  }
}
