import { generateId } from '../ids.ts'
import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError, permError } from '../errors.ts'
import { scan } from '../store/scan.ts'
import { type UserChange, type UserRecord, applyChange, isActive } from '../records/user.ts'
import { retryWrite } from '../retry.ts'
import { holdsRole } from '../roles.ts'
import type { Step } from '../store/migrator.ts'
import { type Document, DuplicateKeyError } from '../store/port.ts'

/** Milliseconds for which a user who is being removed as an administrator does not count as one. */
const LEAVING = 60_000

const ID = 'administrators'

/**
 * Decides between requests that each take away an administrator: each of them first writes to this document, which has a field for
 * each one in progress. The name of the field is the request's own.
 */
interface AdministratorsRecord extends Document {
  revision: number
}

type Leaving = { user_id: string, until: string }

const FIELD_PREFIX = 'leaving:'

const listLeaving = (document: Document, own: string): [field: string, Leaving][] =>
  Object.entries(document).filter(([field]) => field.startsWith(FIELD_PREFIX) && field !== own) as [string, Leaving][]

/** The part of a user that a mark depends on. Expiry is not in it, because nothing is written when a user expires. */
type Marked = Pick<UserRecord, 'roles' | 'disabled_at'> & { administers?: boolean }

const toMark = ({ roles, disabled_at }: Marked, role: string): true | undefined =>
  holdsRole(roles, role) && disabled_at === undefined ? true : undefined

/** The change that corrects the mark of a user, if it is wrong. */
function correct (user: Marked, role: string): Pick<UserChange, 'set' | 'unset'> {
  const mark = toMark(user, role)
  if (mark === user.administers) return {}
  return mark ? { set: { administers: true } } : { unset: ['administers'] }
}

/** Marks the administrators among existing users. The role's name is an option, so the step may run again. */
export function createMarking (role: string): { role: string, step: Step } {
  const step: Step = {
    version: 3,
    collection: 'users',
    toChange (document) {
      const user = { roles: {}, ...document } as unknown as UserRecord
      const change = correct(user, role)
      if (Object.keys(change).length === 0) return null
      return user.revision === undefined ? { change } : { change, where: { equal: { revision: user.revision } } }
    }
  }
  return { role, step }
}

/**
 * Throws ErrPerm when a change would take away the last administrator. To be called after `record` was read and before the write,
 * which must require the revision of `record`.
 * @param change null for a deletion
 */
type Permit = (record: UserRecord, change: UserChange | null) => Promise<void>

/** Keeps at least one active administrator: a user with the role who is neither disabled nor expired. */
export function createAdministrators ({ store, now, role, onError }: Pick<Base, 'store' | 'now'> & {
  role: string, onError: (error: unknown) => void
}) {
  const users = store.collection<UserRecord>('users')
  const documents = store.collection<AdministratorsRecord>('meta')

  const isAdministrator = (user: UserRecord): boolean => holdsRole(user.roles, role) && isActive(user, toTimestamp(now()))

  function describe (change: UserChange | null): IdentityError {
    if (change === null) return permError('user', 'the last administrator cannot be deleted')
    if (change.set?.disabled_at !== undefined) return permError('disable', 'the last administrator cannot be disabled')
    return permError('roles', `the last administrator cannot lose the role ${role}`)
  }

  async function read (): Promise<AdministratorsRecord> {
    const found = await documents.get(ID)
    if (found !== null) return found
    const created = { id: ID, revision: 0 }
    await documents.insert(created).catch((error: unknown) => { if (!(error instanceof DuplicateKeyError)) throw error })
    return await documents.get(ID) ?? created
  }

  async function isAnother (user_id: string, leaving: ReadonlySet<string>): Promise<boolean> {
    for await (const batch of scan(users, { equal: { administers: true } }, { urgent: true })) {
      if (batch.some((user) => user.id !== user_id && !leaving.has(user.id) && isAdministrator(user))) return true
    }
    return false
  }

  /**
   * Ends requests that have taken too long. Their processes have died, or will notice: they write only to the revision of a user that
   * they read before they wrote here.
   */
  async function end (document: AdministratorsRecord, late: [field: string, Leaving][]): Promise<void> {
    for (const [, { user_id }] of late) await users.update(user_id, { increment: { revision: 1 } })
    const unset = late.map(([field]) => field)
    await documents.update(ID, { unset, increment: { revision: 1 } }, { equal: { revision: document.revision } })
  }

  /** Enters a request, or renews its time. It always writes, so that nobody ends the request after the caller has read the user. */
  async function enter (field: string, user_id: string, change: UserChange | null): Promise<void> {
    await retryWrite('the administrators', async () => {
      const document = await read()
      const others = listLeaving(document, field)
      const late = others.filter(([, { until }]) => until <= toTimestamp(now()))
      if (late.length > 0) {
        await end(document, late)
        return null
      }
      const leaving = new Set(others.map(([, other]) => other.user_id))
      if (!Object.hasOwn(document, field) && !await isAnother(user_id, leaving)) throw describe(change)
      const own: Leaving = { user_id, until: toTimestamp(now() + LEAVING) }
      return await documents.update(ID, { set: { [field]: own }, increment: { revision: 1 } }, { equal: { revision: document.revision } })
    })
  }

  return {
    /** A new user with the mark that finds administrators. */
    mark <T extends Marked>(record: T): T & Marked {
      return toMark(record, role) ? { ...record, administers: true } : record
    },

    /** A change of a user, and that of the mark. */
    markChange <T extends UserChange>(record: UserRecord, change: T): T {
      const { set, unset } = correct(applyChange(record, change), role)
      return { ...change, set: { ...change.set, ...set }, unset: [...change.unset ?? [], ...unset ?? []] }
    },

    /**
     * Makes changes that may take away an administrator. Every such change passes here. Of the last two administrators who are
     * removed at once, one stays.
     * @param isForced whether the last one may go too
     */
    async guard<T> (work: (permit: Permit) => Promise<T>, isForced = false): Promise<T> {
      const field = `${FIELD_PREFIX}${generateId(now())}`
      let entered = false
      const permit: Permit = async (record, change) => {
        if (isForced || !isAdministrator(record) || (change !== null && isAdministrator(applyChange(record, change)))) return
        await enter(field, record.id, change)
        entered = true
      }
      const leave = async () => { if (entered) await documents.update(ID, { unset: [field] }).catch(onError) }
      try {
        const result = await work(permit)
        await leave()
        return result
      } catch (error) {
        // After a failure of the store the write may happen yet. The request ends by itself.
        if (!(error instanceof IdentityError) || error.code !== 'ErrDb') await leave()
        throw error
      }
    }
  }
}
