import type { PatchProfile } from '../../schemas/user.ts'
import { type Checks, checkFields, checkMap } from '../checks.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import { toRecorded } from '../events/types.ts'
import type { Turn } from '../fair-queue.ts'
import { checkName } from '../names.ts'
import type { Notice, Notices } from '../notice.ts'
import { type UserChange, type UserRecord, isActive } from '../records/user.ts'
import type { MaybePromise } from '../store/port.ts'
import { listHappenings } from './happenings.ts'
import type { CheckNewPassword } from './password-rules.ts'
import type { Passwords } from './passwords.ts'
import { userNotFound } from '../user-changes/user-changes.ts'
import type { StoredUsers } from './stored-users.ts'
import { createUndos } from '../user-changes/undos.ts'

/** Checks of the fields that users set themselves. A schema field without a check or a record field does not compile. */
export const CHECKS: Checks<Pick<UserRecord, Exclude<keyof PatchProfile['data'], 'password' | 'current_password'>>> = {
  name: (text) => checkName('name', text),
  info: (info) => checkMap('info', info)
}

interface PatchParts {
  changeUser: StoredUsers['changeUser']
  passwords: Pick<Passwords, 'hash'>
  checkNewPassword: CheckNewPassword
  notices: Notices
  now: Clock
}

/** What a patch changes, and the mails about it beside the one about a new password. */
type Patched = UserChange & { notices?: readonly Notice[] }

/** What all patches of users share: the fields that each may set, and the write. */
export function createPatches ({ changeUser, passwords, checkNewPassword, notices, now }: PatchParts) {
  const undos = createUndos({ notices, now })
  return {
    /** The fields that every patch may set. A new password increments the epoch, which revokes all of the user's tokens. */
    async toChange (
      owner: UserRecord | null, { password, ...fields }: Omit<PatchProfile['data'], 'current_password'>, turn: Turn
    ): Promise<Pick<UserChange, 'increment'> & { set: Partial<UserRecord> }> {
      // A name that is stored already may stay, whatever it is, for callers who send back what they have read.
      const set = checkFields(fields, fields.name === owner?.name ? { ...CHECKS, name: (text) => text } : CHECKS)
      if (password === undefined) return { set }
      if (owner === null) throw userNotFound()
      const hashed = await passwords.hash(await checkNewPassword(password, owner), turn)
      return { set: { ...set, password: hashed }, increment: { epoch: 1 } }
    },

    /**
     * @param decide null: the record is already as it should be
     * @param options.isOwn whether the user asks for it, and not an administrator
     * @throws what `decide` throws, ErrLimit
     */
    async patch (
      id: string,
      decide: (record: UserRecord) => MaybePromise<Patched | null>,
      { isForced, isOwn = false, known }: { isForced?: boolean | undefined, isOwn?: boolean, known?: UserRecord | undefined } = {}
    ): Promise<UserRecord> {
      return await changeUser(id, async (record) => {
        const patched = await decide(record)
        if (patched === null) return null
        const { notices: others = [], ...change } = patched
        if (Object.keys(change.set ?? {}).length === 0 && (change.unset ?? []).length === 0) {
          throw new IdentityError('ErrParam', 'body: must contain a change')
        }
        const isTold = change.set?.password !== undefined && isActive(record, toTimestamp(now()))
        const { set, unset, notices: mails } = isTold && isOwn && !record.password
          ? await undos.write(record, { kind: 'password', mail: 'password-set', plain: 'password-changed', isAsked: true })
          : { set: {}, unset: [], notices: isTold ? await notices.write('password-changed', record) : [] }
        return {
          ...change,
          set: { ...change.set, ...set },
          unset: [...change.unset ?? [], ...unset],
          ...toRecorded(listHappenings(record, change), [...mails, ...others])
        }
      }, { isForced, known })
    }
  }
}

export type Patches = ReturnType<typeof createPatches>
