import { write, writeSync } from 'node:fs'

/** Characters that wait to be written; what comes in beyond them is left out. */
const HELD = 4 * 1024 * 1024
/** Milliseconds until a destination that is busy is tried again. */
const RETRY = 50
/** Milliseconds that a destination which stays busy has for the last lines. */
const LAST = 1000

/**
 * Bytes that a write brings into a pipe as a whole or not at all (PIPE_BUF, pipe(7)); a socket and a terminal take them
 * as a whole too.
 */
const ATOMIC = 4096
/** Characters of a text within a line that is too long to be written as a whole. */
const EXCERPT = 300

/** A line with what matters of it, where it is longer than a write that stays whole. */
function shorten (line: string): string {
  if (Buffer.byteLength(line) <= ATOMIC) return line
  try {
    const { level, time, pid, hostname, reqId, msg, err } = JSON.parse(line)
    const cut = (text: unknown) => typeof text === 'string' ? text.slice(0, EXCERPT) : undefined
    const { type, message, code, stack } = err ?? {}
    const told = err !== undefined && { err: { type: cut(type), message: cut(message), code: cut(code), stack: cut(stack) } }
    return `${JSON.stringify({ level, time, pid, hostname, reqId, ...told, shortened: true, msg: cut(msg) })}\n`
  } catch {
    return `${line.slice(0, EXCERPT)}\n`
  }
}

function isBusy (error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EAGAIN' || code === 'EINTR' || code === 'EBUSY'
}

/**
 * Where the log's lines go: a descriptor that may be full, gone or slow, none of which is a reason to end or to wait.
 * Lines that cannot be written are left out and counted, and the next line that can be is followed by their number.
 * The stream that pino makes by itself throws there, and at the exit tries again without end.
 */
export class LogOutput {
  #lines: string[] = []
  /** Being written, by a thread. */
  #batch: Buffer = Buffer.alloc(0)
  #batchLines = 0
  #held = 0
  #dropped = 0
  #writing = false
  #inCall = false
  /** What was written last is a part of a line. */
  #torn = false
  #idle: (() => void)[] = []
  readonly #fd: number
  readonly #shared: boolean

  /** @param shared other processes write there too: each write is one that stays whole, and so does each line */
  constructor (fd: number, { shared = false }: { shared?: boolean } = {}) {
    this.#fd = fd
    this.#shared = shared
  }

  write (text: string): void {
    const line = this.#shared && text.length > ATOMIC / 3 ? shorten(text) : text
    if (this.#held + line.length > HELD) {
      this.#dropped++
      return
    }
    this.#lines.push(line)
    this.#held += line.length
    if (!this.#writing) this.#next()
  }

  /** A thread is in a write, which an exit would wait for. */
  get stuck (): boolean {
    return this.#inCall
  }

  /** Resolves when nothing is left to write, or after a second. */
  async drained (): Promise<void> {
    if (!this.#writing) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#idle.push(resolve)
    const timer = setTimeout(resolve, LAST)
    await promise
    clearTimeout(timer)
  }

  /**
   * Writes what waits, for when the process exits and no event will follow: it holds the thread for a second at most.
   * @param tell logs the last lines, which so are not left to a thread either
   */
  writeLast (tell: () => void = () => {}): void {
    const writing = this.#writing
    this.#writing = true
    tell()
    this.#writing = writing
    let text = this.#inCall || this.#batch.length === 0 ? this.#takeLines() : this.#batch
    const end = performance.now() + LAST
    while (text.length > 0) {
      try {
        text = text.subarray(writeSync(this.#fd, text))
        if (text.length > 0) continue
        this.#torn = false
        text = this.#takeLines()
      } catch (error) {
        if (!isBusy(error) || performance.now() > end) return
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY)
      }
    }
  }

  #takeLines (): Buffer {
    const lines = this.#shared ? this.#lines.splice(0, this.#countFitting()) : this.#lines.splice(0)
    this.#batchLines = lines.length
    if (lines.length === 0) return Buffer.alloc(0)
    const text = lines.join('')
    this.#held -= text.length
    return Buffer.from((this.#torn ? '\n' : '') + text)
  }

  /** How many lines make a write that stays whole. */
  #countFitting (): number {
    let bytes = this.#torn ? 1 : 0
    const count = this.#lines.findIndex((line) => (bytes += Buffer.byteLength(line)) > ATOMIC)
    return count < 0 ? this.#lines.length : Math.max(1, count)
  }

  #next (): void {
    this.#batch = this.#takeLines()
    this.#writing = this.#batch.length > 0
    if (this.#writing) return this.#writeBatch()
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  #writeBatch (): void {
    this.#inCall = true
    write(this.#fd, this.#batch, (error, written) => {
      this.#inCall = false
      if (error !== null && isBusy(error)) {
        setTimeout(() => this.#writeBatch(), RETRY)
      } else if (error !== null) {
        this.#dropped += this.#batchLines
        this.#next()
      } else if (written < this.#batch.length) {
        this.#torn = this.#batch[written - 1] !== 0x0a
        this.#batch = this.#batch.subarray(written)
        this.#writeBatch()
      } else {
        this.#torn = false
        this.#tellDropped()
        this.#next()
      }
    })
  }

  #tellDropped (): void {
    if (this.#dropped === 0) return
    this.#lines.push(`${JSON.stringify({ level: 40, time: Date.now(), pid: process.pid, dropped: this.#dropped, msg: 'lines of the log could not be written' })}\n`)
    this.#dropped = 0
  }
}
