import { type UserRecord, findMailbox } from '../records/user.ts'
import { type RoleNames, hasSpecialRole } from '../roles.ts'
import type { WayService } from '../ways/ways.ts'

/**
 * Why a link that support staff ask for is not sent to a person, whoever of them asks. It is judged when they ask, and again when the mail
 * is composed.
 * @returns who the person is, for messages; undefined where nothing is in the way
 */
export async function findLinkRefusal (
  { roles, ways }: { roles: RoleNames, ways: Pick<WayService, 'demandsFactor' | 'hasFactor'> }, user: UserRecord
): Promise<string | undefined> {
  if (hasSpecialRole(roles, user.roles)) return 'with a role of the staff'
  const mailbox = findMailbox(user)
  if (mailbox === undefined || user.email_verified_at === undefined || user.email !== mailbox) return 'whose address is not proved'
  return ways.demandsFactor(user) && !await ways.hasFactor(user) ? 'whose required two-factor authentication is missing' : undefined
}
