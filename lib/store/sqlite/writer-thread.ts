import { parentPort, workerData } from 'node:worker_threads'
import { Connection, enableWal } from './connection.ts'
import { runBatch } from './operations.ts'
import { createSchemaCheck, migrate } from './schema.ts'
import { Table } from './sql.ts'
import { END, type ThreadData } from './thread.ts'
import type { Batch } from './writer.ts'

const { file, collections, opener, busy } = workerData as ThreadData
const connection = new Connection(file, { busy })
enableWal(connection, busy)
migrate(connection, collections, opener)
const check = createSchemaCheck(connection, collections, opener)
const tables = new Map(collections.map((spec) => [spec.name, new Table(spec)]))

parentPort!.on('message', (message: string) => {
  if (message === END) {
    connection.close()
    parentPort!.close()
    return
  }
  const { operations, wait } = JSON.parse(message) as Batch
  connection.database.exec(`PRAGMA busy_timeout = ${Math.floor(wait)}`)
  parentPort!.postMessage(runBatch(connection, tables, operations, check))
})
