import { Readable } from 'node:stream'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import type { Page } from './cursor.ts'
import { createJoiner } from './renderer.ts'

/** How a list is written: `{"data":[...]}`, `[...]`, or a record a line. */
export type ListFormat = 'object' | 'array' | 'ndjson'

export const LIST_TYPES: Record<ListFormat, string> = {
  object: 'application/json; charset=utf-8',
  array: 'application/json; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8'
}

const FRAMES: Record<ListFormat, { open: string, between: string, close: string }> = {
  object: { open: '{"data":[', between: ',', close: ']}' },
  array: { open: '[', between: ',', close: ']' },
  ndjson: { open: '', between: '\n', close: '\n' }
}

export interface ListOptions {
  format: ListFormat
  /** Milliseconds a reader may leave what was sent unread before the list is broken off; see also `patience`. */
  stallTimeout: number
}

/** Bytes a second that a reader takes at the least, on the whole. */
const PACE = 1024

/**
 * Milliseconds a reader has for what it was sent last: the stall time-out, and less when it has been waited for longer
 * than that in all, and takes less than PACE. One that sips just before each time-out would hold a cursor for ever.
 * @param sent bytes in all
 * @param waited milliseconds that the reader, not the store, was waited for
 */
export function patience (sent: number, waited: number, stallTimeout: number): number {
  return Math.min(stallTimeout, Math.max(stallTimeout, sent / PACE * 1000) - waited)
}

/** The reader took nothing, or too little, for too long: the cursor it held is wanted elsewhere. */
class StalledError extends Error {
  override readonly name = 'StalledError'

  constructor () {
    super('the reader of a list stalled')
  }
}

/**
 * Writes pieces as they are asked for: some of them in memory, whatever the length of the list. When they fail, the stream
 * is destroyed before its closing bracket, so that nobody takes a part for the whole.
 */
class ListStream extends Readable {
  readonly #pieces: AsyncIterator<string>
  readonly #options: ListOptions
  #stall: NodeJS.Timeout | undefined
  #sent = 0
  #waited = 0
  /** By performance.now(). */
  #pushed = Number.NaN

  constructor (pieces: AsyncIterator<string>, options: ListOptions) {
    // A mark of one byte: the next piece is asked for when the last one was taken, not before.
    super({ highWaterMark: 1 })
    this.#pieces = pieces
    this.#options = options
  }

  override _read (): void {
    clearTimeout(this.#stall)
    if (this.#sent > 0) this.#waited += performance.now() - this.#pushed
    // A reader that is quick and a piece that is ready would follow each other without end: others get their turn first.
    yieldTurn().then(() => this.#pieces.next()).then((result) => {
      if (this.destroyed) return
      const { open, close } = FRAMES[this.#options.format]
      if (result.done === true) {
        this.push(close)
        this.push(null)
        return
      }
      const chunk = Buffer.from(this.#sent === 0 ? open + result.value : result.value)
      this.#sent += chunk.length
      this.#pushed = performance.now()
      const left = patience(this.#sent, this.#waited, this.#options.stallTimeout)
      this.push(chunk)
      this.#stall = setTimeout(() => this.destroy(new StalledError()), left).unref()
    }, (error) => this.destroy(error))
  }

  override _destroy (error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#stall)
    // Frees the cursor. The reason for the end is the error that is passed on, not one of the clean-up's.
    Promise.resolve(this.#pieces.return?.()).then(() => done(error), () => done(error))
  }
}

async function * writeBatches<T> (batches: AsyncIterable<T[]>, between: string): AsyncGenerator<string, void, undefined> {
  const join = createJoiner(between)
  for await (const batch of batches) yield join(batch, (record) => JSON.stringify(record))
}

/** A list to be written: batches of records, none of them empty, or its text where that is made elsewhere. */
export type ListSource<T> = Pick<Page<T>, 'batches' | 'render'>

/** Writes a list: whole when it is a single batch, as a stream when it is longer. */
export async function renderList<T> ({ batches, render }: ListSource<T>, options: ListOptions): Promise<string | Readable> {
  const { open, between, close } = FRAMES[options.format]
  const pieces: AsyncIterable<string> = render === undefined ? writeBatches(batches, between) : render(between)
  const iterator = pieces[Symbol.asyncIterator]()
  const first = await iterator.next()
  if (first.done === true) return options.format === 'ndjson' ? '' : open + close
  const second = await iterator.next()
  if (second.done === true) return open + first.value + close

  const ready = [first, second]
  return new ListStream({
    next: () => {
      const head = ready.shift()
      return head === undefined ? iterator.next() : Promise.resolve(head)
    },
    return: async () => await iterator.return?.() ?? { done: true, value: undefined }
  }, options)
}
