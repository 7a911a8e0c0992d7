import { setImmediate } from 'node:timers/promises'
import { groupNetwork } from '../throttling/networks.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { type Caller, Lane } from './lane.ts'
import { type Origin, findOrigin, runFor } from './origin.ts'
import type { Recorder } from './recorder.ts'
import type { Happening } from './types.ts'

export type { Caller } from './lane.ts'

const INTERVAL = 60_000

const KIB = 1024

/**
 * Bytes of single events an hour, and of summaries in ten minutes: of what strangers cause, and of what known callers do. docs/security.md
 * names them.
 */
const STRANGERS = { hour: 1024 * KIB, summaries: 20 * KIB }
const KNOWN = { hour: 512 * KIB, summaries: 10 * KIB }

/** @param caller the caller of all counted events, if there is only one */
function readSummaryOrigin (caller: Caller): Origin | undefined {
  const origin = findOrigin()
  return origin && { via: origin.via, readCaller: () => caller }
}

/** What an event counts as. */
export interface Counted {
  /** The account or client that it is about, or one name for all that strangers can make up. */
  name: string
  /** The account. Absent: it is about none. */
  user_id?: string | undefined
  /** The account or client that has caused it, where that is known. Absent: a stranger. */
  known?: string | undefined
  /** Events that each become an event within an hour. Absent: as many as of any other series. */
  singles?: number | undefined
  /** The event that sums up counted ones. Its client, method and identity are left out if they are not those of all of them. */
  summary: Happening
  caller?: Caller
}

interface SeriesParts {
  recorder: Pick<Recorder, 'insert' | 'measure'>
  onError: (error: unknown) => void
  /** Events of a series that each become an event within an hour. Further ones are counted, and become one event a minute. */
  singles: number
  outcome: NonNullable<Happening['outcome']>
  timers?: Timers | undefined
}

/** Sums up events that anyone can cause in any number. What strangers cause takes nothing from known callers. */
export function createSeries ({ recorder, onError, singles, outcome, timers = TIMERS }: SeriesParts) {
  const { measure } = recorder
  const writing = new Set<Promise<void>>()
  let timer: NodeJS.Timeout | undefined

  /** Does something in the background: deferred and not awaited, so that the response time reveals nothing to the caller. */
  function defer (work: () => Promise<void>): void {
    const done = setImmediate().then(work).catch(onError).finally(() => { writing.delete(done) })
    writing.add(done)
  }

  const write = (happening: Happening): void => defer(async () => await recorder.insert(happening))

  /** What was deferred may defer more. */
  async function settle (): Promise<void> {
    while (writing.size > 0) await Promise.all(writing)
  }

  const parts = {
    singles,
    outcome,
    measure: (happening: Happening, origin = findOrigin()) => runFor(origin, () => measure(happening)),
    write: (happening: Happening, origin: Origin | undefined) => runFor(origin, () => write(happening))
  }
  const strangers = new Lane({ ...parts, bytes: STRANGERS })
  const people = new Lane({ ...parts, bytes: KNOWN })

  function sumUp (isLast?: boolean): void {
    timers.clear(timer)
    timer = undefined
    const lanes = [strangers, people]
    for (const lane of lanes) lane.sumUp(timers.now(), isLast)
    if (lanes.some((lane) => !lane.isEmpty)) schedule()
  }

  function schedule (): void {
    // Without the origin of the current request: other requests may have caused the counted events.
    timer ??= runFor(undefined, () => timers.set(() => sumUp(), INTERVAL))
    timer.unref?.()
  }

  /** Records the counted events. */
  async function flush (): Promise<void> {
    await settle()
    sumUp(true)
    await settle()
  }

  return {
    /** Whether an event is to be recorded on its own. Otherwise it was counted. */
    admit (happening: Happening, { name, user_id, known, singles, summary, caller }: Counted): boolean {
      schedule()
      const address = findOrigin()?.address
      const share = known ?? (address === undefined ? '' : groupNetwork(address))
      const lane = known === undefined ? strangers : people
      return lane.admit(timers.now(), { name, user_id, share, address, singles }, happening, summary, () => readSummaryOrigin(caller))
    },

    /** Records an event in the background. */
    write,

    defer,

    /** Waits for the writes in flight. */
    settle,

    flush,

    /** Flushes, and stops the timer. */
    async close (): Promise<void> {
      await flush()
      timers.clear(timer)
    }
  }
}
