import { parentPort, workerData } from 'node:worker_threads'
import { StoreLostError } from '../port.ts'
import { Connection, enableWal, measureContent } from './connection.ts'
import { DatabaseFile } from './database-file.ts'
import { runBatch } from './operations.ts'
import { createSchemaCheck, isNew, migrate } from './schema.ts'
import { Table } from './sql.ts'
import { createTableCheck } from './tables.ts'
import { END, type ThreadData } from './thread.ts'
import type { Batch } from './writer.ts'

const { file, collections, opener, busy, hasContent } = workerData as ThreadData
const connection = new Connection(file, { busy })
if (hasContent === true && isNew(connection)) throw new StoreLostError('it was emptied')
enableWal(connection, busy)
migrate(connection, collections, opener)
const opened = new DatabaseFile(file, { measure: () => measureContent(connection) })
const checkTables = createTableCheck(connection, collections)
const checkSchema = createSchemaCheck(connection, collections, opener)
const tables = new Map(collections.map((spec) => [spec.name, new Table(spec)]))

/** Called within each transaction, so that no write is committed to a file that was truncated or lost its tables. */
function check (): void {
  opened.check()
  checkTables()
  checkSchema()
}

/** This file runs in a thread only. */
const port = parentPort!

port.on('message', (message: string) => {
  if (message === END) {
    connection.close()
    port.close()
    return
  }
  const { operations, changed, wait } = JSON.parse(message) as Batch
  connection.database.exec(`PRAGMA busy_timeout = ${Math.floor(wait)}`)
  port.postMessage(runBatch(connection, tables, operations, { check, changed }))
})
