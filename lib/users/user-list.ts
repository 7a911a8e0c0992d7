import type { Profile, User, UserItem } from '../../schemas/user.ts'
import type { UserRecord } from '../records.ts'
import { type RendererOptions, createRecordRenderer } from '../lists/renderer.ts'
import type { Renderer } from '../store/port.ts'

export function showProfile (record: UserRecord): Profile {
  return {
    account: record.account,
    created_at: record.created_at,
    modified_at: record.modified_at,
    ...(record.verified_at !== undefined && { verified_at: record.verified_at }),
    roles: record.roles as Profile['roles'],
    name: record.name,
    info: record.info
  }
}

export function showUser (record: UserRecord): User {
  return { user_id: record.id, ...showProfile(record) }
}

/** A user as a list shows it. @param fields the query's: names of times to be added, comma-separated */
export function showItemOf (fields: string | undefined): (record: UserRecord) => UserItem {
  const names = new Set(fields?.split(','))
  return (record) => ({
    ...showUser(record),
    ...(names.has('expired') && { expired_at: record.expired_at ?? null }),
    ...(names.has('disabled') && { disabled_at: record.disabled_at ?? null })
  })
}

export interface UserListOptions extends RendererOptions {
  fields: string | undefined
}

export function createRenderer ({ between, fields }: UserListOptions): Renderer<UserRecord> {
  return createRecordRenderer(between, showItemOf(fields))
}
