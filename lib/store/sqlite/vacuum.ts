import { Worker } from 'node:worker_threads'
import { threadFile } from './thread.ts'

/** The data of the thread. */
export interface VacuumData {
  path: string
  copy: string
  /** No other connection may have the database open, until the end of `use`. */
  alone: boolean
  /** Milliseconds to wait for a lock. */
  busy: number
}

/** Milliseconds to wait while another process opens the database. */
const BUSY = 10_000

/**
 * Copies the content of one moment without the free pages into an empty file, on a connection of its own. Other processes may read and
 * write the database, unless `alone`. Memory does not grow with the database. The copy is not synced.
 * @param use is called with the copy written, while a lock is still held
 * @throws Error of SQLite: SQLITE_BUSY when `alone` and a process has the database open
 */
export async function vacuumInto (path: string, copy: string, { alone = false, use = async () => {} }: { alone?: boolean, use?: () => Promise<unknown> } = {}): Promise<void> {
  const worker = new Worker(threadFile('vacuum-thread'), { workerData: { path, copy, alone, busy: BUSY } satisfies VacuumData, execArgv: [] })
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const { promise: written, resolve, reject } = Promise.withResolvers<void>()
  worker.on('message', () => resolve()).on('error', reject).on('exit', () => {
    reject(new Error('the thread that copies the database ended'))
    end()
  })
  try {
    await written
    await use()
  } finally {
    worker.postMessage('close')
    await ended
  }
}
