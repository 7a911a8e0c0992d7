import { setImmediate } from 'node:timers/promises'
import { TIMERS, type Timers } from '../timers.ts'
import { type Origin, findOrigin, runFor } from './origin.ts'
import type { Recorder } from './recorder.ts'
import type { Happening } from './types.ts'

const PERIOD = 60 * 60_000
const INTERVAL = 60_000

/** The most series in memory. */
const CAPACITY = 10_000

interface Count {
  since: number
  singles: number
  /** Counted events that are not recorded yet, and the event that will sum them up. */
  more: number
  summary: Happening
  /** The `via` and the caller, without an address: the events may have come from several addresses. */
  origin: Origin | undefined
}

type Caller = ReturnType<NonNullable<Origin['readCaller']>>

/** @param caller the caller of all counted events, if there is only one */
function readSummaryOrigin (caller: Caller): Origin | undefined {
  const origin = findOrigin()
  return origin && { via: origin.via, readCaller: () => caller }
}

interface SeriesParts {
  recorder: Pick<Recorder, 'insert'>
  onError: (error: unknown) => void
  /** Events of a series that each become an event within an hour. Further ones are counted, and become one event a minute. */
  singles: number
  /** Whether an event is recorded on its own while there are too many series to count it. */
  isFullAdmitted: boolean
  timers?: Timers | undefined
}

/** Sums up events that anyone can cause in any number. */
export function createSeries ({ recorder, onError, singles, isFullAdmitted, timers = TIMERS }: SeriesParts) {
  const counts = new Map<string, Count>()
  const writing = new Set<Promise<void>>()
  let timer: NodeJS.Timeout | undefined

  function write (happening: Happening): void {
    const work = setImmediate().then(() => recorder.insert(happening)).catch(onError).finally(() => { writing.delete(work) })
    writing.add(work)
  }

  function sumUp (): void {
    timers.clear(timer)
    timer = undefined
    const time = timers.now()
    for (const [name, count] of counts) {
      const { more, summary, origin } = count
      if (more > 0) runFor(origin, () => write({ ...summary, count: more }))
      count.more = 0
      if (time - count.since > PERIOD) counts.delete(name)
    }
    if (counts.size > 0) schedule()
  }

  function schedule (): void {
    // Without the origin of the current request: other requests may have caused the counted events.
    timer ??= runFor(undefined, () => timers.set(sumUp, INTERVAL))
    timer.unref?.()
  }

  /** Records the counted events. */
  async function flush (): Promise<void> {
    sumUp()
    await Promise.all(writing)
  }

  return {
    /**
     * Whether an event is to be recorded on its own. Otherwise it was counted.
     * @param summary the event that sums up counted ones. Its client is left out if it is not that of all of them
     */
    admit (name: string, summary: Happening, caller?: Caller): boolean {
      const time = timers.now()
      let count = counts.get(name)
      if (count === undefined || time - count.since > PERIOD) {
        if (count === undefined && counts.size >= CAPACITY) return isFullAdmitted
        counts.set(name, count = { since: time, singles: 0, more: count?.more ?? 0, summary, origin: readSummaryOrigin(caller) })
      }
      schedule()
      if (count.singles < singles) {
        count.singles++
        return true
      }
      if (count.more === 0) count.summary = summary
      else if (count.summary.client_id !== summary.client_id) count.summary = { ...count.summary, client_id: undefined }
      count.more++
      return false
    },

    /** Records an event in the background: deferred and not awaited, so that the response time reveals nothing to the caller. */
    write,

    /** Waits for the writes in flight. */
    async settle (): Promise<void> {
      await Promise.all(writing)
    },

    flush,

    /** Flushes, and stops the timer. */
    async close (): Promise<void> {
      await flush()
      timers.clear(timer)
    }
  }
}
