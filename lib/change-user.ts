import { type Decision, changeRecord } from './change-record.ts'
import { type Clock, toTimestamp } from './clock.ts'
import type { Recorder } from './events/recorder.ts'
import type { Roles, UserRecord } from './records.ts'
import { isRoleGiven } from './roles.ts'
import type { Change, MaybePromise, Store } from './store/port.ts'

/** A change of a user, which also removes what is known of a password that goes. */
export function withPasswordScheme<T extends Change> (record: UserRecord, change: T): T {
  const { set, unset = [] } = change
  const isGone = unset.includes('password') || (set?.password !== undefined && set.password_scheme === undefined)
  return isGone && record.password_scheme !== undefined ? { ...change, unset: [...unset, 'password_scheme'] } : change
}

/** The fields whose change ends the mark of a user whom the former system still vouches for. */
const ENDS_MARK = ['password', 'ways', 'email', 'email_verified_at']

/** A change of a user, which also ends that mark. */
function withMarkEnded<T extends Change> (record: UserRecord, change: T): T {
  const { set = {}, unset = [], increment = {} } = change
  const isEnded = increment.epoch !== undefined || ENDS_MARK.some((field) => field in set || unset.includes(field))
  return isEnded && record.imported_lazy === true ? { ...change, unset: [...unset, 'imported_lazy'] } : change
}

/** Whoever has seen a link of the user could otherwise use it to get the new role. */
const endsLinks = (record: UserRecord, { set }: Change): boolean => set?.roles !== undefined && isRoleGiven(record.roles, set.roles as Roles)

/** What each change does beside what was decided. */
function complete (record: UserRecord, decision: Decision, time: string): Decision {
  const { set, increment, ...rest } = withMarkEnded(record, withPasswordScheme(record, decision))
  return {
    ...rest,
    set: { ...set, modified_at: time, ...(increment?.epoch !== undefined && { epoch_at: time }) },
    increment: { ...increment, ...(endsLinks(record, decision) && { link_epoch: 1 }) }
  }
}

interface Changing {
  store: Store
  now: Clock
  recorder: Pick<Recorder, 'attach'>
  /** The error where there is no such user. */
  notFound: () => Error
}

/**
 * The one way to change a user by a rule: `changeRecord`, and what every such change does. What ends the sessions, a password, a way or an
 * address ends the mark of the former system too.
 */
export async function changeUserRecord (
  { store, now, recorder, notFound }: Changing, user_id: string, decide: (record: UserRecord) => MaybePromise<Decision | null>
): Promise<UserRecord> {
  const collection = store.collection<UserRecord>('users')
  return await changeRecord({ collection, recorder, what: 'the user', notFound }, user_id, async (record) => {
    const decision = await decide(record)
    return decision && complete(record, decision, toTimestamp(now()))
  })
}
