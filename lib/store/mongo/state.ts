import type { Collection as Native, Db } from 'mongodb'
import { TIMERS, type Timers } from '../../timers.ts'
import { type FoundState, type Opener, type StateRecord, type StoreState, changeState, checkState } from '../state.ts'
import type { BoundedCalls } from './bounded-calls.ts'
import type { Stored } from './documents.ts'
import type { Handle } from './handles.ts'

/** The collection of the state, which is one document. */
export const STATE_COLLECTION = 'store.layout'

const ID = 'state'

/** Milliseconds for which a cached state admits writes. */
const FRESH = 1_000

/**
 * Milliseconds after which no write that relied on an older state is acknowledged.
 * @param timeout of a call
 */
export const toDelay = (timeout: number): number => FRESH + 2 * timeout

async function find (collection: Native<Stored>): Promise<FoundState> {
  const stored = await collection.findOne({ _id: ID })
  // A database of a release without numbers, or a new one.
  if (stored === null) return { state: { version: 1, oldestReader: 1 }, revision: 0 }
  return { state: JSON.parse(stored.doc as string) as StoreState, revision: stored.revision as number }
}

/**
 * Reads the state.
 * @throws Error when the opener may not use this database: see checkState
 */
export async function checkDatabase (db: Db, opener: Opener): Promise<StoreState> {
  const { state } = await find(db.collection<Stored>(STATE_COLLECTION))
  checkState(state, opener)
  return state
}

/** Gives a new database the numbers of this release, so that it needs no migration. */
export async function createState (db: Db, { layout: { version, oldestReader } }: Opener): Promise<void> {
  const doc = JSON.stringify({ version, oldestReader })
  // Another process may create it at the same time, or may have changed it already.
  await db.collection<Stored>(STATE_COLLECTION).updateOne({ _id: ID }, { $setOnInsert: { doc, revision: 1 } }, { upsert: true })
}

export interface MongoStateOptions {
  calls: BoundedCalls
  /** The collection of the current client. */
  handle: () => Handle
  opener: Opener
  timers?: Timers
}

/**
 * The state in MongoDB, where no transaction can read it together with a write. A write starts within FRESH of the start of the last
 * read of the state. Otherwise it first waits for another read, for one call timeout at most. Its caller is answered within one call
 * timeout. After `delay`, the sum of these times, no write that relied on an older state is acknowledged.
 */
export class MongoState implements StateRecord {
  readonly delay: number
  readonly #options: MongoStateOptions
  readonly #timers: Timers
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | null = null

  constructor (options: MongoStateOptions) {
    this.#options = options
    this.#timers = options.timers ?? TIMERS
    this.delay = toDelay(options.calls.timeout)
  }

  async read (): Promise<FoundState> {
    return await this.#options.calls.run(() => find(this.#options.handle().reads))
  }

  async change ({ state, revision }: FoundState, change: Partial<StoreState>): Promise<FoundState | null> {
    const next = changeState(state, change)
    const stored = { doc: next.doc, revision: revision + 1 }
    const { writes } = this.#options.handle()
    const written = await this.#options.calls.run(async () => {
      if (revision > 0) return (await writes.updateOne({ _id: ID, revision }, { $set: stored })).matchedCount === 1
      return await writes.insertOne({ _id: ID, ...stored }).then(() => true, (error: { code?: unknown }) => {
        if (error.code === 11000) return false
        throw error
      })
    })
    return written ? { state: next.state, revision: revision + 1 } : null
  }

  /** To be called before each write, within its call. Rejects when this process may not write. */
  async admit (): Promise<void> {
    if (this.#options.opener.moving || this.#timers.now() - this.#readAt < FRESH) return
    this.#reading ??= this.#check().finally(() => { this.#reading = null })
    await this.#reading
  }

  async #check (): Promise<void> {
    const begin = this.#timers.now()
    const { state } = await this.#options.calls.within(() => find(this.#options.handle().reads))
    checkState(state, this.#options.opener)
    this.#readAt = begin
  }
}
