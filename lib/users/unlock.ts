import type { Opening, Unlocked } from '../../schemas/unlock.ts'
import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { IdentityError } from '../errors.ts'
import type { Notices } from '../notice.ts'
import type { UserRecord } from '../records/user.ts'
import type { Actor } from '../roles.ts'
import type { AccountLimits } from '../throttling/account-limits.ts'
import { listNames } from './addresses.ts'
import type { People } from './people.ts'
import type { StoredUsers } from './stored-users.ts'

const DAY = 24 * 60 * 60_000

/** The program that calls without a person. */
const PROGRAM: Actor = { user_id: '', isAdmin: true }

/** How often a day support staff unlock one account: NIST SP 800-63B-4, 3.2.2 bounds the guesses at it. */
const PER_DAY = 3

export interface UnlockParts extends Pick<Base, 'now'>, Pick<StoredUsers, 'changeUser'> {
  recorder: Pick<Base['recorder'], 'insert'>
  notices: Pick<Notices, 'write'>
  people: Pick<People, 'checkMayHelp' | 'requireHelpable'>
  limits: Pick<AccountLimits, 'open'>
  /** Opens the password and the second factors. */
  openAll: (record: UserRecord) => Promise<Opening[]>
}

/** Those of the last day, the oldest first. The clock may have been set back. */
function listRecent ({ support_unlocks = [] }: UserRecord, time: number): string[] {
  const [from, to] = [toTimestamp(time - DAY), toTimestamp(time)]
  return support_unlocks.filter((at) => at > from && at <= to)
}

function toLimitError (oldest: string, time: number): IdentityError {
  const seconds = Math.max(1, Math.ceil((Date.parse(oldest) + DAY - time) / 1000))
  return new IdentityError('ErrLimit', `userId: was unlocked ${PER_DAY} times within a day; an admin unlocks it, or try again in ${seconds} s`, {
    headers: { 'retry-after': String(seconds) }
  })
}

/** Opens what too many failures have closed of an account, for somebody else. */
export function createUnlock ({ now, changeUser, recorder, notices, people, limits, openAll }: UnlockParts) {
  /** Counts an unlock by support staff. The same write records it and has the mail to the person. */
  async function countUnlock (user_id: string, actor: Actor): Promise<void> {
    await changeUser(user_id, async (record) => {
      people.checkMayHelp(record, actor)
      await actor.confirm?.()
      const time = now()
      const recent = listRecent(record, time)
      const oldest = recent.at(-PER_DAY)
      if (oldest !== undefined) throw toLimitError(oldest, time)
      return {
        set: { support_unlocks: [...recent, toTimestamp(time)] },
        happened: [{ type: 'user.unlocked', id: user_id }],
        notices: await notices.write('unlocked', record)
      }
    })
  }

  /**
   * Ends the pauses and locks of the password and the second factors, and the limits a minute of this machine. Support staff do so three
   * times a day for one account.
   * @param actor absent: the program itself
   * @throws ErrNotFound, ErrPerm, ErrLimit
   */
  return async function unlock (user_id: string, actor: Actor = PROGRAM): Promise<Unlocked> {
    const record = await people.requireHelpable(user_id, actor)
    if (actor.isSupport === true) await countUnlock(user_id, actor)
    const parts = await openAll(record)
    const { until, elsewhere_until } = await limits.open({ names: listNames(record), user_id })
    if (actor.isSupport !== true) await recorder.insert({ type: 'user.unlocked', id: user_id })
    const all: Opening[] = [...parts, until === undefined ? { part: 'limit' } : { part: 'limit', reason: 'limited', until }]
    return defined({
      opened: all.flatMap(({ reason, ...part }) => reason === undefined ? [] : [{ ...part, reason }]),
      not_closed: all.flatMap(({ reason, part, factor_id }) => reason === undefined ? [defined({ part, factor_id })] : []),
      elsewhere_until
    })
  }
}
