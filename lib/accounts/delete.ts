import type { Clients } from '../clients/clients.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError, permError } from '../errors.ts'
import { scan } from '../lists/scan.ts'
import type { UserRecord } from '../records.ts'
import { holdsRole } from '../roles.ts'
import { isActive } from '../tokens/validity.ts'
import { findMailbox } from '../users/addresses.ts'
import { type AccountContext, changeUser, offError, prepareNotice } from './context.ts'
import { createUserRemoval } from './remove.ts'

/** Milliseconds for which an administrator who deletes their account does not count as an administrator. */
const LEAVING = 60_000

/** Lets users delete their own accounts. */
export function createDeletion (context: AccountContext, { clients, isOn }: { clients: Pick<Clients, 'removeOwned'>, isOn: boolean }) {
  const { users, roles, now } = context
  const removeUser = createUserRemoval(context)

  /** Whether another active administrator remains. */
  async function isAnotherAdmin (user_id: string): Promise<boolean> {
    const time = toTimestamp(now())
    for await (const batch of scan(users, {})) {
      const stays = (user: UserRecord) => user.id !== user_id && holdsRole(user.roles, roles.admin) && isActive(user, time) && !(user.leaving_until !== undefined && user.leaving_until > time)
      if (batch.some(stays)) return true
    }
    return false
  }

  /**
   * Marks an administrator as leaving, and then requires that another one remains. If the last two leave at the same
   * time, at least one of them sees the other's mark and stays.
   * @returns when the mark expires
   */
  async function checkMayLeave (user: UserRecord): Promise<string> {
    const leaving_until = toTimestamp(now() + LEAVING)
    await changeUser(context, user.id, () => ({ set: { leaving_until } }))
    if (await isAnotherAdmin(user.id)) return leaving_until
    await changeUser(context, user.id, () => ({ unset: ['leaving_until'] }))
    throw permError('user', 'the last administrator cannot be deleted')
  }

  return {
    isDeletionOn: isOn,

    /**
     * Deletes the user with their clients, tokens, sessions and links.
     * @throws ErrNotFound when users may not, ErrPerm for the last administrator
     */
    async deleteOwn (user_id: string): Promise<void> {
      if (!isOn) throw offError('users cannot delete their accounts here')
      const user = await users.get(user_id)
      if (user === null) throw new IdentityError('ErrNotFound', 'user: no such user')
      const leaving_until = holdsRole(user.roles, roles.admin) ? await checkMayLeave(user) : undefined
      // Clients first, so that after an interruption the account can still be deleted. As an administrator, because clients that
      // the operator vouches for are deleted with their owner too.
      await clients.removeOwned(user_id, { user_id, isAdmin: true })
      // The removal of many clients may outlast the mark.
      if (leaving_until !== undefined && leaving_until <= toTimestamp(now())) await checkMayLeave(user)
      const mailbox = findMailbox(user)
      // Stored before the deletion and sent after it, so that no crash in between loses it.
      const notice = mailbox === undefined ? undefined : await prepareNotice(context, { kind: 'deleted', user_id, to: mailbox, ...(user.language !== undefined && { language: user.language }) })
      if (!await removeUser(user_id)) throw new IdentityError('ErrNotFound', 'user: no such user')
      notice?.release()
    }
  }
}
