import { IdentityError } from '../errors.ts'
import { FairQueue, type Turn } from '../fair-queue.ts'
import { UpstreamError } from './failure.ts'

/** Sign-ins that call one provider at once, and those that wait for a place. */
const PLACES = 20
const WAITING = 200

/** Milliseconds that the calls of a sign-in are expected to take, until they are measured. */
const EXPECTED = 500

/**
 * Waits for the place of a sign-in, once: later calls have the same place.
 * @returns the signal that ends all calls of the sign-in
 * @throws UpstreamError `busy`
 */
export type Enter = () => Promise<AbortSignal>

/**
 * The places of the sign-ins that call one provider. Networks take turns, as for hashes of passwords. A place is taken at the first call,
 * so what the cache answers needs none.
 * @param deadline milliseconds for all calls of a sign-in together
 * @param slots how many call at once
 */
export function createPlaces (id: string, deadline: number, slots = PLACES) {
  // Whoever is next waits for one sign-in before them, which the deadline ends.
  const queue = new FairQueue({ what: `sign-ins with ${id}`, slots, places: WAITING, maxWait: 2 * deadline, duration: EXPECTED })

  /** Takes a place. @param left resolves when it is free again */
  async function take (left: Promise<void>, turn: Turn): Promise<AbortSignal> {
    const { promise, resolve, reject } = Promise.withResolvers<AbortSignal>()
    queue.run(async () => {
      resolve(AbortSignal.timeout(deadline))
      await left
    }, turn).catch((error: unknown) => reject(error instanceof IdentityError && error.code === 'ErrBusy' ? new UpstreamError('busy', error) : error))
    return await promise
  }

  return {
    /**
     * Runs what may call the provider, and gives its place back.
     * @throws what the work throws; without a place UpstreamError `busy`, or that the caller has disconnected
     */
    async run<T> (turn: Turn, work: (enter: Enter) => Promise<T>): Promise<T> {
      const left = Promise.withResolvers<void>()
      let entered: Promise<AbortSignal> | undefined
      let refused: { error: unknown } | undefined
      try {
        return await work(async () => await (entered ??= take(left.promise, turn).catch((error: unknown) => {
          refused = { error }
          throw error
        })))
      } catch (error) {
        // The library that speaks OpenID Connect replaces errors that it does not know.
        throw refused === undefined ? error : refused.error
      } finally {
        left.resolve()
      }
    }
  }
}
