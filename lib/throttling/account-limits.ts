import { type Clock, toTimestamp } from '../clock.ts'
import { hashToken } from '../crypto/random-token.ts'
import { IdentityError } from '../errors.ts'
import type { Counter, Refusing } from './counter.ts'

/** Milliseconds of the window in which attempts are counted. */
export const WINDOW = 60_000

/** The name by which attempts of a known user are counted, from the second step of a sign-in on. Nobody can type it: what is typed is trimmed. */
export const toUserName = (user_id: string): string => ` user ${user_id}`

/** The account of a typed name in the counts. Hashed, because the typed name may be as long as a form allows. */
export const toCounted = (name: string): string => hashToken(name.toLowerCase())

/** An account of which limits are asked. */
export interface LimitedAccount {
  /** What people type as its name. */
  names: readonly string[]
  /** Absent where no account has the name. */
  user_id?: string | undefined
}

/** The limits a minute at one account. */
export interface AccountLimit {
  /** Until when this machine refuses attempts of some networks or browsers: ISO 8601. Absent: it refuses none. */
  until?: string
  /** Until when processes that this one cannot ask may refuse attempts, at most. Absent: there are none. */
  elsewhere_until?: string
}

/** The limits a minute for attempts at an account, as the counter of this machine has them. */
export interface AccountLimits {
  /** What refuses attempts at an account now. It counts nothing. */
  read (of: LimitedAccount): Promise<AccountLimit>
  /** Ends the counts of an account on this machine. Resolves to what refused attempts. */
  open (of: LimitedAccount): Promise<AccountLimit>
}

/**
 * @param isAlone whether no process counts attempts elsewhere: this one serves, and no other machine can use the store
 */
export function createAccountLimits ({ counter, now, isAlone }: { counter: Counter, now: Clock, isAlone: boolean }): AccountLimits {
  const toKeys = ({ names, user_id }: LimitedAccount) => [...names, ...(user_id === undefined ? [] : [toUserName(user_id)])].map(toCounted)

  function describe (refusing: readonly Refusing[] | undefined): AccountLimit {
    const time = now()
    const ttl = Math.max(0, ...(refusing ?? []).map((one) => one.ttl))
    const limit: AccountLimit = {}
    if (ttl > 0) limit.until = toTimestamp(time + ttl)
    if (!isAlone || refusing === undefined) limit.elsewhere_until = toTimestamp(time + WINDOW)
    return limit
  }

  /** Undefined for a counter that has no such call, or that does not answer in time. */
  async function ask (call: 'read' | 'open', of: LimitedAccount): Promise<Refusing[] | undefined> {
    try {
      return await counter[call]?.(toKeys(of))
    } catch (error) {
      if (error instanceof IdentityError && error.code === 'ErrBusy') return undefined
      throw error
    }
  }

  return {
    read: async (of) => describe(await ask('read', of)),
    open: async (of) => describe(await ask('open', of))
  }
}
