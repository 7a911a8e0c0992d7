import { type KeyObject, createHmac } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { TIMERS, type Timers } from '../timers.ts'
import { type Origin, findOrigin, runFor } from './origin.ts'
import type { Recorder } from './recorder.ts'
import type { Happening } from './types.ts'

/** Failures of a series that each become an event within an hour. Further ones are counted, and become one event a minute. */
const SINGLE = 10
const PERIOD = 60 * 60_000
const INTERVAL = 60_000

/** The most series in memory. */
const CAPACITY = 10_000

/** Characters of the hash that is recorded instead of the typed account. */
const HASH_LENGTH = 22

interface Count {
  since: number
  singles: number
  /** Counted failures that are not recorded yet, and the event that will sum them up. */
  more: number
  summary: Happening
  /** The `via` and the caller, without an address: the failures may have come from several addresses. */
  origin: Origin | undefined
}

type Caller = ReturnType<NonNullable<Origin['readCaller']>>

/** @param caller the caller of all counted failures, if there is only one */
function readSummaryOrigin (caller: Caller): Origin | undefined {
  const origin = findOrigin()
  return origin && { via: origin.via, readCaller: () => caller }
}

export interface FailureParts {
  recorder: Pick<Recorder, 'insert'>
  /** The key of the hashes. */
  key: KeyObject
  onError: (error: unknown) => void
  timers?: Timers
}

/** Records failures and refusals. Anyone can cause as many of them as the limits allow. */
export function createFailures ({ recorder, key, onError, timers = TIMERS }: FailureParts) {
  const counts = new Map<string, Count>()
  const writing = new Set<Promise<void>>()
  let timer: NodeJS.Timeout | undefined

  function write (happening: Happening): void {
    // Deferred and not awaited, so that the response time does not reveal whether a failure is recorded or only counted.
    const work = setImmediate().then(() => recorder.insert({ outcome: 'failure', ...happening })).catch(onError).finally(() => { writing.delete(work) })
    writing.add(work)
  }

  function flush (): void {
    timers.clear(timer)
    timer = undefined
    const time = timers.now()
    for (const [series, count] of counts) {
      const { more, summary, origin } = count
      if (more > 0) runFor(origin, () => write({ ...summary, count: more }))
      count.more = 0
      if (time - count.since > PERIOD) counts.delete(series)
    }
    if (counts.size > 0) schedule()
  }

  function schedule (): void {
    // Without the origin of the current request: other requests may have caused the counted failures.
    timer ??= runFor(undefined, () => timers.set(flush, INTERVAL))
    timer.unref?.()
  }

  /** The event is written in the background: the response time must reveal nothing to the caller. */
  function record (series: string, happening: Happening, { summary = happening, caller }: { summary?: Happening, caller?: Caller } = {}): void {
    const time = timers.now()
    let count = counts.get(series)
    if (count === undefined || time - count.since > PERIOD) {
      if (count === undefined && counts.size >= CAPACITY) return
      counts.set(series, count = { since: time, singles: 0, more: count?.more ?? 0, summary, origin: readSummaryOrigin(caller) })
    }
    if (count.singles < SINGLE) {
      count.singles++
      write(happening)
    } else count.more++
    schedule()
  }

  return {
    /**
     * Records a failed sign-in.
     * @param user_id the user whose password was guessed; absent for an unknown account
     * @param typed the account as it was typed
     */
    recordSignIn (user_id: string | undefined, typed: string): void {
      if (user_id !== undefined) return record(user_id, { type: 'sign_in.failed', id: user_id })
      const id = createHmac('sha256', key).update(typed).digest('base64url').slice(0, HASH_LENGTH)
      // One series for all unknown accounts, since anyone can make up more of them.
      record('unknown', { type: 'sign_in.failed', kind: 'unknown', id }, { summary: { type: 'sign_in.failed', kind: 'unknown', id: '' } })
    },

    /** Records that someone in a signed-in session did not know the user's password. */
    recordConfirmation (user_id: string): void {
      record(`confirmation ${user_id}`, { type: 'user.confirmation_failed', id: user_id })
    },

    /** Records that a caller was refused an operation for administrators. */
    recordRefusal (operation: string, origin: Origin): void {
      const caller = origin.readCaller?.()
      runFor(origin, () => record(`refusal ${caller?.user_id ?? caller?.client_id}`, { type: 'operation.refused', id: operation }, { caller }))
    },

    /** Waits for the writes in flight. */
    async settle (): Promise<void> {
      await Promise.all(writing)
    },

    /** Records the counted failures. */
    async flush (): Promise<void> {
      flush()
      await Promise.all(writing)
    },

    /** Flushes, and stops the timer. */
    async close (): Promise<void> {
      await this.flush()
      timers.clear(timer)
    }
  }
}

export type Failures = ReturnType<typeof createFailures>
