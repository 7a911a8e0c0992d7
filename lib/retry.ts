import { IdentityError } from './errors.ts'

/** Attempts before ErrBusy: each write by somebody else makes one fail. */
const ATTEMPTS = 8

/**
 * Repeats a change that reads a record, decides, and writes on condition that the record is still the same.
 * @param what the record, for the message of ErrBusy
 * @param attempt resolves to null when somebody else wrote in between; what it throws ends the change
 * @throws ErrBusy
 */
export async function retryWrite<T> (what: string, attempt: () => Promise<T | null>): Promise<T> {
  for (let count = 0; count < ATTEMPTS; count++) {
    const written = await attempt()
    if (written !== null) return written
  }
  throw new IdentityError('ErrBusy', `other requests are changing ${what}`, { headers: { 'retry-after': '1' } })
}
