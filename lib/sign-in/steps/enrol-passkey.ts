import type { Enrolments } from '../../ways/enrolments.ts'
import type { Passkeys } from '../../ways/passkeys.ts'
import { type EnrolActor, WHY, explain, settle, toActor } from './enrol.ts'
import type { Step, Verdict } from './step.ts'

/** The field of a form with a new passkey. */
export const ATTESTATION = 'attestation'

/**
 * Adds a passkey as the first factor, for a person of whom one is demanded: the browser makes it on the first page, and the recovery codes follow.
 * The challenge of that page is given out after the first proof only.
 */
export function createEnrolPasskeyStep ({ prepare, mayAdd }: Pick<Passkeys, 'prepare' | 'mayAdd'>, enrolments: Enrolments<EnrolActor>): Step {
  return {
    kind: 'passkey',
    page: 'enrol',
    isOpen: mayAdd,
    show: async () => WHY,
    async verify ({ form, limit }, progress, secret): Promise<Verdict> {
      if (progress === null) return { refused: { reason: 'ended' } }
      await limit(progress.account)
      const actor = toActor(progress)
      const attestation = form.get(ATTESTATION) ?? ''
      const begun = progress.enrolling?.kind === 'passkey' ? progress.enrolling : undefined
      try {
        if (attestation !== '') return settle(progress, await enrolments.submit(actor, { kind: 'passkey', way: await prepare(actor, secret, attestation) }, {}))
        if (begun === undefined) return { shown: WHY }
        return settle(progress, await enrolments.submit(actor, begun, { kept: (form.get('kept') ?? '') !== '' }))
      } catch (error) {
        return explain(error)
      }
    }
  }
}
