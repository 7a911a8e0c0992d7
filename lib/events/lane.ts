import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { groupAddress } from '../throttling/networks.ts'
import { Budget } from './budget.ts'
import type { Origin } from './origin.ts'
import type { EventType, Happening } from './types.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** Milliseconds between summaries once half of the bytes are spent. Each time, one more event sums up all series that have none. */
const LONG = 10 * MINUTE

/** The most accounts and other entries that are counted at once. */
const CAPACITY = 10_000

/** The most network addresses of a series that are counted. */
const ADDRESSES = 20

/** What a summary leaves out where it is not that of all events that it stands for. */
const SHARED = ['client_id', 'method', 'via'] as const

/** A short number for an address, so that what floods bring takes little memory. */
const toMark = (address: string): number => hash('sha256', groupAddress(address), 'buffer').readUIntBE(0, 6)

/** The accounts that a summary of all series names. */
const NAMED = 100

export type Caller = ReturnType<NonNullable<Origin['readCaller']>>

/** Whom an event counts for. All series of an account are one entry. */
export interface Subject {
  /** The account or client, or the one name of all that strangers can make up. */
  name: string
  /** Absent: it is about no account. */
  user_id?: string | undefined
  /** The network of a stranger, or the account or client of a known caller. */
  share: string
  /** The network address that it comes from. */
  address?: string | undefined
  /** Events of the series that each become an event within an hour. Absent: as many as of any other. */
  singles?: number | undefined
}

/** The events of one type and reason about one subject. */
interface Count {
  singles: number
  /** Counted events that are not recorded yet, and the event that will sum them up. */
  more: number
  summary: Happening
  origin: Origin | undefined
  /** The addresses of the counted events, up to one more than the summary tells. */
  marks: number[]
  /** The last address. */
  address?: string | undefined
}

interface Entry {
  since: number
  user_id: string | undefined
  /** Events within the hour. */
  hits: number
  series: Count[]
}

interface LaneParts {
  /** Events of a series that each become an event within an hour. */
  singles: number
  /** Bytes of single events an hour, and of summaries in ten minutes once half of the former is spent. */
  bytes: { hour: number, summaries: number }
  measure: (happening: Happening, origin?: Origin) => number
  write: (happening: Happening, origin: Origin | undefined) => void
  /** The outcome of what is counted here. */
  outcome: NonNullable<Happening['outcome']>
}

/** Counts the events of one kind of caller: of strangers, or of those who are known. */
export class Lane {
  readonly #parts: LaneParts
  readonly #budget: Budget
  readonly #entries = new Map<string, Entry>()
  /** Events of evicted entries for whose summaries there was no room, by type. */
  readonly #rest = new Map<EventType, number>()
  /** When the next long summaries are due, and the bytes that are left until then. */
  #due = Number.NEGATIVE_INFINITY
  #left = 0

  constructor (parts: LaneParts) {
    this.#parts = parts
    this.#budget = new Budget(parts.bytes.hour)
  }

  /** Whether nothing is counted. */
  get isEmpty (): boolean {
    return this.#entries.size === 0 && this.#rest.size === 0
  }

  /** Whether an event is to be recorded on its own. Otherwise it was counted. @param readOrigin the origin of its summary */
  admit (time: number, subject: Subject, happening: Happening, summary: Happening, readOrigin: () => Origin | undefined): boolean {
    const { name, user_id, share, singles = this.#parts.singles } = subject
    this.#begin(time)
    const entry = this.#enter(time, name, user_id)
    entry.hits++
    let count = entry.series.find((one) => one.summary.type === summary.type && one.summary.reason === summary.reason)
    if (count === undefined) entry.series.push(count = { singles: 0, more: 0, summary, origin: readOrigin(), marks: [] })
    if (count.singles < singles && this.#budget.share(share, this.#parts.measure(happening))) {
      count.singles++
      return true
    }
    if (count.more === 0) Object.assign(count, { summary, origin: readOrigin() })
    this.#add(count, subject, summary)
    return false
  }

  #add (count: Count, { address }: Subject, summary: Happening): void {
    for (const field of SHARED) if (!isDeepStrictEqual(count.summary[field], summary[field])) count.summary = { ...count.summary, [field]: undefined }
    count.more++
    if (address === undefined) return
    count.address = address
    const mark = toMark(address)
    if (count.marks.length <= ADDRESSES && !count.marks.includes(mark)) count.marks.push(mark)
  }

  /** Records what was counted, as far as it is due. @param isLast it is due now */
  sumUp (time: number, isLast = false): void {
    this.#begin(time)
    const waiting = this.#listWaiting()
    while (waiting.length > 0 && this.#writeShort(waiting.at(-1)!)) waiting.pop()
    if (isLast || time >= this.#due) {
      while (waiting.length > 0 && this.#writeLong(waiting.at(-1)!)) waiting.pop()
      this.#writeRest(waiting)
      this.#due = time + LONG
      this.#left = this.#parts.bytes.summaries
    }
    for (const [name, { since, series }] of this.#entries) {
      if (time - since > HOUR && series.every(({ more }) => more === 0)) this.#entries.delete(name)
    }
  }

  #begin (time: number): void {
    this.#budget.begin(time)
    if (this.#due !== Number.NEGATIVE_INFINITY) return
    this.#due = time + LONG
    this.#left = this.#parts.bytes.summaries
  }

  /** The entry of a name. A new one takes the place of the one with the fewest events. */
  #enter (time: number, name: string, user_id: string | undefined): Entry {
    let entry = this.#entries.get(name)
    if (entry !== undefined && time - entry.since > HOUR) {
      entry.since = time
      entry.hits = 0
      for (const count of entry.series) count.singles = 0
    }
    if (entry === undefined) {
      if (this.#entries.size >= CAPACITY) this.#evict()
      this.#entries.set(name, entry = { since: time, user_id, hits: 0, series: [] })
    }
    return entry
  }

  #evict (): void {
    let least: [string, Entry] | undefined
    for (const entry of this.#entries) {
      if (least === undefined || entry[1].hits < least[1].hits) least = entry
      if (least[1].hits <= 1) break
    }
    const [name, { series }] = least!
    for (const count of series) {
      if (count.more > 0 && !this.#writeShort(count) && !this.#writeLong(count)) this.#addRest(count)
    }
    this.#entries.delete(name)
  }

  /** The series with counted events, those with most last. */
  #listWaiting (): Count[] {
    return [...this.#entries.values()].flatMap(({ series }) => series).filter(({ more }) => more > 0).sort((a, b) => a.more - b.more)
  }

  #writeShort (count: Count): boolean {
    return this.#budget.take(this.#measure(count)) && this.#write(count)
  }

  #writeLong (count: Count): boolean {
    const bytes = this.#measure(count)
    if (bytes > this.#left) return false
    this.#left -= bytes
    return this.#write(count)
  }

  #measure (count: Count): number {
    const [summary, origin] = this.#sum(count)
    return this.#parts.measure(summary, origin)
  }

  /** The summary of a series, and whom it is recorded for: with the last address. */
  #sum ({ summary, more, origin, marks, address }: Count): [Happening, Origin | undefined] {
    const addresses = marks.length > ADDRESSES ? 'more' as const : marks.length
    return [{ ...summary, count: more, ...(addresses !== 0 && { addresses }) }, origin && { ...origin, address }]
  }

  #write (count: Count): true {
    this.#parts.write(...this.#sum(count))
    this.#clear(count)
    return true
  }

  #clear (count: Count): void {
    count.more = 0
    count.marks = []
    count.address = undefined
  }

  #addRest (count: Count): void {
    this.#rest.set(count.summary.type, (this.#rest.get(count.summary.type) ?? 0) + count.more)
    this.#clear(count)
  }

  /** Records one event for all series that have none, with the accounts that were hit most. */
  #writeRest (waiting: readonly Count[]): void {
    const accounts = [...this.#entries.values()].flatMap(({ user_id, series }) => {
      const count = series.reduce((sum, { more }) => sum + more, 0)
      return user_id === undefined || count === 0 ? [] : [{ user_id, count }]
    }).sort((a, b) => b.count - a.count).slice(0, NAMED)
    for (const count of waiting) this.#addRest(count)
    if (this.#rest.size === 0) return
    const counts = Object.fromEntries(this.#rest)
    const count = Object.values(counts).reduce((sum, of) => sum + of, 0)
    this.#rest.clear()
    this.#parts.write({ type: 'events.counted', id: '', user_id: null, outcome: this.#parts.outcome, count, counts, accounts }, undefined)
  }
}
