import { type Clock, toTimestamp } from '../clock.ts'
import { MOST_APART } from '../deadline.ts'
import { IdentityError } from '../errors.ts'
import { readFirst } from '../lists/first.ts'
import { scan } from '../store/scan.ts'
import type { Document, Json, Store } from '../store/port.ts'
import type { Timers } from '../timers.ts'
import { nameFailure } from '../work/failure.ts'
import type { WorkRecord } from '../work/record.ts'
import type { Failed, Found } from './carrier.ts'
import { EVENT_DUE, EVENT_LETTER, joinDue, listPending, readFields, toSame } from './pending.ts'
import { type InboxRecord, findCreation, toDeletionId } from './recorder.ts'

/** The collection of the dead letters. */
export const DEAD_LETTERS = 'event_letters'

/** Milliseconds from one attempt to publish a letter to the next. */
const INTERVAL = 60 * 60_000

/** Dead letters that one round tries. */
const AT_ONCE = 10

/** A document is set aside after so many failures in this time, if events of others were published since the first of them. */
const FAILURES = 5
const PERIOD = 60_000

/** The most events of one letter. Further ones stay in their document. */
const CAPACITY = 5_000

/**
 * The events of one document that could not be published, in fields as in the document. The letter of a record of the inbox has
 * the other fields of that record too.
 */
export interface DeadLetterRecord extends InboxRecord {
  /** The time of the next attempt. */
  due_at: string
  /** The last error, as a code. */
  failure: string
}

/** `none`: there is no letter. `full`: it has room for no more. */
type Moved = 'moved' | 'none' | 'full'

const count = (document: Document): number => listPending(document).length

/** The dead letters, for operators. */
export function createDeadLetterList ({ store, now }: { store: Store, now: Clock }) {
  const deadLetters = store.collection<DeadLetterRecord>(DEAD_LETTERS)

  const hurry = async (id: string) => await deadLetters.update(id, { set: { due_at: toTimestamp(now()) } })

  return {
    /** Dead letters as failed work, of which they have no other fields. */
    async * list (state: WorkRecord['state']): AsyncGenerator<WorkRecord[], void, undefined> {
      if (state !== 'failed') return
      for await (const batch of scan(deadLetters, {}, { urgent: true })) {
        yield batch.map(({ id, created_at, due_at, failure }) =>
          ({ id, created_at, due_at, failure, state, expired_at: '', ends_at: '', claim: 0, attempts: 0 }))
      }
    },

    /** How many there are. */
    countFailed: async (): Promise<number> => await deadLetters.count({ since: { due_at: '' } }, { urgent: true }),

    /**
     * Makes a letter due, or all of them. The process that publishes tries them in its next rounds.
     * @throws ErrNotFound
     */
    async retry (id?: string): Promise<void> {
      if (id === undefined) for await (const batch of scan(deadLetters, {}, { urgent: true })) for (const letter of batch) await hurry(letter.id)
      else if (await hurry(id) === null) throw new IdentityError('ErrNotFound', 'id: no such events')
    }
  }
}

/**
 * Sets aside documents whose events cannot be published. Their events move to a letter, one for each document, which is tried again
 * every hour. Until it is published the later events of the document join it, so that they keep their order.
 */
export function createDeadLetters ({ store, now, onError, timers }: {
  store: Store, now: Clock, onError: (error: unknown) => void, timers: Pick<Timers, 'now'>
}) {
  const deadLetters = store.collection<DeadLetterRecord>(DEAD_LETTERS)
  /** The times of the last failures of documents that are not set aside yet. */
  const failures = new Map<string, number[]>()
  let publishedAt = Number.NEGATIVE_INFINITY

  const toDelay = (error: unknown) => ({ due_at: toTimestamp(now() + INTERVAL), failure: nameFailure(error) })

  /** Writes the events of a document to its letter. Without an error of theirs, no letter is made. */
  async function write ({ name, document }: Found, id: string, failure: { error: unknown } | undefined): Promise<Moved> {
    const { id: own, [EVENT_DUE]: due, [EVENT_LETTER]: letter, ...inbox } = document as InboxRecord & Record<string, Json>
    const fields = name === 'event_inbox' ? inbox : readFields(document)
    const previous = await deadLetters.get(id)
    if (previous !== null) {
      if (count(previous) + count(document) > CAPACITY) return 'full'
      const set = { ...fields, [EVENT_DUE]: joinDue(previous, document) } as Record<string, Json>
      return await deadLetters.update(id, { set }) === null ? 'none' : 'moved'
    }
    if (failure === undefined) return 'none'
    await deadLetters.insert({ ...fields, id, created_at: toTimestamp(now()), [EVENT_DUE]: due, ...toDelay(failure.error) } as DeadLetterRecord)
    return 'moved'
  }

  /** Moves the events of a document to its letter: first they are in both, and may be published from either. */
  async function move (found: Found, failure?: { error: unknown }): Promise<Moved> {
    const { name, document } = found
    const collection = store.collection<Document>(name)
    const isInbox = name === 'event_inbox'
    const id = isInbox ? document.id : toDeletionId(name, document.id, findCreation(document))
    const moved = await write(found, id, failure)
    if (moved !== 'moved') return moved
    const set = { [EVENT_LETTER]: id }
    const unset = Object.keys(readFields(document))
    if (isInbox) await collection.delete(document.id, toSame(document))
    // Unless another event was added since.
    else if (await collection.update(document.id, { set, unset: [...unset, EVENT_DUE] }, toSame(document)) === null) {
      await collection.update(document.id, { set, unset })
    }
    return moved
  }

  return {
    /** Moves the events of a document that has a letter. @returns false when it has none, or no longer */
    join: async (found: Found): Promise<boolean> => EVENT_LETTER in found.document && await move(found) !== 'none',

    /** Dead letters that are to be tried now. */
    async readDue (): Promise<DeadLetterRecord[]> {
      const due: DeadLetterRecord[] = []
      if (await readFirst(deadLetters, { urgent: true }) === undefined) return due
      const time = now()
      // The second: a clock was ahead when they were put off.
      for (const filter of [{ before: { due_at: toTimestamp(time + 1) } }, { since: { due_at: toTimestamp(time + INTERVAL + MOST_APART + 1) } }]) {
        for await (const batch of deadLetters.page({ filter, sort: [{ key: 'due_at', direction: 'asc' }], limit: AT_ONCE, urgent: true })) due.push(...batch)
      }
      return due
    },

    /**
     * Counts the failures of a round, sets aside documents that have failed too often, and puts off dead letters.
     * @param hasPublished whether the events of other documents were published
     * @returns the number of documents that will not be in the next round
     */
    async note (failed: Failed, hasPublished: boolean): Promise<number> {
      const time = timers.now()
      if (hasPublished) publishedAt = time
      for (const [key, times] of failures) if (times.at(-1)! < time - PERIOD) failures.delete(key)
      let gone = 0
      for (const [found, error] of failed) {
        const { name, document: { id } } = found
        const key = `${name}/${id}`
        const times = [...(failures.get(key) ?? []).filter((one) => one > time - PERIOD), time].slice(-FAILURES)
        if (name === DEAD_LETTERS || times.length === 1) onError(error)
        if (name === DEAD_LETTERS) {
          await deadLetters.update(id, { set: toDelay(error) })
          gone++
        } else if (times.length === FAILURES && publishedAt >= times[0]! && await move(found, { error }) === 'moved') {
          failures.delete(key)
          onError(new Error(`${key}: its events cannot be published, and were set aside`, { cause: error }))
          gone++
        } else failures.set(key, times)
      }
      return gone
    }
  }
}

export type DeadLetters = ReturnType<typeof createDeadLetters>
