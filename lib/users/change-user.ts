import { type Decision, changeRecord } from '../change-record.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Roles, UserRecord } from '../records.ts'
import { isRoleGiven } from '../roles.ts'
import type { Collection } from '../store/port.ts'
import type { Tokens } from '../tokens/tokens.ts'
import type { Administrators } from './administrators.ts'

export interface UserChangeParts {
  users: Collection<UserRecord>
  now: Clock
  recorder: Pick<Recorder, 'attach'>
  administrators: Pick<Administrators, 'guard' | 'markChange'>
  tokens: Pick<Tokens, 'deleteOfUser'>
}

export interface UserChangeOptions {
  /** The error where there is no such user. */
  notFound?: () => Error
  /** Whether the last administrator may go too. */
  isForced?: boolean | undefined
}

/**
 * Changes a user. `decide` gets the user whom the write replaces, and may be called several times.
 * @returns the written user
 * @throws what `decide` throws, ErrNotFound, ErrPerm for the last administrator, ErrBusy
 */
export type ChangeUser = (user_id: string, decide: (record: UserRecord) => Decision, options?: UserChangeOptions) => Promise<UserRecord>

export const userNotFound = (): IdentityError => new IdentityError('ErrNotFound', 'userId: no such user')

/** Whoever has seen a link of the user could otherwise use it to get the new role. */
const endsLinks = (record: UserRecord, { set }: Decision): boolean => set?.roles !== undefined && isRoleGiven(record.roles, set.roles as Roles)

/** The one way to change a user by a rule: an administrator remains, and a new epoch ends the user's tokens. */
export function createChangeUser ({ users: collection, now, recorder, administrators, tokens }: UserChangeParts): ChangeUser {
  return async (user_id, decide, { notFound = userNotFound, isForced } = {}) => await administrators.guard(async (permit) => {
    let isEnded = false
    const written = await changeRecord({ collection, recorder, what: 'the user', notFound }, user_id, async (record) => {
      const decision = decide(record)
      await permit(record, decision)
      isEnded = decision.increment?.epoch !== undefined
      const { set, increment, ...rest } = administrators.markChange(record, decision)
      return {
        ...rest, set: { ...set, modified_at: toTimestamp(now()) }, increment: { ...increment, ...(endsLinks(record, decision) && { link_epoch: 1 }) }
      }
    })
    if (isEnded) tokens.deleteOfUser(user_id, written.epoch)
    return written
  }, isForced)
}
