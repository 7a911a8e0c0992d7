import { IdentityError } from './errors.ts'
import type { Recorder } from './events/recorder.ts'
import { type Happening, type Recorded, toRecorded } from './events/types.ts'
import { retryWrite } from './retry.ts'
import type { Change, Collection, Document, MaybePromise } from './store/port.ts'

/** A change of a record, with the events that are recorded with it, and the mails about it. */
export type Decision<T extends Document = Document> = Change<T> & Recorded

/** The events and mails of a decision, and further events. */
export const withMore = ({ happened = [], notices }: Recorded, more: readonly Happening[]): Recorded => toRecorded([...happened, ...more], notices)

interface Changed<T extends Document> {
  collection: Collection<T>
  recorder: Pick<Recorder, 'attach'>
  /** The record, for the message of ErrBusy. */
  what: string
  /** The error where there is no such record. */
  notFound: () => Error
  /** The record, where it was just read: the first attempt decides on it. */
  known?: T | undefined
}

/**
 * The one way to change a record by a rule: reads it, calls `decide`, and writes the change with its events, on the condition that
 * nobody has changed the record since. After a concurrent write it starts again. An error from `decide` ends it.
 * @param decide checks the rule on the record that the write replaces. It may be called several times. Null: nothing is written
 * @returns the record that was written, or read if nothing was written
 * @throws ErrBusy
 */
export async function changeRecord<T extends Document & { revision?: number }> (
  { collection, recorder, what, notFound, known }: Changed<T>, id: string, decide: (record: T) => MaybePromise<Decision<T> | null>
): Promise<T> {
  let read = known
  return await retryWrite(what, async () => {
    const record = read ?? await collection.get(id)
    read = undefined
    if (record === null) throw notFound()
    const decision = await decide(record) as Decision | null
    if (decision === null) return record
    const { revision } = record
    if (revision === undefined) {
      // A record of an early release gets a revision first, because the write needs one as its condition.
      await collection.update(id, { increment: { revision: 1 } })
      return null
    }
    const { happened: _happened, notices: _notices, set, increment, ...rest } = decision
    const change: Change = { ...rest, set: { ...set, ...recorder.attach(record, decision) }, increment: { ...increment, revision: 1 } }
    return await collection.update(id, change, { equal: { revision } })
  })
}

/** Waits for a change of a record that was found in a list. Null if the record was deleted meanwhile. */
export async function unlessGone<T> (change: Promise<T>): Promise<T | null> {
  try {
    return await change
  } catch (error) {
    if (error instanceof IdentityError && error.code === 'ErrNotFound') return null
    throw error
  }
}
