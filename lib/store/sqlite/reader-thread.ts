import { parentPort, workerData } from 'node:worker_threads'
import type { Document, Renderer } from '../port.ts'
import { createRendererOf } from '../rendering.ts'
import { Connection } from './connection.ts'
import { toFailure } from './failure.ts'
import type { Answer, Opening, Question } from './reader.ts'
import { END, type ThreadData } from './thread.ts'

// The thread that reads what takes long. Each list that is open has a connection to itself: its cursor holds a snapshot
// of the file, and what else were read on that connection would be as old as the list.

/** Characters of a batch, about: reading a message must not hold the event loop. */
const BATCH_LENGTH = 500_000
/**
 * Characters of a piece, about: some hundred documents, since each costs a message and a write. As a text, and of this size,
 * it is collected with what is young; bytes of their own would lie about until some tens of MiB of them call for more.
 */
const PIECE_LENGTH = 48 * 1024
/** Kibibytes of pages a connection keeps. Many lists may be open, and a list reads a page once. */
const CACHE = 256
/**
 * Connections kept for the next list. The file's descriptor of one that is closed goes to the next that opens: while any
 * connection of a process has a lock on a file, which in a log's mode is always, SQLite keeps descriptors, as POSIX would
 * drop that lock with them. There are as many as connections were open at once, which the places for cursors bound.
 */
const SPARE = 4

interface Cursor {
  connection: Connection
  /** Rows of a batch at most. */
  size: number
  rows: Iterator<[doc: string]>
  /** The row after the last batch: with none there, the list was at its end. */
  next: string | undefined
  /** For a list of pieces. */
  renderer: Renderer<Document> | undefined
}

const { file, busy } = workerData as ThreadData
const spare: Connection[] = []
const cursors = new Map<number, Cursor>()

// A renderer that is being loaded holds up what comes after: a list is never closed, or asked, before it is open.
let turn = Promise.resolve()
parentPort!.on('message', (question: Question | typeof END) => {
  turn = turn.then(() => take(question))
})

async function take (question: Question | typeof END): Promise<void> {
  if (question === END) {
    for (const id of cursors.keys()) close(id)
    for (const connection of spare) connection.close()
    parentPort!.close()
  } else if (question.kind === 'close') {
    close(question.list)
  } else {
    parentPort!.postMessage({ id: question.id, ...await answer(question) })
  }
}

async function answer (question: Exclude<Question, { kind: 'close' }>): Promise<Omit<Answer, 'id'>> {
  const list = question.kind === 'open' ? question.id : question.kind === 'next' ? question.list : -1
  try {
    if (question.kind === 'count') return count(question)
    if (question.kind === 'next') return read(list)
    const { rendering } = question
    open(question, rendering && await createRendererOf(rendering))
    const first = read(list, 0)
    if (first.done || !question.whole) return first
    // A cursor is held by those alone who are counted.
    close(list)
    return { done: false }
  } catch (error) {
    close(list)
    return { failure: toFailure(error) }
  }
}

function count (statement: Question & { kind: 'count' }): Omit<Answer, 'id'> {
  const connection = lend()
  try {
    return { count: connection.get<{ count: number }>(statement)!.count }
  } finally {
    give(connection)
  }
}

function open ({ id, size, sql, values }: Opening, renderer: Cursor['renderer']): void {
  const connection = lend()
  try {
    const statement = connection.prepare(sql)
    // A row as an array costs two thirds of what one as an object does.
    statement.setReturnArrays(true)
    const rows = statement.iterate(...values) as unknown as Iterator<[doc: string]>
    cursors.set(id, { connection, size, rows, next: rows.next().value?.[0], renderer })
  } catch (error) {
    connection.close()
    throw error
  }
}

/** @param length characters that a piece shall have; with none it is of one batch, as one that is early */
function read (id: number, length = PIECE_LENGTH): Omit<Answer, 'id'> {
  const cursor = cursors.get(id)
  if (cursor === undefined) return { failure: { message: 'the cursor was closed: the list went unread for too long, or the thread ended' } }
  const found = cursor.renderer === undefined ? { docs: readBatch(cursor) } : { piece: readPiece(cursor, cursor.renderer, length) }
  const done = cursor.next === undefined
  if (done) close(id)
  return { ...found, done }
}

function readPiece (cursor: Cursor, renderer: Renderer<Document>, length: number): string {
  let text = ''
  do text += renderer.fromTexts(readBatch(cursor))
  while (text.length < length && cursor.next !== undefined)
  return text
}

function readBatch (cursor: Cursor): string[] {
  const docs: string[] = []
  for (let length = 0; cursor.next !== undefined && docs.length < cursor.size && length < BATCH_LENGTH;) {
    docs.push(cursor.next)
    length += cursor.next.length
    cursor.next = cursor.rows.next().value?.[0]
  }
  return docs
}

function close (id: number): void {
  const cursor = cursors.get(id)
  if (cursor === undefined) return
  cursors.delete(id)
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
