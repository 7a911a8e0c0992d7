import { createHmac, type KeyObject } from 'node:crypto'
import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError, busyError } from '../errors.ts'
import { randomText } from '../ids.ts'
import { type Document, DuplicateKeyError, type Store } from '../store/port.ts'

/** Consecutive failures after which each further attempt has to wait. */
export const FREE = 20
/** Consecutive failures that close a password (NIST SP 800-63B-4, 3.2.2). */
export const MOST = 100
/** Failures with the cookie of one browser after which the cookie is worth nothing. */
export const BROWSER_MOST = 10

/** Milliseconds. */
const FIRST_PAUSE = 1000
const LONGEST_PAUSE = 15 * 60_000
const DAY = 24 * 60 * 60_000
/** A closed password stays closed. This only removes the record of one that nobody ever opens. */
const CLOSED = 3650 * DAY
/** Longer than a browser's cookie lives. */
const BROWSER = 400 * DAY

/** Conditional writes that may fail because of other attempts at the same password, before ErrBusy. */
const TRIES = 16

/** The consecutive failures at one password. */
export interface AttemptsRecord extends Document {
  failures: number
  failed_at: string
  /** Another one for each count that begins, so that an attempt is only taken back from the count that it is in. */
  series: string
  revision: number
  expired_at: string
}

/** What the failures are counted for. */
export interface Target {
  /** The kind of count; there are few. */
  kind: 'account' | 'user' | 'browser'
  /** The id of the user or of the browser. Where nobody has the name that was typed: that name. */
  name: string
  /**
   * Whose password it is and its epoch. A new password moves the epoch and so begins a new count, in the same write. Absent
   * for an unknown account.
   */
  holder?: { id: string, epoch: number } | undefined
}

/** Counts the failed attempts at passwords in the store, so that all processes count together and a restart forgets nothing. */
export interface Attempts {
  /**
   * Compares a password. The attempt is counted as a failure before the work begins, so that attempts at once cannot
   * outrun the count; a success ends the count, and an error takes the attempt back.
   * @param compare the result; null for a failure
   * @throws ErrLimit in a pause (`paused`) and after too many failures (`closed`)
   */
  run<T> (target: Target, compare: () => Promise<T | null>): Promise<T | null>
  /** Ends a count, which opens a closed password. */
  clear (target: Target): Promise<void>
}

/** Milliseconds to wait after this many failures: from 1 s after the 20th, doubling, to 15 min. */
export function toPause (failures: number): number {
  return failures < FREE ? 0 : Math.min(FIRST_PAUSE * 2 ** (failures - FREE), LONGEST_PAUSE)
}

/**
 * Milliseconds that a count outlives its last failure. One day for each failure: whoever waits for the end of a count tries one
 * password a day on average, and a caller who tries many accounts leaves records of a day.
 */
function toLife (kind: Target['kind'], failures: number): number {
  if (kind === 'browser') return BROWSER
  return failures >= MOST ? CLOSED : failures * DAY
}

function pausedError (milliseconds: number): IdentityError {
  const seconds = Math.max(1, Math.ceil(milliseconds / 1000))
  return new IdentityError('ErrLimit', `password: too many wrong attempts, try again in ${seconds} s`, {
    headers: { 'retry-after': String(seconds) }, reason: 'paused'
  })
}

function closedError (): IdentityError {
  return new IdentityError('ErrLimit', 'password: is closed after too many wrong attempts; reset it, or ask an administrator to open it', { reason: 'closed' })
}

/** @param key for the hashes, so that a copy of the database does not tell which accounts were tried */
export function createAttempts ({ store, now, key }: { store: Store, now: Clock, key: KeyObject }): Attempts {
  const records = store.collection<AttemptsRecord>('attempts')

  function toId ({ kind, name, holder }: Target): string {
    return createHmac('sha256', key).update(JSON.stringify([kind, name, holder?.id ?? '', holder?.epoch ?? 0])).digest('base64url')
  }

  /** Throws unless the password may be compared now. */
  function checkAllowed (kind: Target['kind'], { failures, failed_at }: AttemptsRecord): void {
    if (failures >= (kind === 'browser' ? BROWSER_MOST : MOST)) throw closedError()
    if (kind === 'browser') return
    const pause = toPause(failures)
    // A clock that was set back must not make the pause longer.
    const wait = Math.min(pause, Date.parse(failed_at) + pause - now())
    if (wait > 0) throw pausedError(wait)
  }

  /** Counts one more failure. Resolves to null when another attempt was counted since `known` was read. */
  async function write (kind: Target['kind'], id: string, known: AttemptsRecord | null): Promise<AttemptsRecord | null> {
    const time = now()
    const isOver = known === null || known.expired_at <= toTimestamp(time)
    const failures = isOver ? 1 : known.failures + 1
    const series = isOver ? randomText(16) : known.series
    const fields = { failures, series, failed_at: toTimestamp(time), expired_at: toTimestamp(time + toLife(kind, failures)) }
    if (known !== null) {
      return await records.update(id, { set: fields, increment: { revision: 1 } }, { equal: { series: known.series, revision: known.revision } })
    }
    const record = { id, ...fields, revision: 0 }
    try {
      await records.insert(record)
      return record
    } catch (error) {
      if (error instanceof DuplicateKeyError) return null
      throw error
    }
  }

  async function count ({ kind }: Target, id: string): Promise<AttemptsRecord> {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const known = await records.get(id)
      if (known !== null && known.expired_at > toTimestamp(now())) checkAllowed(kind, known)
      const counted = await write(kind, id, known)
      if (counted !== null) return counted
    }
    throw busyError('attempts at one password')
  }

  return {
    async run (target, compare) {
      const id = toId(target)
      const { series } = await count(target, id)
      let result
      try {
        result = await compare()
      } catch (error) {
        await records.update(id, { increment: { failures: -1, revision: 1 } }, { equal: { series } })
        throw error
      }
      if (result !== null) await records.delete(id)
      return result
    },

    async clear (target) {
      await records.delete(toId(target))
    }
  }
}
