import { LRUCache } from 'lru-cache'
import type { Base } from '../base.ts'
import { permError } from '../errors.ts'
import type { UserRecord } from '../records/user.ts'
import { type Actor, type RoleNames, hasSpecialRole, holdsRole } from '../roles.ts'
import type { Store } from '../store/port.ts'
import { scan } from '../store/scan.ts'
import { readShared } from '../store/shared.ts'
import { userNotFound } from '../user-changes/user-changes.ts'

const HOUR = 60 * 60_000

/** Pairs of a person and a reader whose event of this hour is known. Beyond this it is recorded again, and published once. */
const CAPACITY = 10_000

/** Who reads. A client that acts for itself is not the user who owns it. */
const toReader = ({ isUser, client_id, user_id }: Actor): string => isUser === false && client_id !== undefined ? `client ${client_id}` : user_id

/**
 * The gate of every operation on another person that is not for administrators alone: theirs are all people; those of managers and
 * support staff are the people with none of the special roles.
 * @throws ErrPerm
 */
export function checkMayHelp (names: RoleNames, person: Pick<UserRecord, 'id' | 'roles'>, actor: Actor): void {
  if (actor.isAdmin) return
  if (hasSpecialRole(names, person.roles)) throw permError('userId', 'only an admin may do this to a user with a role of the staff')
  if (actor.isSupport === true && actor.user_id === person.id) throw permError('userId', 'support staff may not do this to their own account')
}

/** How many users hold a role. It reads them all, page by page. */
export async function countHolders (store: Store, role: string, signal: AbortSignal): Promise<number> {
  let count = 0
  for await (const batch of scan(store.collection<UserRecord>('users'), {})) {
    signal.throwIfAborted()
    count += batch.filter(({ roles }) => holdsRole(roles, role)).length
  }
  return count
}

/** Which people a caller may read and help. */
export function createPeople ({ store, roles, recorder, now }: Pick<Base, 'roles' | 'now'> & {
  store: Pick<Store, 'collection'>
  recorder: Pick<Base['recorder'], 'insert'>
}) {
  const users = store.collection<UserRecord>('users')
  const seen = new LRUCache<string, true>({ max: CAPACITY })

  /** One event for each person, reader and hour. It is durable before anything is answered. */
  async function recordView (user_id: string, actor: Actor): Promise<void> {
    const once = `viewed/${user_id}/${toReader(actor)}/${Math.floor(now() / HOUR)}`
    if (seen.get(once) === true) return
    await recorder.insert({ type: 'user.viewed', id: user_id }, [], once)
    seen.set(once, true)
  }

  return {
    /** @throws ErrPerm unless the actor may act on this person, by `checkMayHelp` */
    checkMayHelp: (person: Pick<UserRecord, 'id' | 'roles'>, actor: Actor): void => checkMayHelp(roles, person, actor),

    /**
     * The gate of every read of one person, whose record is to be read only. That support staff have read them is recorded, once an hour.
     * @throws ErrNotFound, ErrPerm, also when the actor has lost the right meanwhile
     */
    async requireReadable (user_id: string, actor: Actor): Promise<UserRecord> {
      const person = await readShared(users, user_id)
      if (person === null) throw userNotFound()
      // One's own account is no secret, whoever the option `access` lets call it.
      if (actor.user_id === user_id && actor.isUser !== false) return person
      checkMayHelp(roles, person, actor)
      if (actor.isSupport === true) await recordView(user_id, actor)
      if (!actor.isAdmin) await actor.confirm?.()
      return person
    },

    /**
     * The gate of every act on one person. What also changes their record checks again, on the record that the write replaces.
     * @throws ErrNotFound, ErrPerm, also when the actor has lost the right meanwhile
     */
    async requireHelpable (user_id: string, actor: Actor): Promise<UserRecord> {
      const person = await users.get(user_id)
      if (person === null) throw userNotFound()
      checkMayHelp(roles, person, actor)
      await actor.confirm?.()
      return person
    }
  }
}

export type People = ReturnType<typeof createPeople>
