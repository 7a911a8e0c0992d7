import { IdentityError, goneError } from '../errors.ts'
import { TIMERS, type Timers } from '../timers.ts'

/** Milliseconds between two attempts, and their number: half a minute. */
const PAUSE = 250
const ATTEMPTS = 120

/**
 * Repeats what others hold up, such as changes of a record that they keep changing: another try heals it, so it is no verdict about a person.
 * @throws ErrBusy when it still fails after half a minute, which ends a run
 */
export async function untilFree<T> (
  attempt: () => Promise<T>,
  { signal, timers = TIMERS }: { signal?: AbortSignal | undefined, timers?: Pick<Timers, 'set'> | undefined } = {}
): Promise<T> {
  for (let count = 1; ; count++) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof IdentityError) || error.code !== 'ErrBusy' || count === ATTEMPTS) throw error
    }
    if (signal?.aborted === true) throw goneError()
    await new Promise<void>((resolve) => { timers.set(resolve, PAUSE) })
  }
}
