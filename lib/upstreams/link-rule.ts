import { toTimestamp } from '../clock.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import { type RoleNames, holdsRole } from '../roles.ts'
import { listUndos } from '../user-changes/undos.ts'
import { isFactor } from '../ways/words.ts'

/**
 * Whether an identity with this proved address may join an account without a sign-in to it. The account's address must be proved here
 * too: otherwise somebody who made the account before its owner came would keep it. An account with power, one that a second factor
 * protects, and one that somebody else may have had a hand in, asks. So does one whose owner has undone a link: the next sign-in there
 * would make it again.
 */
export function mayLinkByItself (record: UserRecord, address: string, { roles, now }: { roles: RoleNames, now: number }): boolean {
  const isProved = record.email === address && record.email_verified_at !== undefined
  const isPowerful = Object.values(roles).some((role) => holdsRole(record.roles, role))
  // It is not known who has set the password of a record of an earlier release.
  const isOfOperator = Boolean(record.password) && record.operator_password !== false
  return isProved && isActive(record, toTimestamp(now)) && record.invited_at === undefined && !isPowerful && record.link_undone !== true &&
    !Object.values(record.ways ?? {}).some(isFactor) && !listUndos(record, now).some(({ kind }) => kind === 'address') && !isOfOperator
}
