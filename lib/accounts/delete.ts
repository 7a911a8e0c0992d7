import type { Clients } from '../clients/clients.ts'
import { IdentityError } from '../errors.ts'
import type { UserRecord } from '../records/user.ts'
import type { ConfirmRecord } from '../user-changes/user-changes.ts'
import type { Confirmed } from '../users/confirm.ts'
import { type AccountContext, offError } from './context.ts'

/** Lets users delete their own accounts. */
export function createDeletion (context: AccountContext, { clients, isOn }: { clients: Pick<Clients, 'removeOwned'>, isOn: boolean }) {
  const { users, guard, removeUser, notices } = context

  async function remove (user: UserRecord, confirm?: ConfirmRecord): Promise<void> {
    const isRemoved = await removeUser(user.id, {
      async confirm (record) {
        await confirm?.(record)
        // Clients first, so that after an interruption the account can still be deleted, but after everything that may be refused. As an
        // administrator, because clients that the operator vouches for are deleted with their owner too.
        await clients.removeOwned(user.id, { user_id: user.id, isAdmin: true })
      },
      toNotices: async (record) => await notices.write('deleted', record)
    })
    if (!isRemoved) throw new IdentityError('ErrNotFound', 'user: no such user')
  }

  return {
    isDeletionOn: isOn,

    /**
     * Deletes the user with their clients, tokens, sessions and links.
     * @param confirmed what the user has proved, checked before anything is removed. At the deletion only the record is checked again,
     *   because the user's token may have ended with one of their clients
     * @throws ErrNotFound when users may not, ErrPerm for the last administrator, and what `confirmed` throws
     */
    async deleteOwn (user_id: string, confirmed?: Pick<Confirmed, 'confirm' | 'checkRecord'>): Promise<void> {
      if (!isOn) throw offError('users cannot delete their accounts here')
      const user = await users.get(user_id)
      if (user === null) throw new IdentityError('ErrNotFound', 'user: no such user')
      // Before anything is removed.
      await guard(async (permit) => {
        await permit(user, null)
        await confirmed?.confirm(user)
        await remove(user, confirmed?.checkRecord)
      })
    }
  }
}
