import { type KeyObject, createHmac } from 'node:crypto'
import type { Recorder } from './recorder.ts'
import { TIMERS, type Timers } from '../timers.ts'

/** Failures of an account that are events of their own within an hour. Further ones are counted, and are one event a minute. */
const SINGLE = 10
const PERIOD = 60 * 60_000
const INTERVAL = 60_000

/** Accounts that are counted at once. Those that do not exist share one count, since anybody can think of more. */
const CAPACITY = 10_000
const UNKNOWN = ''

interface Count {
  since: number
  singles: number
  /** Those that are not recorded yet. */
  more: number
}

/** Characters of the hash that stands for what was typed. */
const HASH_LENGTH = 22

export interface FailureParts {
  recorder: Pick<Recorder, 'insert'>
  key: KeyObject
  onError: (error: unknown) => void
  timers?: Timers
}

/** Records failed sign-ins, of which anybody can make as many as the limits allow. */
export function createFailures ({ recorder, key, onError, timers = TIMERS }: FailureParts) {
  const counts = new Map<string, Count>()
  const writing = new Set<Promise<void>>()
  let timer: NodeJS.Timeout | undefined

  function write (user_id: string, typed: string | undefined, count?: number): void {
    const target = user_id !== UNKNOWN
      ? { id: user_id }
      : { id: typed === undefined ? '' : createHmac('sha256', key).update(typed).digest('base64url').slice(0, HASH_LENGTH), kind: 'unknown' }
    const work = recorder.insert({ type: 'sign_in.failed', outcome: 'failure', ...target, ...(count !== undefined && { count }) })
      .catch(onError).finally(() => { writing.delete(work) })
    writing.add(work)
  }

  function flush (): void {
    timers.clear(timer)
    timer = undefined
    const time = timers.now()
    for (const [user_id, count] of counts) {
      if (count.more > 0) write(user_id, undefined, count.more)
      count.more = 0
      if (time - count.since > PERIOD) counts.delete(user_id)
    }
    if (counts.size > 0) schedule()
  }

  function schedule (): void {
    timer ??= timers.set(flush, INTERVAL)
    timer.unref?.()
  }

  return {
    /**
     * A sign-in has failed. The event is written behind the caller, who must not learn by waiting whether the account exists.
     * @param user_id the user whose password was guessed; absent for an unknown account
     * @param typed the account as it was typed
     */
    record (user_id: string | undefined, typed: string): void {
      const name = user_id ?? UNKNOWN
      const time = timers.now()
      let count = counts.get(name)
      if (count === undefined || time - count.since > PERIOD) {
        if (count === undefined && counts.size >= CAPACITY) return
        counts.set(name, count = { since: time, singles: 0, more: count?.more ?? 0 })
      }
      if (count.singles < SINGLE) {
        count.singles++
        write(name, typed)
      } else count.more++
      schedule()
    },

    /** Records what is counted. */
    async close (): Promise<void> {
      flush()
      timers.clear(timer)
      await Promise.all(writing)
    }
  }
}

export type Failures = ReturnType<typeof createFailures>
