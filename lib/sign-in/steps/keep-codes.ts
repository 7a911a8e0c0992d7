import type { UserRecord } from '../../records/user.ts'
import type { Factors } from '../../ways/factors.ts'
import { WayError } from '../../ways/way-error.ts'
import { isFactor } from '../../ways/words.ts'
import type { EnrolActor } from './enrol.ts'
import type { EnrolView, Progress, Step, Verdict } from './step.ts'

const WHY: EnrolView = { at: 'why' }

const isKind = (user: UserRecord, kind: string): boolean => Object.values(user.ways ?? {}).some((way) => way.kind === kind)

/** Whether an import has brought the factors of a person: then they have no recovery codes, which all others get with their first factor. */
const lacksCodes = (user: UserRecord): boolean =>
  user.imported_source !== undefined && Object.values(user.ways ?? {}).some(isFactor) && !isKind(user, 'recovery')

/** The last step of somebody whose factors an import has brought, once they have proved everything: it gives them recovery codes, and proves nothing. */
export function createKeepCodesStep ({ prepareCodes, renewCodes }: Pick<Factors, 'prepareCodes'> & {
  renewCodes: (actor: EnrolActor, id: string) => Promise<unknown>
}): Step {
  /** Codes are shown once: each form without the confirmation leads to others. */
  async function showCodes (actor: EnrolActor, account: string): Promise<Verdict> {
    const { id, codes } = await prepareCodes(actor)
    return { shown: { at: 'codes', codes, account }, enrolling: { kind: 'recovery', way: id } }
  }

  return {
    kind: 'recovery',
    page: 'enrol',
    isOpen: lacksCodes,
    show: async () => WHY,
    async verify ({ form, limit }, progress: Progress | null): Promise<Verdict> {
      if (progress === null) return { refused: { reason: 'ended' } }
      await limit(progress.account)
      const { user_id, user_epoch: epoch, proofs, account, enrolling } = progress
      const actor = { user_id, epoch, proofs }
      if (enrolling?.kind !== 'recovery' || (form.get('kept') ?? '') === '') return await showCodes(actor, account)
      try {
        await renewCodes(actor, enrolling.way)
        return { kept: true }
      } catch (error) {
        // Shown too long ago.
        if (error instanceof WayError && error.refusal === 'unknown') return await showCodes(actor, account)
        throw error
      }
    }
  }
}
