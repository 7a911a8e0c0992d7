import type { Recorder } from '../../lib/events/recorder.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'
import type { Store } from '../../lib/store/port.ts'
import { type UserChanges, createUserChanges } from '../../lib/user-changes/user-changes.ts'
import { type StoredUsers, createStoredUsers } from '../../lib/users/stored-users.ts'
import { type WayService, createWays } from '../../lib/ways/ways.ts'

interface ChangesParts extends Pick<Parameters<typeof createUserChanges>[0], 'now' | 'tokens'> {
  store: Store
  recorder: Pick<Recorder, 'attach'>
  /** The name of the administrators' role. */
  role?: string
  onError: (error: unknown) => void
}

/** The writer of users. */
export function openTestChanges ({ store, now, recorder, tokens, role = DEFAULT_ROLE_NAMES.admin, onError }: ChangesParts): UserChanges {
  return createUserChanges({ store, now, recorder, tokens, roles: { ...DEFAULT_ROLE_NAMES, admin: role }, report: () => onError })
}

/** Users, with a writer of their own. */
export function openTestStored (parts: ChangesParts & Omit<Parameters<typeof createStoredUsers>[0], 'changes' | 'report'>): StoredUsers {
  return createStoredUsers({ ...parts, changes: openTestChanges(parts), report: () => parts.onError })
}

/** Ways, with a writer of users of their own. */
export function openTestWays ({ recorder, tokens, ...parts }: ChangesParts & Omit<Parameters<typeof createWays>[0], 'changes' | 'report'>): WayService {
  return createWays({ ...parts, report: () => parts.onError, changes: openTestChanges({ ...parts, recorder, tokens }) })
}
