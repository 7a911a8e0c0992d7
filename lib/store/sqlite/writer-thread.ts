import { parentPort, workerData } from 'node:worker_threads'
import { Connection } from './connection.ts'
import { type Operation, runBatch } from './operations.ts'
import { migrate } from './schema.ts'
import { Table } from './sql.ts'
import { END, type ThreadData } from './thread.ts'

// The one thread that writes. A message is a batch, and its answer the outcomes in the same order.

/** Milliseconds between attempts. */
const PAUSE = 10
/** SQLITE_BUSY. */
const BUSY = 5

const { path, collections, busy } = workerData as ThreadData
const connection = new Connection(path, { busy })
useLog(Date.now() + busy)
migrate(connection, collections)
const tables = new Map(collections.map((spec) => [spec.name, new Table(spec)]))

parentPort!.on('message', (message: Operation[] | typeof END) => {
  if (message !== END) return parentPort!.postMessage(runBatch(connection, tables, message))
  connection.close()
  parentPort!.close()
})

/** SQLite does not wait by itself where two processes turn a new file to write-ahead logging at once. */
function useLog (deadline: number): void {
  for (;;) {
    try {
      connection.database.exec('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      if (((error as { errcode?: number }).errcode ?? 0) % 256 !== BUSY || Date.now() > deadline) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE)
    }
  }
}
