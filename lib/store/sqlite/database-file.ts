import { realpathSync, statSync } from 'node:fs'
import { storeError } from '../../errors.ts'
import { StoreLostError } from '../port.ts'
import { getTurn } from './turn.ts'

/** A file by its real path, and by the device and inode it had when the store was opened. Plain data, for threads too. */
export interface FileId {
  path: string
  dev: bigint
  ino: bigint
}

/** Follows symbolic links, as SQLite does for the files it keeps beside the database. */
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
 * Notices when the open database file is removed or replaced. The connections of this process would go on with the old
 * file, and other processes use the new one: a revocation would be acknowledged and lost. From then on every check fails.
 */
export class DatabaseFile {
  readonly id: FileId
  readonly #onLost: (error: StoreLostError) => void
  #lost: StoreLostError | null = null
  #turn = Number.NaN

  /** @param onLost called once */
  constructor (id: FileId, onLost: (error: StoreLostError) => void) {
    this.id = id
    this.#onLost = onLost
  }

  /** @throws ErrDb when the file is lost, or cannot be checked */
  check (): void {
    if (this.#lost === null) this.#look()
    if (this.#lost !== null) throw storeError(this.#lost)
  }

  /** The same, but looks at the file at most once per turn of the event loop. */
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
