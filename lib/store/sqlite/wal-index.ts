import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'

/** Bytes of the header, of which there are two copies: the first is written last. */
const HEADER = 48
/** The only version of the format there is. */
const VERSION = 3_007_000
/** Where the header holds its version, in words of four bytes, and in bytes whether it is filled in. */
const AT_VERSION = 0
const AT_IS_INIT = 12

/**
 * Descriptors of stores that were closed while somebody else had the file open. To close one would drop the locks that
 * other connections of this process have on the file (fcntl(2)): they wait until SQLite has unlinked it.
 */
const waiting = new Set<number>()

/**
 * The header of SQLite's WAL-index, the file `-shm` beside a database (https://www.sqlite.org/walformat.html#walidxfmt):
 * each commit, of any connection of any process, writes another counter and checksum there before it is acknowledged, so that
 * an unchanged header tells that nothing was committed. Reading it takes a third of the time of the shortest query, and no lock.
 */
export class WalIndex {
  /** NaN when it is closed: the number may be another file's by then. */
  #fd: number
  readonly #words = new Uint32Array(HEADER / 4)
  readonly #bytes = new Uint8Array(this.#words.buffer)
  /** The header that `isSame` compares with. */
  readonly #kept = new Uint32Array(HEADER / 4)
  #isKept = false

  private constructor (fd: number) {
    this.#fd = fd
  }

  /**
   * Of a database that a connection of this process has read from, and keeps open until `close`. Null where the file
   * cannot be read as the format has it, and on systems other than Linux, where nobody has tried.
   */
  static open (path: string): WalIndex | null {
    if (process.platform !== 'linux') return null
    const file = `${path}-shm`
    try {
      const { dev, ino } = statSync(file)
      let fd = [...waiting].find((open) => isFile(open, dev, ino))
      if (fd === undefined) fd = openSync(file, 'r')
      else waiting.delete(fd)
      const index = new WalIndex(fd)
      if (index.#read() && index.#words[AT_VERSION] === VERSION && index.#bytes[AT_IS_INIT] === 1) return index
      index.close()
    } catch {}
    return null
  }

  /** Whether the header is the one that was kept, and so the database what it was then. */
  isSame (): boolean {
    if (!this.#read() || !this.#isKept) return false
    for (let word = 0; word < HEADER / 4; word++) if (this.#words[word] !== this.#kept[word]) return false
    return true
  }

  /** Keeps the header that `isSame` read last. What was read from the database since then is at least as new. */
  keep (): void {
    this.#kept.set(this.#words)
    this.#isKept = true
  }

  /** No header is the kept one, until the next. */
  forget (): void {
    this.#isKept = false
  }

  /** After the process's connections to the database. */
  close (): void {
    waiting.add(this.#fd)
    this.#fd = Number.NaN
    for (const fd of waiting) {
      if (fstatSync(fd).nlink > 0) continue
      waiting.delete(fd)
      closeSync(fd)
    }
  }

  /** False when it cannot be read: whoever asks the database instead learns why. */
  #read (): boolean {
    try {
      return readSync(this.#fd, this.#bytes, 0, HEADER, 0) === HEADER
    } catch {
      return false
    }
  }
}

function isFile (fd: number, dev: number, ino: number): boolean {
  const found = fstatSync(fd)
  return found.dev === dev && found.ino === ino
}
