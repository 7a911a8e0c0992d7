import type { Base } from '../base.ts'
import { withMore } from '../change-record.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Happening } from '../events/types.ts'
import type { Notice } from '../notice.ts'
import type { UserChange, UserRecord } from '../records/user.ts'
import type { Actor, Roles } from '../roles.ts'
import type { MaybePromise } from '../store/port.ts'
import type { Tokens } from '../tokens/tokens.ts'
import type { ChangeOptions, ConfirmRecord, Decide, UserChanges } from '../user-changes/user-changes.ts'

interface StoredUsersParts extends Pick<Base, 'report'> {
  changes: UserChanges
  recorder: Pick<Recorder, 'remove'>
  tokens: Pick<Tokens, 'deleteOfUser'>
  /** Whether these roles end the sessions of a user: somebody without a second factor gets a role that demands one. Absent: never. */
  endsSessions?: ((record: UserRecord, roles: Roles) => MaybePromise<boolean>) | undefined
  /** Remembers the name of a user before they are deleted. Absent: nothing does. */
  onLeave?: ((record: UserRecord) => Promise<void>) | undefined
  /** Removes what belongs to a deleted user and is no longer valid: links, material of ways. */
  onRemove: (user_id: string) => Promise<unknown>
}

interface Removing extends Pick<Actor, 'isForced'> {
  /** Throws unless the actor may delete the record as it is. */
  confirm?: ConfirmRecord | undefined
  /** The mails about it, to whom the record says. */
  toNotices?: ((record: UserRecord) => Promise<Notice[]>) | undefined
}

/** Creates, changes and deletes users by the rules of `changes`. A role that demands a factor ends the sessions of somebody without one. */
export function createStoredUsers ({ changes, recorder, tokens, endsSessions, onLeave, onRemove, report }: StoredUsersParts) {
  const { guard, changeUser } = changes

  /** The roles that a change sets end the user's sessions, unless the change does anyway. */
  async function demands (record: UserRecord, { set, increment }: UserChange): Promise<boolean> {
    return set?.roles !== undefined && increment?.epoch === undefined && await endsSessions?.(record, set.roles) === true
  }

  return {
    ...changes,

    changeUser: async (user_id: string, decide: Decide, options?: ChangeOptions): Promise<UserRecord> => await changeUser(user_id, async (record) => {
      const decision = await decide(record)
      if (decision === null || !await demands(record, decision)) return decision
      const { set, unset, increment } = decision
      return { set, unset, increment: { ...increment, epoch: 1 }, ...withMore(decision, [{ type: 'user.sessions_ended', id: user_id }]) }
    }, options),

    /**
     * Deletes a user with their tokens, ways and links. Their clients are kept.
     * @returns false when there is no such user
     * @throws ErrPerm for the last administrator
     */
    async removeUser (user_id: string, { confirm, toNotices, isForced }: Removing = {}): Promise<boolean> {
      const happening: Happening = { type: 'user.deleted', id: user_id }
      const isRemoved = await guard(async (permit) => await recorder.remove('users', user_id, happening, async (record: UserRecord) => {
        await permit(record, null)
        await confirm?.(record)
        await onLeave?.(record)
        return await toNotices?.(record)
      }), isForced)
      if (!isRemoved) return false
      tokens.deleteOfUser(user_id)
      await onRemove(user_id).catch(report('users'))
      return true
    }
  }
}

export type StoredUsers = ReturnType<typeof createStoredUsers>
