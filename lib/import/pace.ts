import type { MaybePromise } from '../store/port.ts'
import { TIMERS, type Timers } from '../timers.ts'

/** The most lines that are written at once, as one transaction where the engine has those. */
const BATCH = 100

/** The same while people sign in: each write of theirs may wait behind one such transaction. */
const SMALL_BATCH = 25

/** Lines a second while people sign in. The publication of their events is as much work again. */
const RATE = 1_000

/** Milliseconds after a password was compared in which others are expected. */
const CALM = 60_000

/** Milliseconds in which a sign-in makes its writes, after its password was compared. */
const SETTLING = 25

/** Milliseconds that a batch waits at most for sign-ins that follow one another without a pause. */
const LONGEST = 100

/** Milliseconds between two looks at the sign-ins. */
const LOOK = 5

/**
 * How an import shares the machine with sign-ins. The threads that compare their passwords have a lower priority than the rest of the
 * service, so they get little while an import keeps that busy. It always goes on, however many sign-ins there are.
 */
export function createPace (countRest: () => MaybePromise<number | undefined>, timers: Timers = TIMERS) {
  const sleep = async (delay: number) => await new Promise<void>((resolve) => { timers.set(resolve, delay) })
  /** By the timers' clock. */
  let nextAt = 0
  return {
    /** Resolves when the next batch may begin, to the number of its lines. */
    async wait (): Promise<number> {
      const delay = nextAt - timers.now()
      if (delay > 0) await sleep(delay)
      const end = timers.now() + LONGEST
      let rest = await countRest()
      while (rest !== undefined && rest < SETTLING && timers.now() < end) {
        await sleep(LOOK)
        rest = await countRest()
      }
      const isSlow = rest === undefined || rest < CALM
      nextAt = isSlow ? timers.now() + 1_000 * SMALL_BATCH / RATE : 0
      return isSlow ? SMALL_BATCH : BATCH
    }
  }
}
