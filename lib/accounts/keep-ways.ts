import type { UserFields, UserRecord } from '../records/user.ts'
import { toWayFields, withoutWays } from '../ways/words.ts'

/**
 * The fields of a user's record without the ways that were added since some moment, for an undo. Identities that go never join by themselves again.
 * @param kept the ids of the ways that there were
 */
export function keepWays (
  record: UserRecord, kept: readonly string[]
): UserFields & { removed: string[] } {
  const before = Object.keys(record.ways ?? {})
  if (before.length === 0) return { set: {}, unset: [], removed: [] }
  const left = withoutWays(record, before.filter((id) => !kept.includes(id))).ways ?? {}
  return { ...toWayFields(left, record, true), removed: before.filter((id) => left[id] === undefined) }
}
