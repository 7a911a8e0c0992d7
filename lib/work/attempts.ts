import { type Clock, toTimestamp } from '../clock.ts'
import { isAhead } from '../deadline.ts'
import type { Collection, Filter } from '../store/port.ts'
import type { Timers } from '../timers.ts'
import { CutOffError, RefusedError, nameFailure } from './failure.ts'
import type { WorkKind } from './kind.ts'
import { LEASE, claim, keepLease } from './lease.ts'
import type { Pace } from './pace.ts'
import { type WorkRecord, toDue } from './record.ts'
import type { createRoom } from './room.ts'

/** Receivers that timed out, of which this process keeps a note by default. */
const HELD = 10_000

const readDelay = (error: unknown): number | undefined => error instanceof RefusedError ? error.retryAfter : undefined

interface AttemptParts<T extends WorkRecord> {
  kind: WorkKind<T>
  records: Collection<T>
  room: ReturnType<typeof createRoom<T>>
  pace: Pace
  now: Clock
  onError: (error: unknown) => void
  onFailed: (record: T, failure: string) => void
  timers: Timers
  random: () => number
}

/** Makes the attempts at work of one kind. */
export function createAttempts<T extends WorkRecord> ({ kind, records, room, pace, now, onError, onFailed, timers, random }: AttemptParts<T>) {
  const { retries, jitter = 0, lease = LEASE, held: mostHeld = HELD } = kind
  /** Receivers that timed out, and the time from then to the next attempt. */
  const held = new Map<string, { since: number, until: number }>()
  const stopping = new AbortController()
  const ofClaim = (claim: number): Filter => ({ equal: { claim } })
  const toLease = () => toDue(now() + lease, now())

  /** The time (ms) of the attempt after as many failed ones. Undefined after the last. */
  function findNext (attempts: number, asked = 0): number | undefined {
    const delay = retries[attempts - 1]
    return delay === undefined ? undefined : now() + Math.max(Math.round(delay * (1 + jitter * random())), asked)
  }

  async function fail (record: T, failure: string): Promise<void> {
    const { id, claim } = record
    await kind.beforeFailed?.(record, failure)
    const ended = await room.takeFailed()
      ? await records.update(id, {
        set: { state: 'failed', failure, expired_at: kind.kept === undefined ? record.expired_at : toTimestamp(now() + kind.kept) },
        unset: ['leased']
      }, ofClaim(claim)) !== null
      : await records.delete(id, ofClaim(claim))
    if (ended) onFailed(record, failure)
  }

  async function postpone (record: T, failure: string, asked = 0): Promise<void> {
    const { id, claim, attempts, ends_at } = record
    const time = findNext(attempts, asked)
    if (/TIME(D)?OUT/.test(failure)) hold(record, time ?? now() + asked)
    if (time === undefined || toTimestamp(time) > ends_at) await fail(record, failure)
    else await records.update(id, { set: toDue(time, now()), unset: ['leased'] }, ofClaim(claim))
  }

  /** Until when the receiver of a record gets no attempts, because it timed out. */
  function findHold (record: T): number | undefined {
    const found = held.get(kind.nameReceiver?.(record) ?? '')
    if (found === undefined) return undefined
    const { since, until } = found
    return isAhead({ at: toTimestamp(until), from: toTimestamp(since), longest: until - since }, now()) ? until : undefined
  }

  /** Puts off all attempts to a receiver that timed out until the next one of this record. */
  function hold (record: T, until: number): void {
    const receiver = kind.nameReceiver?.(record)
    if (receiver === undefined) return
    if (held.size >= mostHeld) held.clear()
    held.set(receiver, { since: now(), until })
  }

  /** @returns the error of the attempt; undefined when it succeeded */
  async function attempt (record: T): Promise<{ error: unknown } | undefined> {
    const { id, claim } = record
    const release = keepLease(async () => await records.update(id, { set: toLease() }, ofClaim(claim)), {
      timers, interval: lease / 3, onError
    })
    try {
      await kind.perform(record, stopping.signal)
      return undefined
    } catch (error) {
      return { error }
    } finally {
      await release()
      pace.note()
    }
  }

  /** Claims a record, makes an attempt, and stores its outcome. */
  async function deliver (read: T): Promise<void> {
    if (kind.isHeld?.(read) === true) return
    const until = findHold(read)
    if (until !== undefined) {
      await records.update(read.id, { set: toDue(until, now()), unset: ['leased'] }, { equal: { claim: read.claim, state: 'due' } })
      return
    }
    const record = await claim(records, read, { set: { ...toLease(), leased: true }, increment: { attempts: 1 } }, { state: 'due' })
    pace.note()
    // Another process has claimed it.
    if (record === null) return
    const { id } = record
    if (record.ends_at <= toTimestamp(now())) return await fail(record, 'EXPIRED')
    if (record.attempts > retries.length + 1) return await fail(record, 'INTERRUPTED')
    const failed = await attempt(record)
    if (failed === undefined) {
      const done = kind.toDone?.(record, now()) ?? null
      if (done === null) await records.delete(id, ofClaim(record.claim))
      else await records.update(id, { set: { ...done.set, state: 'done' }, unset: [...done.unset ?? [], 'leased'] }, ofClaim(record.claim))
      return
    }
    const { error } = failed
    if (stopping.signal.aborted || error instanceof CutOffError) {
      // It does not count. It is repeated, possibly by another process.
      const set = toDue(now() + (kind.afterAbort ?? 0), now())
      await records.update(id, { set, unset: ['leased'], increment: { attempts: -1 } }, ofClaim(record.claim))
      return
    }
    const failure = nameFailure(error)
    if (kind.isFinal(error)) await fail(record, failure)
    else await postpone(record, failure, readDelay(error))
  }

  /**
   * Makes the first attempt at work that is stored only after a failure, which is never final.
   * @returns whether it had an outcome
   */
  async function deliverFirst (record: T): Promise<boolean> {
    if (kind.isHeld?.(record) === true) return false
    try {
      await kind.perform(record, stopping.signal)
    } catch (error) {
      if (stopping.signal.aborted || error instanceof CutOffError) return false
      await records.put({ ...record, ...toDue(findNext(1, readDelay(error))!, now()) })
    } finally {
      pace.note()
    }
    return true
  }

  return {
    deliver,
    deliverFirst,
    /** Aborts the attempts in flight. They do not count. */
    stop: () => stopping.abort()
  }
}
