import { setTimeout as sleep } from 'node:timers/promises'

/** Milliseconds: a generous limit for a busy machine, and less than the time of a file, so that the error names what was waited for. */
export const BOUND = 45_000

/** Milliseconds for what goes on beside a flood: less than any time limit of the service, so that what waits for one is seen. */
export const PROMPT = 8_000

/** Turns of the event loop after which a condition is looked at every ten milliseconds, so that the wait leaves the processor to others. */
const TURNS = 20

/** Resolves with the promise. Rejects with an error that contains `what` when it takes too long. */
export async function within<T> (what: string, promise: Promise<T>, bound: number = BOUND): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  try {
    return await Promise.race([promise, new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`not in time: ${what}`)), bound)
    })])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Looks until it finds something, and resolves with that. Rejects with an error that contains `what` when it takes too long.
 * @param find may be asked many times; undefined, null and false are nothing
 */
export async function waitUntil<T> (what: string, find: () => T | Promise<T>, bound: number = BOUND): Promise<Exclude<T, undefined | null | false>> {
  const end = performance.now() + bound
  for (let turn = 0; ; turn++) {
    const found = await find()
    if (found !== undefined && found !== null && found !== false) return found as Exclude<T, undefined | null | false>
    if (performance.now() > end) throw new Error(`not in time: ${what}`)
    await (turn < TURNS ? new Promise(setImmediate) : sleep(10))
  }
}
