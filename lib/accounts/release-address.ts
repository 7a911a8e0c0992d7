import { defined } from '../defined.ts'
import { paramError, permError } from '../errors.ts'
import { randomText } from '../ids.ts'
import { type UserRecord, findMailbox, listAddresses } from '../records/user.ts'
import type { Actor } from '../roles.ts'
import { DuplicateKeyError } from '../store/port.ts'
import { keepUndos, listUndos, toUndoFields } from '../user-changes/undos.ts'
import type { AccountContext } from './context.ts'
import { ENDED_BY_EPOCH } from '../tickets/tickets.ts'

/** Characters after the id, where somebody else has taken it as their name. */
const RANDOM = 8

/** Takes the address of an account for its next owner. */
export function createAddressRelease ({ requireUser, changeUser, tickets, findOnly, now, onError }: AccountContext) {
  /** @param account what the user is called, if their name is the address */
  async function release (user_id: string, { confirm }: Pick<Actor, 'confirm'>, account: string): Promise<UserRecord> {
    return await changeUser(user_id, async (record) => {
      await confirm?.()
      const address = findMailbox(record)
      if (address === undefined) throw paramError('userId', 'the user has no address')
      const name = record.account === address ? account : record.account
      const addresses = listAddresses(name)
      const kept = addresses.length > 0 ? addresses : undefined
      // What its mailbox could undo would bring it back.
      const undos = toUndoFields(record, keepUndos(listUndos(record, now()), ({ mailbox }) => mailbox !== address))
      // Otherwise the password of somebody who has left the company would work from now on.
      const only = findOnly?.(record)?.id
      return {
        set: defined({ account: name, addresses: kept, ...undos.set, held_by: only }),
        unset: ['email', 'email_verified_at', ...(kept === undefined ? ['addresses'] as const : []), ...undos.unset],
        increment: { epoch: 1 },
        happened: [{ type: 'user.email_released', id: user_id }]
      }
    })
  }

  return {
    /**
     * Takes the address from a user, and a name that is this address, because somebody else has it now: who gets its mails must neither get
     * the account nor be kept out by it. The write ends all sessions, tokens and open links, and what would bring the address back. Ways to
     * sign in stay, and an upstream that claims the user goes on claiming them.
     * @returns what the user is called now: a name that was the address becomes their id in lower case
     * @throws ErrNotFound, ErrPerm for the actor's own account, ErrParam for a user without an address
     */
    async releaseAddress (user_id: string, actor: Actor): Promise<{ account: string }> {
      if (actor.user_id === user_id) throw permError('userId', 'administrators do not release their own address')
      await requireUser(user_id)
      const id = user_id.toLowerCase()
      const written = await release(user_id, actor, id).catch(async (error: unknown) => {
        // Anybody may have chosen this name.
        if (!(error instanceof DuplicateKeyError && error.field === 'account')) throw error
        return await release(user_id, actor, `${id}-${randomText(RANDOM).toLowerCase()}`)
      })
      await tickets.removeOf(user_id, ENDED_BY_EPOCH).catch(onError)
      return { account: written.account }
    }
  }
}
