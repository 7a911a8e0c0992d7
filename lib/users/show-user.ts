import type { Complete } from '../../schemas/common.ts'
import type { Profile, User, UserItem } from '../../schemas/user.ts'
import type { UserRecord } from '../records/user.ts'

export function showProfile (record: UserRecord): Complete<Profile> {
  return {
    account: record.account,
    created_at: record.created_at,
    modified_at: record.modified_at,
    verified_at: record.verified_at,
    email: record.email,
    email_verified_at: record.email_verified_at,
    email_verified_by: record.email_verified_by,
    roles: record.roles,
    name: record.name,
    info: record.info,
    attributes: record.attributes
  }
}

export function showUser (record: UserRecord): Complete<User> {
  return { user_id: record.id, ...showProfile(record) }
}

/**
 * Shows users with the requested times.
 * @param fields comma-separated: `expired` and `disabled` add their times
 */
export function showItemOf (fields: string | undefined): (record: UserRecord) => UserItem {
  const names = new Set(fields?.split(','))
  return (record) => ({
    ...showUser(record),
    ...(names.has('expired') && { expired_at: record.expired_at ?? null }),
    ...(names.has('disabled') && { disabled_at: record.disabled_at ?? null })
  })
}
