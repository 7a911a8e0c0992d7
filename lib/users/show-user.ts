import type { Complete } from '../../schemas/common.ts'
import type { Profile, User, UserItem } from '../../schemas/user.ts'
import { checkMatch, toTag } from '../match.ts'
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

/** The fields of a user that their entity tag covers, by the fields of a patch that change them. */
export const MATCHED = {
  name: 'name', info: 'info', attributes: 'attributes', roles: 'roles', email: 'email', email_verified: 'email_verified_at', verified_at: 'verified_at'
} as const satisfies { [field: string]: keyof User }

/** The entity tag of a user, for `If-Match`. */
export const toUserTag = (user: User): string => toTag(user, Object.values(MATCHED))

/** Refuses a patch of fields that have changed since the caller read them. @throws ErrParam with 412 */
export function checkUserMatch (ifMatch: string | undefined, record: UserRecord, data: object = {}): void {
  const sent = Object.entries(MATCHED).filter(([field]) => Object.hasOwn(data, field)).map(([, shown]) => shown)
  checkMatch(ifMatch, showUser(record), sent)
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
