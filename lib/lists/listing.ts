import { Readable } from 'node:stream'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import { TIMERS, type Timers } from '../timers.ts'
import type { Page } from './cursor.ts'
import { CSV_TYPE, JSON_TYPE, NDJSON_TYPE } from './negotiation.ts'

/** The format of a list: `{"data":[...]}`, `[...]`, a record per line, or the unchanged pieces, for CSV and for a whole document. */
type ListFormat = 'object' | 'array' | 'ndjson' | 'csv' | 'document'

export const LIST_TYPES: Record<ListFormat, string> = { object: JSON_TYPE, array: JSON_TYPE, ndjson: NDJSON_TYPE, csv: CSV_TYPE, document: JSON_TYPE }

const FRAMES: Record<ListFormat, { open: string, separator: string, close: string }> = {
  object: { open: '{"data":[', separator: ',', close: ']}' },
  array: { open: '[', separator: ',', close: ']' },
  ndjson: { open: '', separator: '\n', close: '\n' },
  csv: { open: '', separator: '', close: '' },
  document: { open: '', separator: '', close: '' }
}

export interface ListOptions {
  format: ListFormat
  /** Milliseconds a reader may leave sent bytes unread before the list is aborted; see also remainingStallTime. */
  stallTimeout: number
  timers?: Timers
}

/** The lowest average rate of a reader, in bytes per second. */
const MIN_RATE = 1024

/**
 * Milliseconds until a reader that reads nothing more is disconnected. This is `stallTimeout`, or less for a reader that has caused
 * more waiting than that in total and is slower than MIN_RATE. Without the rate, a reader could keep a cursor open for ever by
 * reading a little just before each timeout.
 * @param sent total number of bytes
 * @param waited total milliseconds spent waiting for the reader, not for the store
 */
export function remainingStallTime (sent: number, waited: number, stallTimeout: number): number {
  return Math.min(stallTimeout, Math.max(stallTimeout, sent / MIN_RATE * 1000) - waited)
}

class StalledError extends Error {
  override readonly name = 'StalledError'

  constructor () {
    super('the reader of a list stalled')
  }
}

/**
 * Streams pieces as they are read. Only a few of them are in memory, whatever the length of the list. After a failure the stream is
 * destroyed before the closing bracket, so that a reader cannot mistake a part for the whole list.
 */
class ListStream extends Readable {
  readonly #pieces: AsyncIterator<string>
  readonly #options: ListOptions
  readonly #timers: Timers
  #stallTimer: NodeJS.Timeout | undefined
  #sent = 0
  #waited = 0
  #pushedAt = 0

  constructor (pieces: AsyncIterator<string>, options: ListOptions) {
    // With a high-water mark of one byte, the next piece is read only after the last one was consumed.
    super({ highWaterMark: 1 })
    this.#pieces = pieces
    this.#options = options
    this.#timers = options.timers ?? TIMERS
  }

  override _read (): void {
    this.#timers.clear(this.#stallTimer)
    if (this.#sent > 0) this.#waited += this.#timers.now() - this.#pushedAt
    // Otherwise a fast reader and ready pieces would starve the event loop.
    yieldTurn().then(() => this.#pieces.next()).then((result) => this.#write(result), (error) => this.destroy(error))
  }

  #write ({ done, value }: IteratorResult<string, unknown>): void {
    if (this.destroyed) return
    const { open, close } = FRAMES[this.#options.format]
    if (done === true) {
      this.push(close)
      this.push(null)
      return
    }
    const chunk = Buffer.from(this.#sent === 0 ? open + value : value)
    this.#sent += chunk.length
    this.#pushedAt = this.#timers.now()
    const left = remainingStallTime(this.#sent, this.#waited, this.#options.stallTimeout)
    this.push(chunk)
    this.#stallTimer = this.#timers.set(() => this.destroy(new StalledError()), left).unref()
  }

  override _destroy (error: Error | null, done: (error: Error | null) => void): void {
    this.#timers.clear(this.#stallTimer)
    // Frees the cursor. If that fails too, the first error is reported.
    Promise.resolve(this.#pieces.return?.()).then(() => done(error), () => done(error))
  }
}

async function * writeBatches<T> (batches: AsyncIterable<T[]>, separator: string): AsyncGenerator<string, void, undefined> {
  let before = ''
  for await (const batch of batches) {
    // A list that leaves records out may have some: a separator alone would be no JSON.
    if (batch.length === 0) continue
    yield before + batch.map((record) => JSON.stringify(record)).join(separator)
    before = separator
  }
}

/** Batches of records, or the list as text if another thread renders it. */
export type ListSource<T> = Pick<Page<T>, 'batches' | 'render'>

/** Renders a list: as text if it is a single batch, otherwise as a stream. */
export async function renderList<T> ({ batches, render }: ListSource<T>, options: ListOptions): Promise<string | Readable> {
  const { separator } = FRAMES[options.format]
  return await renderPieces(render === undefined ? writeBatches(batches, separator) : render(separator), options)
}

/** The first results of an iterator, and then the others. */
function putBack<T> (iterator: AsyncIterator<T>, ready: IteratorResult<T>[]): AsyncIterator<T> {
  return {
    next: () => {
      const head = ready.shift()
      return head === undefined ? iterator.next() : Promise.resolve(head)
    },
    return: async () => await iterator.return?.() ?? { done: true, value: undefined }
  }
}

/** Streams pieces of text, once the first one is there: until then a failure can still be answered with its status. */
export async function streamPieces (pieces: AsyncIterable<string>, options: ListOptions): Promise<Readable> {
  const iterator = pieces[Symbol.asyncIterator]()
  return new ListStream(putBack(iterator, [await iterator.next()]), options)
}

/** Renders pieces of text: as text if it is a single one, otherwise as a stream. */
export async function renderPieces (pieces: AsyncIterable<string>, options: ListOptions): Promise<string | Readable> {
  const { open, close } = FRAMES[options.format]
  const iterator = pieces[Symbol.asyncIterator]()
  const first = await iterator.next()
  if (first.done === true) return options.format === 'ndjson' ? '' : open + close
  const second = await iterator.next()
  if (second.done === true) return open + first.value + close

  return new ListStream(putBack(iterator, [first, second]), options)
}
