import { parentPort, workerData } from 'node:worker_threads'
import { Connection } from './connection.ts'
import { toFailure } from './failure.ts'
import type { Answer, Question } from './reader.ts'
import { END, type ThreadData } from './thread.ts'

// The thread that reads what takes long. Each list that is open has a connection to itself: its cursor holds a snapshot
// of the file, and what else were read on that connection would be as old as the list.

/** Characters of a batch, about: reading a message must not hold the event loop. */
const BATCH_LENGTH = 500_000
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
  rows: Iterator<{ doc: string }>
  /** The row after the last batch: with none there, the list was at its end. */
  next: string | undefined
}

const { path, busy } = workerData as ThreadData
const spare: Connection[] = []
const cursors = new Map<number, Cursor>()

parentPort!.on('message', (question: Question | typeof END) => {
  if (question === END) {
    for (const id of cursors.keys()) close(id)
    for (const connection of spare) connection.close()
    parentPort!.close()
  } else if (question.kind === 'close') {
    close(question.id)
  } else {
    parentPort!.postMessage({ id: question.id, ...answer(question) })
  }
})

function answer (question: Exclude<Question, { kind: 'close' }>): Omit<Answer, 'id'> {
  try {
    if (question.kind === 'count') return count(question)
    if (question.kind === 'next') return read(question.id)
    open(question)
    const first = read(question.id)
    if (first.done || !question.whole) return first
    // A cursor is held by those alone who are counted.
    close(question.id)
    return { done: false }
  } catch (error) {
    close(question.id)
    return { failure: toFailure(error) }
  }
}

function count (statement: Question & { kind: 'count' }): Omit<Answer, 'id'> {
  const connection = take()
  try {
    return { count: connection.get<{ count: number }>(statement)!.count }
  } finally {
    give(connection)
  }
}

function open ({ id, size, sql, values }: Question & { kind: 'open' }): void {
  const connection = take()
  try {
    const rows = connection.prepare(sql).iterate(...values) as unknown as Iterator<{ doc: string }>
    cursors.set(id, { connection, size, rows, next: rows.next().value?.doc })
  } catch (error) {
    connection.close()
    throw error
  }
}

function read (id: number): Omit<Answer, 'id'> {
  const cursor = cursors.get(id)
  if (cursor === undefined) return { failure: { message: 'the cursor was closed: the list went unread for too long, or the thread ended' } }
  const docs: string[] = []
  for (let length = 0; cursor.next !== undefined && docs.length < cursor.size && length < BATCH_LENGTH;) {
    docs.push(cursor.next)
    length += cursor.next.length
    cursor.next = cursor.rows.next().value?.doc
  }
  const done = cursor.next === undefined
  if (done) close(id)
  return { docs, done }
}

function close (id: number): void {
  const cursor = cursors.get(id)
  if (cursor === undefined) return
  cursors.delete(id)
  cursor.rows.return?.()
  give(cursor.connection)
}

function take (): Connection {
  return spare.pop() ?? new Connection(path, { busy, cache: CACHE })
}

function give (connection: Connection): void {
  if (spare.length < SPARE) spare.push(connection)
  else connection.close()
}
