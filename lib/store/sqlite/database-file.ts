import { realpathSync, statSync } from 'node:fs'
import { storeError } from '../../errors.ts'
import { StoreLostError } from '../port.ts'
import { type Failure, isDamage } from './failure.ts'
import { getTurn } from './turn.ts'
import { readMessage } from '../../failure.ts'

/** Identifies a file by its real path, and by the device and inode found there. Plain data, which threads receive. */
export interface FileId {
  path: string
  dev: bigint
  ino: bigint
}

/** Resolves symbolic links, as SQLite does to name the log of a database. */
export function identifyFile (path: string): FileId {
  const real = realpathSync(path)
  const { dev, ino } = statSync(real, { bigint: true })
  return { path: real, dev, ino }
}

/**
 * Returns the bytes of the file.
 * @throws StoreLostError when the path leads to another file or to none
 */
export function checkFile ({ path, dev, ino }: FileId): bigint {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  if (found === undefined) throw new StoreLostError(`the database file ${path} was removed while it was open`)
  if (found.dev !== dev || found.ino !== ino) throw new StoreLostError(`the database file ${path} was replaced while it was open`)
  return found.size
}

/** What an operator does about a file whose content is gone. */
const ADVICE = 'stop the service, replace the file with a backup (command restore), and start the service'

export interface DatabaseFileOptions {
  /** Called at most once. */
  onLost?: (error: StoreLostError) => void
  /** The bytes of the database as SQLite knows them. */
  measure: () => number
}

/**
 * Detects that the open database file was removed, replaced or damaged. Without this check, open connections would go on with
 * an old file while other processes use a new one, or with cached pages of a file that does not open again: an acknowledged
 * revocation would be lost. Once the file is lost, every check fails, even if it comes back.
 */
export class DatabaseFile {
  readonly id: FileId
  readonly #onLost: (error: StoreLostError) => void
  readonly #measure: () => number
  #lost: StoreLostError | null = null
  #turn = Number.NaN
  /** Bytes at the last check. With a write-ahead log, only VACUUM shrinks a file. */
  #size = 0n

  constructor (id: FileId, { onLost = () => {}, measure }: DatabaseFileOptions) {
    this.id = id
    this.#onLost = onLost
    this.#measure = measure
  }

  /** @throws ErrDb when the file is lost, or cannot be checked */
  check (): void {
    if (this.#lost === null) this.#look()
    if (this.#lost !== null) throw storeError(this.#lost)
  }

  /** The same, at most once per turn of the event loop. */
  checkOncePerTurn (): void {
    const turn = getTurn()
    if (turn === this.#turn && this.#lost === null) return
    this.check()
    this.#turn = turn
  }

  /** Runs a statement, and turns its errors into ErrDb. An error that says that the file is damaged makes it lost. */
  guard<R> (run: () => R): R {
    try {
      return run()
    } catch (error) {
      this.#judge(error)
      throw storeError(this.#lost ?? error)
    }
  }

  /** To be called with the failures of the threads, whose errors count as those of `guard`. */
  report ({ message, code, lost }: Failure): void {
    this.#judge(lost === true ? new StoreLostError(message) : Object.assign(new Error(message), { errcode: code }))
  }

  #judge (error: unknown): void {
    if (error instanceof StoreLostError || isDamage(error)) this.#damaged(readMessage(error))
  }

  #look (): void {
    let size: bigint
    try {
      size = checkFile(this.id)
    } catch (error) {
      if (!(error instanceof StoreLostError)) throw storeError(error)
      this.#lose(error)
      return
    }
    if (size < this.#size && !this.#isWhole(size)) this.#damaged('it was truncated')
    this.#size = size
  }

  #isWhole (size: bigint): boolean {
    try {
      return size >= this.#measure()
    } catch (error) {
      if (isDamage(error)) return false
      throw storeError(error)
    }
  }

  #damaged (what: string): void {
    this.#lose(new StoreLostError(`the database file ${this.id.path} is damaged (${what}): ${ADVICE}`))
  }

  #lose (error: StoreLostError): void {
    if (this.#lost !== null) return
    this.#lost = error
    this.#onLost(error)
  }
}
