import { type Decision, withMore } from '../change-record.ts'
import { changeUserRecord } from '../change-user.ts'
import type { Clock } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import type { Recorder } from '../events/recorder.ts'
import { type Happening, toRecorded } from '../events/types.ts'
import type { Notice } from '../notice.ts'
import type { Roles, UserRecord } from '../records.ts'
import type { Actor } from '../roles.ts'
import { type Change, DuplicateKeyError, type MaybePromise, type Store } from '../store/port.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { checkProof, withProof } from './address-proof.ts'
import { createAdministrators } from './administrators.ts'
import type { ConfirmRecord } from './confirm.ts'

interface StoredUsersParts {
  store: Store
  now: Clock
  /** The name of the administrators' role. */
  role: string
  recorder: Pick<Recorder, 'attach' | 'remove'>
  tokens: Pick<Tokens, 'deleteOfUser'>
  /** Whether these roles end the sessions of a user: somebody without a second factor gets a role that demands one. Absent: never. */
  endsSessions?: ((record: UserRecord, roles: Roles) => MaybePromise<boolean>) | undefined
  /** Remembers the name of a user before they are deleted. Absent: nothing does. */
  onLeave?: ((record: UserRecord) => Promise<void>) | undefined
  /** Removes what belongs to a deleted user and is no longer valid: links, material of ways. */
  onRemove: (user_id: string) => Promise<unknown>
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
}

export const userNotFound = (): IdentityError => new IdentityError('ErrNotFound', 'userId: no such user')

/** The one way to create, change and delete users by a rule: an administrator remains, and what ends a user's tokens removes them. */
export function createStoredUsers ({ store, now, role, recorder, tokens, endsSessions, onLeave, onRemove, onError }: StoredUsersParts) {
  const users = store.collection<UserRecord>('users')
  const { mark, markChange, guard } = createAdministrators({ store, now, role, onError })

  /** The roles that a change sets end the user's sessions, unless the change does anyway. */
  async function demands (record: UserRecord, { set, increment }: Change): Promise<boolean> {
    return set?.roles !== undefined && increment?.epoch === undefined && await endsSessions?.(record, set.roles as Roles) === true
  }

  return {
    /** To be read only. */
    users,

    /** Of operations that take away an administrator, and first something else: see Administrators.guard. */
    guard,

    async requireUser (user_id: string): Promise<UserRecord> {
      const user = await users.get(user_id)
      if (user === null) throw userNotFound()
      return user
    },

    /**
     * @param exists the error where another user has the account or the address
     * @param notices the mails about it
     */
    async insertUser (record: UserRecord, happened: Happening | readonly Happening[], exists: () => Error, notices: readonly Notice[] = []): Promise<void> {
      checkProof(record)
      try {
        await users.insert({ ...mark(record), ...recorder.attach(null, toRecorded([happened].flat(), notices)) })
      } catch (error) {
        if (error instanceof DuplicateKeyError && (error.field === 'account' || error.field === 'addresses')) throw exists()
        throw error
      }
    },

    /**
     * Changes a user. `decide` gets the user whom the write replaces, and may be called several times.
     * @param options.notFound the error where there is no such user
     * @param options.isForced whether the last administrator may go too
     * @returns the written user
     * @throws what `decide` throws, ErrNotFound, ErrPerm for the last administrator, ErrBusy
     */
    async changeUser (
      user_id: string, decide: (record: UserRecord) => MaybePromise<Decision | null>,
      { notFound = userNotFound, isForced }: { notFound?: () => Error, isForced?: boolean | undefined } = {}
    ): Promise<UserRecord> {
      return await guard(async (permit) => {
        let isEnded = false
        const written = await changeUserRecord({ store, now, recorder, notFound }, user_id, async (record) => {
          const decision = await decide(record)
          if (decision === null) return null
          await permit(record, decision)
          const isDemanded = await demands(record, decision)
          isEnded = isDemanded || decision.increment?.epoch !== undefined
          const { set, unset, increment } = withProof(record, markChange(record, decision))
          return {
            set, unset, increment: { ...increment, ...(isDemanded && { epoch: 1 }) }, ...withMore(decision, isDemanded ? [{ type: 'user.sessions_ended', id: user_id }] : [])
          }
        })
        if (isEnded) tokens.deleteOfUser(user_id, written.epoch)
        return written
      }, isForced)
    },

    /**
     * Deletes a user with their tokens, ways and links. Their clients are kept.
     * @param options.confirm throws unless the actor may delete the record as it is
     * @param options.toNotices the mails about it, to whom the record says
     * @returns false when there is no such user
     * @throws ErrPerm for the last administrator
     */
    async removeUser (user_id: string, { confirm, toNotices, isForced }: Pick<Actor, 'isForced'> & { confirm?: ConfirmRecord | undefined, toNotices?: (record: UserRecord) => Promise<Notice[]> } = {}): Promise<boolean> {
      const happening: Happening = { type: 'user.deleted', id: user_id }
      const isRemoved = await guard(async (permit) => await recorder.remove('users', user_id, happening, async (record) => {
        await permit(record as UserRecord, null)
        await confirm?.(record as UserRecord)
        await onLeave?.(record as UserRecord)
        return await toNotices?.(record as UserRecord)
      }), isForced)
      if (!isRemoved) return false
      tokens.deleteOfUser(user_id)
      await onRemove(user_id).catch(onError)
      return true
    }
  }
}

export type StoredUsers = ReturnType<typeof createStoredUsers>
