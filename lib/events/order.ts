import { decodeTime } from 'ulid'
import type { Made, Pending } from './pending.ts'

/** Milliseconds by which the clock of another machine may be ahead before its events are published without waiting for ours. */
const MOST_AHEAD = 1_000

/** A document's pending events, in the order that they must keep. */
interface Chain {
  pending: readonly Pending[]
}

/** What a round of the relay has certainly read. */
export interface Horizon {
  /** When it began to read, by the clock that is set and by the one of its machine. */
  time: number
  made: Made
  /** Events with later ULIDs may be missing. Absent: it read all documents. */
  cut?: string | undefined
}

interface Entry<T> {
  chain: T
  pending: Pending
  /** Milliseconds since 1970. */
  time: number
  machine: string
  ticks: number
}

type Position = Pick<Entry<unknown>, 'time' | 'machine' | 'ticks'>

function compare (one: Position, other: Position): number {
  if (one.time !== other.time) return one.time - other.time
  if (one.machine !== other.machine) return one.machine < other.machine ? -1 : 1
  return one.ticks - other.ticks
}

/** A machine's clock may have been set back between two of its events. The later one then gets the time of the earlier one. */
function correctTimes (entries: readonly Position[]): void {
  let latest = Number.NEGATIVE_INFINITY
  for (const entry of entries.toSorted((one, other) => one.ticks - other.ticks)) entry.time = latest = Math.max(latest, entry.time)
}

function toEntries<T extends Chain> (chains: readonly T[]): Entry<T>[] {
  const entries = chains.flatMap((chain) => chain.pending.map((pending) => (
    { chain, pending, time: decodeTime(pending.key), machine: pending.made?.machine ?? '', ticks: pending.made?.ticks ?? 0 }
  )))
  for (const [machine, own] of Map.groupBy(entries, ({ machine }) => machine)) if (machine !== '') correctTimes(own)
  let previous: Entry<T> | undefined
  for (const entry of entries) {
    if (previous?.chain === entry.chain && compare(entry, previous) < 0) {
      const { time, machine, ticks } = previous
      Object.assign(entry, { time, machine, ticks })
    }
    previous = entry
  }
  return entries
}

/**
 * Whether every event that comes before this one was read: any change that was acknowledged before this one began. On this machine
 * that is certain of events that were made before the round began to read. For other machines it depends on their clocks.
 */
function isSafe ({ key, made }: Pending, horizon: Horizon): boolean {
  if (horizon.cut !== undefined && key > horizon.cut) return false
  if (made?.machine === horizon.made.machine) return made.ticks <= horizon.made.ticks
  const time = decodeTime(key)
  return time < horizon.time || time >= horizon.time + MOST_AHEAD
}

/**
 * Puts events in the order of their making, cause before effect, and keeps the order of each document. An event that two documents
 * carry is listed once. The list ends before the first event that may depend on an unread one; the next round reads that one.
 */
export function orderEvents<T extends Chain> (
  chains: readonly T[], horizon: Horizon
): { queued: { chain: T, pending: Pending }[], isAll: boolean } {
  const seen = new Set<string>()
  const entries = toEntries(chains).sort(compare).filter(({ pending: { key } }) => !seen.has(key) && seen.add(key))
  const end = entries.findIndex(({ pending }) => !isSafe(pending, horizon))
  return end < 0 ? { queued: entries, isAll: true } : { queued: entries.slice(0, end), isAll: false }
}
