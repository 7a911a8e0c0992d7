import { parentPort, workerData } from 'node:worker_threads'
import { IdentityError } from '../../errors.ts'
import { BATCH_SIZE, type Document, type Renderer, type Rendering } from '../port.ts'
import { Connection } from './connection.ts'
import { toFailure } from './failure.ts'
import type { Answer, Opening, Question, ReaderData } from './reader.ts'
import type { Statement } from './sql.ts'
import type { Call, Reply } from './thread-calls.ts'
import { END } from './thread.ts'

// A thread of reads: pages, counts and lists. Each open list has a connection of its own: its cursor holds a snapshot of the
// file, and anything else read on that connection would be as old as the list.

/** Approximate characters of a batch or a page: reading a message must not block the event loop. */
const BATCH_LENGTH = 500_000
/**
 * Approximate characters of a piece: some hundred documents, because each piece costs a message and a write. A string of this
 * size dies in the young generation; buffers would pile up until a major collection.
 */
const PIECE_LENGTH = 48 * 1024
/** KiB of cached pages per connection. Many lists may be open, and a list reads a page once. */
const CACHE = 256
/**
 * Connections kept open for the next list. Closing a connection would not free its descriptor. Closing a descriptor drops the
 * POSIX locks of the whole process, so SQLite keeps it for the next connection while the process holds any lock on the file. With a
 * write-ahead log it always holds one. The limits on cursors (lib/lists) bound the descriptors.
 */
const SPARE = 4

interface Cursor {
  connection: Connection
  rows: Iterator<[doc: string]>
  /** The row after the last batch; undefined at the end of the list. */
  next: string | undefined
  /** For a list of pieces: the text of a batch, with the separator before it unless it is the first. */
  render: ((docs: string[]) => string) | undefined
}

type RendererFactories = Record<string, (options: object) => Renderer>

const { file, busy, renderers } = workerData as ReaderData
const factories = renderers === undefined ? {} : await loadRenderers(renderers)
const spare: Connection[] = []
const cursors = new Map<number, Cursor>()

async function loadRenderers ({ module, data }: NonNullable<ReaderData['renderers']>): Promise<RendererFactories> {
  const { createRenderers } = await import(module) as { createRenderers: (data: unknown) => RendererFactories }
  return createRenderers(data)
}

/** This file runs in a thread only. */
const port = parentPort!

port.on('message', (message: Call<Question> | typeof END) => {
  if (message === END) {
    for (const list of cursors.keys()) close(list)
    for (const connection of spare) connection.close()
    port.close()
  } else if (message.kind === 'close') {
    close(message.list)
  } else {
    port.postMessage(reply(message))
  }
})

function reply (question: Call<Exclude<Question, { kind: 'close' }>>): Reply<Answer> {
  const { id } = question
  try {
    switch (question.kind) {
      case 'count': return { id, answer: borrow((connection) => connection.getRow<{ count: number }>(question)) }
      case 'page': return { id, answer: borrow((connection) => readPage(connection, question)) }
      case 'open': return { id, answer: open(question) }
      case 'next': return { id, answer: read(question.list) }
    }
  } catch (error) {
    if ('list' in question) close(question.list)
    return { id, failure: toFailure(error) }
  }
}

function borrow (run: (connection: Connection) => Answer): Answer {
  const connection = lend()
  try {
    const answer = run(connection)
    give(connection)
    return answer
  } catch (error) {
    // Its statement would fail again at the next call.
    connection.close()
    throw error
  }
}

// A row as an array costs two thirds of one as an object.
function iterate (connection: Connection, { sql, values }: Statement): Iterator<[doc: string]> {
  const statement = connection.prepare(sql)
  statement.setReturnArrays(true)
  return statement.iterate(...values) as unknown as Iterator<[doc: string]>
}

function readPage (connection: Connection, statement: Statement): Answer {
  const rows = iterate(connection, statement)
  const docs: string[] = []
  for (let length = 0; length < BATCH_LENGTH;) {
    const doc = rows.next().value?.[0]
    if (doc === undefined) return { docs, done: true }
    docs.push(doc)
    length += doc.length
  }
  rows.return?.()
  return { docs, done: false }
}

function open ({ list, rendering, ...statement }: Opening): Answer {
  const render = rendering === undefined ? undefined : createBatchRenderer(rendering)
  const connection = lend()
  try {
    const rows = iterate(connection, statement)
    cursors.set(list, { connection, rows, next: rows.next().value?.[0], render })
  } catch (error) {
    connection.close()
    throw error
  }
  return read(list, 0)
}

function createBatchRenderer ({ renderer, options, separator }: Rendering): NonNullable<Cursor['render']> {
  if (!Object.hasOwn(factories, renderer)) throw new TypeError(`no renderer ${renderer} is registered`)
  const render = factories[renderer]!(options)
  let before = ''
  return (docs) => {
    const text = before + docs.map((doc) => render(parse(doc))).join(separator)
    before = separator
    return text
  }
}

/** JSON.parse's own message repeats a part of the text, which may be secret. */
function parse (doc: string): Document {
  try {
    return JSON.parse(doc) as Document
  } catch {
    throw new IdentityError('ErrInternal', 'a stored document cannot be read')
  }
}

/** @param length characters that a piece should have; 0 makes it one batch long */
function read (list: number, length = PIECE_LENGTH): Answer {
  const cursor = cursors.get(list)
  if (cursor === undefined) throw new Error('the cursor was closed: the list went unread for too long, it held the log beyond its limit, or the thread ended')
  const found = cursor.render === undefined ? { docs: readBatch(cursor) } : { piece: readPiece(cursor, cursor.render, length) }
  const done = cursor.next === undefined
  if (done) close(list)
  return { ...found, done }
}

function readPiece (cursor: Cursor, render: NonNullable<Cursor['render']>, length: number): string {
  let text = ''
  while (cursor.next !== undefined) {
    text += render(readBatch(cursor))
    if (text.length >= length) break
  }
  return text
}

function readBatch (cursor: Cursor): string[] {
  const docs: string[] = []
  for (let length = 0; cursor.next !== undefined && docs.length < BATCH_SIZE && length < BATCH_LENGTH;) {
    docs.push(cursor.next)
    length += cursor.next.length
    cursor.next = cursor.rows.next().value?.[0]
  }
  return docs
}

function close (list: number): void {
  const cursor = cursors.get(list)
  if (cursor === undefined) return
  cursors.delete(list)
  cursor.rows.return?.()
  give(cursor.connection)
}

function lend (): Connection {
  return spare.pop() ?? new Connection(file, { busy, cache: CACHE })
}

function give (connection: Connection): void {
  if (spare.length < SPARE) spare.push(connection)
  else connection.close()
}
