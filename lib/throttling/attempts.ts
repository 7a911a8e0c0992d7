import { createHmac, type KeyObject } from 'node:crypto'
import type { Reason } from '../../schemas/reason.ts'
import type { Opening } from '../../schemas/unlock.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import { IdentityError, busyError, goneError } from '../errors.ts'
import { randomText } from '../ids.ts'
import { type Document, DuplicateKeyError, type Store } from '../store/port.ts'
import { Slots } from '../work/slots.ts'

/** What the errors of a count say, as events and answers do. */
const REASONS: Readonly<Record<string, Reason>> = { paused: 'paused', closed: 'password_locked', code_closed: 'factor_locked' }

/** Why a count has refused an attempt; undefined for another error. */
export const findCountReason = (error: unknown): Reason | undefined => (
  error instanceof IdentityError && error.reason !== undefined && Object.hasOwn(REASONS, error.reason) ? REASONS[error.reason] : undefined)

/** Consecutive failures after which each further attempt must wait. */
const FREE = 20
/** Consecutive failures that close a password (NIST SP 800-63B-4, 3.2.2). */
const MOST = 100
/** Failures with the cookie of one browser, after which the cookie has no effect. */
const BROWSER_MOST = 10

/** Milliseconds. */
const FIRST_PAUSE = 1000
const LONGEST_PAUSE = 15 * 60_000
const DAY = 24 * 60 * 60_000
/** A closed password stays closed. This only removes the record of a password that is never opened again. */
const CLOSED = 3650 * DAY
/** Longer than the lifetime of a browser's cookie. */
const BROWSER = 400 * DAY

/** Conditional writes before ErrBusy. A count that begins or ends meanwhile makes one fail. */
const TRIES = 16

/**
 * Concurrent attempts of this process at one password. Each counts as a failure until it has succeeded, so that many right ones at
 * once would reach the pauses.
 */
const AT_ONCE = 4

/** The consecutive failures at one password. */
export interface AttemptsRecord extends Document {
  failures: number
  failed_at: string
  /** Random, new for each count. An attempt is thus taken back only from the count that includes it. */
  series: string
  revision: number
  expired_at: string
}

/** The subject of a count of failures. */
export interface Target {
  /** The kind of count. */
  kind: 'account' | 'user' | 'browser' | 'factor' | 'recovery'
  /** The id of the user, the browser or the factor; of backup codes that of their user. For an unknown account: the typed name. */
  name: string
  /**
   * The user and their epoch. A new password increments the epoch, and so starts a new count with the same write. Absent for an
   * unknown account, and for a factor and backup codes: a new password must not open them.
   */
  holder?: { id: string, epoch: number } | undefined
}

/** Counts failed attempts at passwords in the store, so that all processes share the counts and a restart keeps them. */
export interface Attempts {
  /**
   * Compares a password. The attempt is counted as a failure before the comparison starts, so that concurrent attempts cannot
   * exceed the limit. A success ends the count. An error takes the attempt back.
   * @param compare the result; null for a failure
   * @param signal aborted when the caller has disconnected. An attempt that still waits behind others is then not made
   * @throws ErrLimit in a pause (`paused`) and after too many failures (`closed`, `code_closed`)
   */
  run<T> (target: Target, compare: () => Promise<T | null>, signal?: AbortSignal, ends?: AttemptEnds<T>): Promise<T | null>
  /** Reads whether the next attempt would be refused. It counts nothing. */
  read (target: Target): Promise<Standing>
  /** Ends a count, which opens a closed password or factor. Resolves to whether it was closed. */
  clear (target: Target): Promise<boolean>
  /** Ends a count as `clear` does. Resolves to what it said before. */
  open (target: Target): Promise<Standing>
}

/** What a count says of the next attempt. */
export interface Standing {
  failures: number
  /** The last failure: ISO 8601. Absent without one. */
  failed_at?: string
  /** Too many failures have closed it: waiting does not help. */
  isClosed: boolean
  /** The end of a pause: ISO 8601. */
  until?: string
}

/** A part of an account that was opened, by what its count said. */
export function toOpening (part: 'password' | 'confirmation' | 'factor', { isClosed, until }: Standing, factor_id?: string): Opening {
  if (isClosed) return defined({ part, factor_id, reason: part === 'factor' ? 'factor_locked' as const : 'password_locked' as const })
  return defined({ part, factor_id, until, reason: until === undefined ? undefined : 'paused' as const })
}

/** What an attempt does beside counting. */
export interface AttemptEnds<T> {
  /** Whether a success ends the count. If not, it only takes its own attempt back. Absent: it does. */
  isLast?: (result: T) => boolean
  /** Called by the failure that closes it. */
  onClosed?: () => Promise<void>
}

/** Milliseconds to wait after this many failures: from 1 s after the 20th, doubling, to 15 min. */
export function toPause (failures: number): number {
  return failures < FREE ? 0 : Math.min(FIRST_PAUSE * 2 ** (failures - FREE), LONGEST_PAUSE)
}

/**
 * Milliseconds until a count expires after its last failure: one day for each failure. An attacker who waits for the end of a count
 * can try one password a day on average, and one who tries many accounts leaves records that expire after a day.
 */
function toLife (kind: Target['kind'], failures: number): number {
  if (kind === 'browser') return BROWSER
  return failures >= MOST ? CLOSED : failures * DAY
}

/** Whether a count is one of codes. */
const isOfCodes = (kind: Target['kind']): boolean => kind === 'factor' || kind === 'recovery'

/** What was tried, for error messages. */
const toField = (kind: Target['kind']): string => isOfCodes(kind) ? 'code' : 'password'

function pausedError (kind: Target['kind'], milliseconds: number): IdentityError {
  const seconds = Math.max(1, Math.ceil(milliseconds / 1000))
  return new IdentityError('ErrLimit', `${toField(kind)}: too many wrong attempts, try again in ${seconds} s`, {
    headers: { 'retry-after': String(seconds) }, reason: 'paused'
  })
}

function closedError (kind: Target['kind']): IdentityError {
  const way = isOfCodes(kind) ? 'use another way' : 'reset it'
  return new IdentityError('ErrLimit', `${toField(kind)}: is closed after too many wrong attempts; ${way}, or ask an administrator to open it`, {
    reason: isOfCodes(kind) ? 'code_closed' : 'closed'
  })
}

/** @param key the key of the hashed ids, so that a copy of the database does not reveal which accounts were tried */
export function createAttempts ({ store, now, key }: { store: Store, now: Clock, key: KeyObject }): Attempts {
  const records = store.collection<AttemptsRecord>('attempts')
  const slots = new Slots({ size: Infinity, lane: AT_ONCE })

  function toId ({ kind, name, holder }: Target): string {
    return createHmac('sha256', key).update(JSON.stringify([kind, name, holder?.id ?? '', holder?.epoch ?? 0])).digest('base64url')
  }

  /** Milliseconds until the next attempt may be made; Infinity where only a new password or an administrator opens it. */
  function findWait (kind: Target['kind'], { failures, failed_at }: AttemptsRecord): number {
    if (failures >= (kind === 'browser' ? BROWSER_MOST : MOST)) return Infinity
    if (kind === 'browser') return 0
    const pause = toPause(failures)
    // Setting the clock back must not make the pause longer.
    return Math.max(0, Math.min(pause, Date.parse(failed_at) + pause - now()))
  }

  /** @throws ErrLimit unless the password may be compared now */
  function checkAllowed (kind: Target['kind'], record: AttemptsRecord): void {
    const wait = findWait(kind, record)
    if (wait === Infinity) throw closedError(kind)
    if (wait > 0) throw pausedError(kind, wait)
  }

  /** Begins a count. Resolves to null when another attempt began it. */
  async function begin (kind: Target['kind'], id: string, previous: AttemptsRecord | null): Promise<AttemptsRecord | null> {
    const time = now()
    const fields = { failures: 1, series: randomText(16), failed_at: toTimestamp(time), expired_at: toTimestamp(time + toLife(kind, 1)) }
    if (previous !== null) return await records.update(id, { set: fields, increment: { revision: 1 } }, { equal: { series: previous.series } })
    const record = { id, ...fields, revision: 0 }
    try {
      await records.insert(record)
      return record
    } catch (error) {
      if (error instanceof DuplicateKeyError) return null
      throw error
    }
  }

  async function takeBack (id: string, series: string): Promise<void> {
    const left = await records.update(id, { increment: { failures: -1, revision: 1 } }, { equal: { series } })
    if (left?.failures === 0) await records.delete(id, { equal: { series, revision: left.revision } })
  }

  /**
   * Counts one more failure, by an increment.
   * @throws ErrLimit when others that were counted since `known` was read begin a pause. Then it is not counted
   */
  async function add (kind: Target['kind'], id: string, known: AttemptsRecord): Promise<AttemptsRecord | null> {
    const { series } = known
    const time = now()
    const set = { failed_at: toTimestamp(time), expired_at: toTimestamp(time + toLife(kind, known.failures + 1)) }
    const counted = await records.update(id, { set, increment: { failures: 1, revision: 1 } }, { equal: { series } })
    if (counted === null || counted.failures === known.failures + 1) return counted
    try {
      checkAllowed(kind, { ...counted, failures: counted.failures - 1 })
    } catch (error) {
      await takeBack(id, series)
      throw error
    }
    return await records.update(id, { set: { expired_at: toTimestamp(time + toLife(kind, counted.failures)) } }, { equal: { series } })
  }

  async function count ({ kind }: Target, id: string): Promise<AttemptsRecord> {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const known = await records.get(id)
      const isOver = known === null || known.expired_at <= toTimestamp(now())
      if (!isOver) checkAllowed(kind, known)
      const counted = isOver ? await begin(kind, id, known) : await add(kind, id, known)
      if (counted !== null) return counted
    }
    throw busyError('attempts at one password')
  }

  async function attempt<T> (target: Target, id: string, compare: () => Promise<T | null>, { isLast, onClosed }: AttemptEnds<T>): Promise<T | null> {
    const { series, failures } = await count(target, id)
    let result
    try {
      result = await compare()
    } catch (error) {
      await takeBack(id, series)
      throw error
    }
    if (result === null) {
      if (failures === MOST) await onClosed?.()
    } else if (isLast?.(result) === false) await takeBack(id, series)
    else await records.delete(id)
    return result
  }

  function toStanding (kind: Target['kind'], record: AttemptsRecord | null): Standing {
    const time = now()
    if (record === null || record.expired_at <= toTimestamp(time)) return { failures: 0, isClosed: false }
    const wait = findWait(kind, record)
    const { failures, failed_at } = record
    if (wait === Infinity) return { failures, failed_at, isClosed: true }
    return { failures, failed_at, isClosed: false, ...(wait > 0 && { until: toTimestamp(time + wait) }) }
  }

  return {
    async run (target, compare, signal, ends = {}) {
      const id = toId(target)
      return await slots.run(async () => {
        if (signal?.aborted === true) throw goneError()
        return await attempt(target, id, compare, ends)
      }, { lane: id })
    },

    read: async (target) => toStanding(target.kind, await records.get(toId(target))),

    async clear (target) {
      const id = toId(target)
      const known = await records.get(id)
      return known !== null && await records.delete(id) && known.failures >= MOST
    },

    async open (target) {
      const id = toId(target)
      const known = await records.get(id)
      return toStanding(target.kind, known !== null && await records.delete(id) ? known : null)
    }
  }
}
