import { parentPort, workerData } from 'node:worker_threads'
import { Connection } from './connection.ts'
import { runBatch } from './operations.ts'
import { migrate } from './schema.ts'
import { Table } from './sql.ts'
import { END, type ThreadData } from './thread.ts'
import { type Batch } from './writer.ts'

// The one thread that writes.

/** Milliseconds between attempts. */
const PAUSE = 10
/** SQLITE_BUSY. */
const BUSY = 5

const { path, collections, busy } = workerData as ThreadData
const connection = new Connection(path, { busy })
useLog(Date.now() + busy)
migrate(connection, collections)
const tables = new Map(collections.map((spec) => [spec.name, new Table(spec)]))

parentPort!.on('message', (message: Batch | typeof END) => {
  if (message === END) {
    connection.close()
    parentPort!.close()
    return
  }
  connection.database.exec(`PRAGMA busy_timeout = ${Math.floor(message.wait)}`)
  parentPort!.postMessage(runBatch(connection, tables, message.operations))
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
