import type { Notice } from '../notice.ts'
import { type UserRecord, applyChange, findMailbox } from '../records.ts'
import type { Change } from '../store/port.ts'
import { listLiveChanges } from '../users/addresses.ts'
import type { AccountContext } from './context.ts'

/**
 * The mails about an undo: a link for a new password to the mailbox that the account had before the changes of the address that can still be
 * undone, because those may come from the person who was locked out; and a mail to the mailbox that loses the account.
 * @param change of the undo, which ends all sessions
 */
export async function writeUndone (
  { notices, now }: Pick<AccountContext, 'notices' | 'now'>, kind: 'factor-undone' | 'address-restored', record: UserRecord, change: Change
): Promise<Notice[]> {
  const made = applyChange(record, change)
  const [first] = listLiveChanges(made, now())
  const before = first && findMailbox({ account: made.account, ...first })
  const [lost, mailbox] = [findMailbox(record), findMailbox(made)]
  return [
    ...await notices.write(kind, made, { epoch: record.epoch + 1, to: kind === 'factor-undone' ? before ?? mailbox : mailbox }),
    ...(lost === undefined || lost === mailbox ? [] : await notices.write('address-taken-back', record, { to: lost }))
  ]
}
