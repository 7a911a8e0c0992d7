import { setImmediate as nextTurn } from 'node:timers/promises'

/** Turns of the event loop without a change, after which something stands still. */
const QUIET = 200
/** Turns after which a test gives up. */
const MOST = 100_000

/**
 * Resolves to a number when it has not changed for many turns of the event loop.
 * @param what for the error, where it goes on changing
 */
export async function settleAt (what: string, read: () => number): Promise<number> {
  let last = read()
  for (let turn = 0, quiet = 0; quiet < QUIET; turn++) {
    if (turn === MOST) throw new Error(`${what} has not come to rest at ${last}`)
    await nextTurn()
    const present = read()
    quiet = present === last ? quiet + 1 : 0
    last = present
  }
  return last
}

/** Counts the turns that others get while something runs. */
export async function countTurns (run: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await run()
  isOver = true
  return turns
}

/** Batches without end, which are there at once. It counts those that were taken, and says whether the reader has left. */
export function createSource<T> (make: (index: number) => T, most = Infinity) {
  const seen = { taken: 0, isLeft: false }
  async function * take (): AsyncGenerator<T> {
    try {
      while (seen.taken < most) yield make(seen.taken++)
    } finally {
      seen.isLeft = true
    }
  }
  return { seen, batches: take() }
}
