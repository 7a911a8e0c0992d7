import { toTimestamp } from '../clock.ts'
import type { UserRecord } from '../records/user.ts'
import { type RoleNames, holdsRole } from '../roles.ts'
import { type KnownIdentities, listOthers } from './join-rule.ts'
import type { Proven } from './linking.ts'
import { LONGEST_REJOIN, isRejoinOn } from './policy.ts'

/**
 * Whether an identity may take the place of another one of the same upstream, because the operator has declared that all its subjects
 * change. Never twice, never for somebody with power, nor for an account whose owner or administrator has said something else.
 */
export function mayRejoin (
  known: KnownIdentities & Pick<UserRecord, 'roles' | 'rejoined_at'>, proven: Proven, { now, roles }: { now: number, roles: RoleNames }
): boolean {
  const { upstream } = proven
  if (!isRejoinOn(upstream, now)) return false
  const isPowerful = Object.values(roles).some((role) => holdsRole(known.roles, role))
  const isDone = known.rejoined_at !== undefined && known.rejoined_at > toTimestamp(now - LONGEST_REJOIN)
  const isDecided = known.link_undone === true || known.expected_identities?.some((one) => one.upstream === upstream.id) === true ||
    known.lost_identities?.some(({ undone, key }) => undone === true || key === undefined) === true
  return !isPowerful && !isDone && !isDecided && listOthers(known, proven).length > 0
}
