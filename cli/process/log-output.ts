import { once } from 'node:events'
import sonic, { type SonicBoom } from 'sonic-boom'
import type { LogFormat } from './log-format.ts'

/** Bytes that may wait to be written; lines beyond them are dropped and counted. */
const MAX_WAITING = 4 * 1024 * 1024
/** Milliseconds to wait for the last lines when the process ends. */
const LAST_WAIT = 1000

/** Maximum bytes of an atomic write to a pipe (PIPE_BUF, pipe(7)). */
const ATOMIC = 4096
/** Characters kept of each text in a line that is longer than that. */
const EXCERPT = 300

/** Bytes by which text may be longer than its JSON. */
const TEXT = 512

/** Cuts a line that is too long for an atomic write down to its most useful fields. */
function shorten (line: string, room: number): string {
  if (Buffer.byteLength(line) <= room) return line
  try {
    const { level, time, pid, hostname, reqId, msg, err } = JSON.parse(line)
    const cut = (text: unknown) => typeof text === 'string' ? text.slice(0, EXCERPT) : undefined
    const { type, message, code, stack } = err ?? {}
    const failure = err !== undefined && { err: { type: cut(type), message: cut(message), code: cut(code), stack: cut(stack) } }
    return `${JSON.stringify({ level, time, pid, hostname, reqId, ...failure, shortened: true, msg: cut(msg) })}\n`
  } catch {
    return `${line.slice(0, EXCERPT)}\n`
  }
}

/**
 * The log's destination. A full pipe, a closed one or a full disk neither blocks nor ends the service: lines that do not fit
 * into the buffer are dropped, and a log line counts them.
 */
export class LogOutput {
  readonly #stream: SonicBoom
  readonly #shared: boolean
  readonly #format: LogFormat | undefined
  #dropped = 0
  #writing = false
  /** The last attempt found the pipe full. */
  #full = false

  /**
   * @param shared other processes write there too: each line must be one atomic write
   * @param format absent: lines stay JSON
   */
  constructor (fd: number, { shared = false, format }: { shared?: boolean, format?: LogFormat | undefined } = {}) {
    this.#shared = shared
    this.#format = format
    this.#stream = new sonic.SonicBoom({
      fd,
      maxLength: MAX_WAITING,
      ...(shared && { maxWrite: ATOMIC }),
      retryEAGAIN: () => (this.#full = true)
    })
    this.#stream.on('write', () => { this.#full = false })
    // After an error the stream keeps its buffer, and tries again at the next line.
    this.#stream.on('error', () => { this.#writing = false })
    this.#stream.on('drop', () => {
      this.#dropped++
      // sonic-boom does not try again for a line that it drops; an empty one always fits.
      this.#stream.write('')
    })
    this.#stream.on('drain', () => {
      this.#writing = false
      this.#reportDropped()
    })
  }

  write (line: string): void {
    this.#writing = true
    const room = this.#format === undefined ? ATOMIC : ATOMIC - TEXT
    const short = this.#shared && line.length > ATOMIC / 3 ? shorten(line, room) : line
    this.#stream.write(this.#format === undefined ? short : this.#format(short))
  }

  /** Whether a thread hangs in a write. process.exit() would wait for it. */
  get stuck (): boolean {
    return this.#writing && !this.#full
  }

  /** Resolves when every line is written or has failed, or after a second. */
  async drained (): Promise<void> {
    const signal = AbortSignal.timeout(LAST_WAIT)
    // Loops because the report of dropped lines is one more write after the drain.
    while (this.#writing && !signal.aborted) await once(this.#stream, 'drain', { signal }).catch(() => {})
  }

  #reportDropped (): void {
    if (this.#dropped === 0) return
    const dropped = this.#dropped
    this.#dropped = 0
    this.write(`${JSON.stringify({ level: 40, time: Date.now(), pid: process.pid, dropped, msg: 'log lines dropped' })}\n`)
  }
}
