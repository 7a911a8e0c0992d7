import type { PatchProfile, Profile } from '../../schemas/user.ts'
import type { Evidence } from '../proofs.ts'
import type { UserRecord } from '../records/user.ts'
import { type Actor, toTurn } from '../roles.ts'
import { invalidToken } from '../tokens/tokens.ts'
import type { ConfirmRecord } from '../user-changes/user-changes.ts'
import type { Brought, CheckEvidence, Confirm, Confirmed, ProveMore } from './confirm.ts'
import type { Patches } from './patches.ts'
import { showProfile } from './show-user.ts'
import type { StoredUsers } from './stored-users.ts'

/** What users do to their own accounts, with the proof that it asks for. */
export function createOwnAccount ({ requireUser, toChange, patch, confirm, checkEvidence }: Patches & {
  requireUser: StoredUsers['requireUser'], confirm: Confirm, checkEvidence: CheckEvidence
}) {
  /** Checks the record that a write replaces. A factor may have been added since the proof, or the session ended. */
  async function checkRecord (record: UserRecord, actor: Partial<Pick<Actor, 'epoch'>>, evidence: Evidence | undefined): Promise<void> {
    if (actor.epoch !== undefined && record.epoch !== actor.epoch) throw invalidToken()
    if (evidence !== undefined) await checkEvidence(record, evidence)
  }

  return {
    /** The user's own profile; throws ErrNotFound. */
    async requireProfile (user_id: string): Promise<Profile> {
      return showProfile(await requireUser(user_id))
    },

    /**
     * Patches the user's own profile (`PATCH /user`), unless the actor's token was revoked. A new password requires a proof, because a
     * stolen token must not be enough to take over the account.
     * @param proveMore what the form of a page proves beside the current password
     * @returns the user's epoch after the patch
     * @throws ErrParam, ErrNotFound, ErrUnknown, ErrLimit
     */
    async patchOwn (
      user_id: string, { data: { current_password: password, ...data } }: Pick<PatchProfile, 'data'>, actor?: Actor, proveMore?: ProveMore
    ): Promise<{ epoch: number }> {
      const turn = toTurn(actor ?? { user_id })
      const owner = data.password === undefined && data.name === undefined ? null : await requireUser(user_id)
      const isProved = owner !== null && data.password !== undefined
      const evidence = isProved ? await confirm(owner, actor ?? {}, { password, proveMore }) : undefined
      const change = await toChange(owner, data, turn)
      await actor?.confirm?.()
      const { epoch } = await patch(user_id, async (record) => {
        await checkRecord(record, actor ?? {}, evidence)
        return data.password === undefined ? change : { ...change, set: { ...change.set, operator_password: false } }
      }, { isOwn: true })
      return { epoch }
    },

    /**
     * Requires the proof that an operation on the actor's own account asks for: an operator's unrestricted token, a fresh sign-in with
     * `account:security`, the current password of a person without a factor, or the proofs of a form.
     * @returns what the request has proved, and the checks for the write
     * @throws RestrictedError, ErrParam, ErrLimit, ErrNotFound, ErrUnknown with a challenge (RFC 9470)
     */
    async confirm (actor: Actor, brought: Brought): Promise<Confirmed> {
      const evidence = await confirm(await requireUser(actor.user_id), actor, brought)
      await actor.confirm?.()
      const checkAgain: ConfirmRecord = async (record) => await checkRecord(record, actor, evidence)
      return {
        proofs: evidence.proofs,
        async confirm (record) {
          await actor.confirm?.()
          await checkAgain(record)
        },
        checkRecord: checkAgain
      }
    }
  }
}
