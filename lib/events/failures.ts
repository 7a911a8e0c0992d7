import { type KeyObject, createHmac } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { TIMERS, type Timers } from '../timers.ts'
import { type Origin, findOrigin, runFor } from './origin.ts'
import type { Recorder } from './recorder.ts'
import type { Happening } from './types.ts'

/** Failures of a series that are events of their own within an hour. Further ones are counted, and are one event a minute. */
const SINGLE = 10
const PERIOD = 60 * 60_000
const INTERVAL = 60_000

/** Series that are counted at once. */
const CAPACITY = 10_000

/** Characters of the hash that stands for what was typed. */
const HASH_LENGTH = 22

interface Count {
  since: number
  singles: number
  /** Those that are not recorded yet, and what the event says that stands for them. */
  more: number
  summary: Happening
  /** How they came, and not from where: they may have come from several addresses. */
  origin: Origin | undefined
}

type Caller = ReturnType<NonNullable<Origin['readCaller']>>

/** @param caller who is behind all that is counted, where that is one */
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

/** Records what failed or was refused, of which anybody can make as much as the limits allow. */
export function createFailures ({ recorder, key, onError, timers = TIMERS }: FailureParts) {
  const counts = new Map<string, Count>()
  const writing = new Set<Promise<void>>()
  let timer: NodeJS.Timeout | undefined

  function write (happening: Happening): void {
    // Deferred and not awaited, so that the response time does not tell whether a failure is recorded or only counted.
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
    // Not on behalf of the present request: what is counted then may be of others.
    timer ??= runFor(undefined, () => timers.set(flush, INTERVAL))
    timer.unref?.()
  }

  /** The event is written behind the caller, who must not learn anything by waiting for it. */
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
     * A sign-in has failed.
     * @param user_id the user whose password was guessed; absent for an unknown account
     * @param typed the account as it was typed
     */
    recordSignIn (user_id: string | undefined, typed: string): void {
      if (user_id !== undefined) return record(user_id, { type: 'sign_in.failed', id: user_id })
      const id = createHmac('sha256', key).update(typed).digest('base64url').slice(0, HASH_LENGTH)
      // One series for all of them, since anybody can think of more.
      record('unknown', { type: 'sign_in.failed', kind: 'unknown', id }, { summary: { type: 'sign_in.failed', kind: 'unknown', id: '' } })
    },

    /** Somebody who was signed in did not know the user's password. */
    recordConfirmation (user_id: string): void {
      record(`confirmation ${user_id}`, { type: 'user.confirmation_failed', id: user_id })
    },

    /** An operation for administrators was refused to a caller. */
    recordRefusal (operation: string, origin: Origin): void {
      const caller = origin.readCaller?.()
      runFor(origin, () => record(`refusal ${caller?.user_id ?? caller?.client_id}`, { type: 'operation.refused', id: operation }, { caller }))
    },

    /** Waits for what is being written. */
    async settle (): Promise<void> {
      await Promise.all(writing)
    },

    /** Records what is counted. */
    async flush (): Promise<void> {
      flush()
      await Promise.all(writing)
    },

    /** The same, at the end. */
    async close (): Promise<void> {
      await this.flush()
      timers.clear(timer)
    }
  }
}

export type Failures = ReturnType<typeof createFailures>
