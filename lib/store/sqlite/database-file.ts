import { realpathSync, statSync } from 'node:fs'
import { storeError } from '../../errors.ts'
import { StoreLostError } from '../port.ts'
import { getTurn } from './turn.ts'

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

/** @throws StoreLostError when the path leads to another file or to none */
export function checkFile ({ path, dev, ino }: FileId): void {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  if (found === undefined) throw new StoreLostError(`the database file ${path} was removed while it was open`)
  if (found.dev !== dev || found.ino !== ino) throw new StoreLostError(`the database file ${path} was replaced while it was open`)
}

/**
 * Detects that the open database file was removed or replaced. Without this check, open connections would go on with the
 * old file while other processes use the new one, and an acknowledged revocation would be lost. Once the file is lost,
 * every check fails, even if it comes back.
 */
export class DatabaseFile {
  readonly id: FileId
  readonly #onLost: (error: StoreLostError) => void
  #lost: StoreLostError | null = null
  #turn = Number.NaN

  /** @param onLost called at most once */
  constructor (id: FileId, onLost: (error: StoreLostError) => void) {
    this.id = id
    this.#onLost = onLost
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

  #look (): void {
    try {
      checkFile(this.id)
    } catch (error) {
      if (!(error instanceof StoreLostError)) throw storeError(error)
      this.#lost = error
      this.#onLost(error)
    }
  }
}
