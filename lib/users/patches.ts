import type { PatchProfile } from '../../schemas/user.ts'
import { type Checks, checkFields, checkMap } from '../checks.ts'
import { IdentityError } from '../errors.ts'
import type { Turn } from '../fair-queue.ts'
import { checkName } from '../names.ts'
import type { UserRecord } from '../records.ts'
import type { Change, Json, MaybePromise } from '../store/port.ts'
import { listHappenings } from './happenings.ts'
import type { CheckNewPassword } from './password-rules.ts'
import type { Passwords } from './passwords.ts'
import type { StoredUsers } from './stored-users.ts'

/** Checks of the fields that users set themselves. A schema field without a check or a record field does not compile. */
export const CHECKS: Checks<Pick<UserRecord, Exclude<keyof PatchProfile['data'], 'password' | 'current_password'>>> = {
  name: (text) => checkName('name', text),
  info: (info) => checkMap('info', info)
}

interface PatchParts {
  changeUser: StoredUsers['changeUser']
  passwords: Pick<Passwords, 'hash'>
  checkNewPassword: CheckNewPassword
  /** Called after a user or an administrator has changed the user's password. */
  onPasswordChange?: ((record: UserRecord) => Promise<void>) | undefined
}

/** What all patches of users share: the fields that each may set, and the write. */
export function createPatches ({ changeUser, passwords, checkNewPassword, onPasswordChange }: PatchParts) {
  return {
    /** The fields that every patch may set. A new password increments the epoch, which revokes all of the user's tokens. */
    async toChange (owner: UserRecord | null, { password, ...fields }: Omit<PatchProfile['data'], 'current_password'>, turn: Turn): Promise<Change> {
      // A name that is stored already may stay, whatever it is, for callers who send back what they have read.
      const set: Record<string, Json> = checkFields(fields, fields.name === owner?.name ? { ...CHECKS, name: (text) => text } : CHECKS)
      if (password === undefined) return { set }
      set.password = await passwords.hash(await checkNewPassword(password, owner!), turn)
      return { set, increment: { epoch: 1 } }
    },

    /** @param decide null: the record is already as it should be */
    async patch (id: string, decide: (record: UserRecord) => MaybePromise<Change | null>, isForced?: boolean): Promise<UserRecord> {
      let isPassword = false
      const written = await changeUser(id, async (record) => {
        const change = await decide(record)
        if (change === null) return null
        if (Object.keys(change.set ?? {}).length === 0 && (change.unset ?? []).length === 0) {
          throw new IdentityError('ErrParam', 'body: must contain a change')
        }
        isPassword = change.set?.password !== undefined
        return { ...change, happened: listHappenings(record, change) }
      }, { isForced })
      if (isPassword) await onPasswordChange?.(written)
      return written
    }
  }
}

export type Patches = ReturnType<typeof createPatches>
