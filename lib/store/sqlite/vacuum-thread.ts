import { parentPort, workerData } from 'node:worker_threads'
import { DatabaseSync } from './node-sqlite.ts'
import type { VacuumData } from './vacuum.ts'

// Writes a copy without free pages. In a thread, because it takes long: the process reports the progress meanwhile.

const { path, copy, alone, busy } = workerData as VacuumData
const database = new DatabaseSync(path, { readOnly: !alone, timeout: alone ? 0 : busy })

/** Takes the lock that excludes every other connection, and keeps it. It also merges the log into the file. */
function lock (): void {
  database.exec('PRAGMA journal_mode = DELETE; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT')
}

if (alone) lock()
database.prepare('VACUUM INTO ?').run(copy)
parentPort!.once('message', () => {
  database.close()
  parentPort!.close()
})
parentPort!.postMessage('written')
