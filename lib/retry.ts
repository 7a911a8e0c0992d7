import { setTimeout as sleep } from 'node:timers/promises'
import { IdentityError } from './errors.ts'

/** Attempts before ErrBusy. Each concurrent write makes one attempt fail. */
const ATTEMPTS = 8

/** Milliseconds between attempts, and their number, while the record carries too many events. Events are normally published sooner. */
const PAUSE = 50
const PAUSES = 40

/** The record carries so many events that no more may be added until some are published. */
export function fullError (): IdentityError {
  const message = 'too many events of this record are not published yet: try again in a few seconds'
  return new IdentityError('ErrBusy', message, { headers: { 'retry-after': '1' }, reason: 'events' })
}

const isFull = (error: unknown): boolean => error instanceof IdentityError && error.reason === 'events'

/**
 * Repeats a change that reads a record, decides, and writes only if the record has not changed since it was read.
 * @param what the record, for the message of ErrBusy
 * @param attempt resolves to null after a concurrent write; an error from it ends the change
 * @throws ErrBusy
 */
export async function retryWrite<T> (what: string, attempt: () => Promise<T | null>): Promise<T> {
  for (let count = 0, pauses = 0; count < ATTEMPTS;) {
    try {
      const written = await attempt()
      if (written !== null) return written
      count++
    } catch (error) {
      if (!isFull(error) || pauses++ === PAUSES) throw error
      await sleep(PAUSE)
    }
  }
  throw new IdentityError('ErrBusy', `other requests are changing ${what}`, { headers: { 'retry-after': '1' } })
}
