import { connect, type Socket } from 'node:net'
import { readAnswer } from './answer.ts'
import type { Round } from './round.ts'

/** Larger than any answer of a rotation but the lists of 100. */
const READ = 65_536

/**
 * One keep-alive connection with at most one request under way. Written on the bare socket: a client library costs more
 * than many a server here.
 */
export class Connection {
  readonly #round: Round
  readonly #read = Buffer.allocUnsafe(READ)
  #socket!: Socket
  #partial: Buffer | null = null
  /** The request under way, and since when. */
  #index = -1
  #since = 0

  constructor (round: Round) {
    this.#round = round
  }

  async open (port: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#socket = connect({
      host: '127.0.0.1',
      port,
      noDelay: true,
      onread: { buffer: this.#read, callback: (length) => { this.#take(length); return true } }
    }, resolve)
    const lost = (error: Error) => { reject(error); if (this.#index !== -1) this.#round.fail(error) }
    this.#socket.on('error', lost)
    this.#socket.on('close', () => lost(new Error('the server closed a connection with a request under way')))
    await promise
  }

  /** @param since when the request was due, milliseconds of performance.now() */
  send (index: number, since: number): void {
    this.#index = index
    this.#since = since
    this.#socket.write(this.#round.load.request(index))
  }

  close (): void {
    this.#index = -1
    this.#socket.destroy()
  }

  #take (length: number): void {
    const index = this.#index
    const { load } = this.#round
    // Nearly always the answer comes in one piece and is, byte for byte, the one learned.
    if (this.#partial === null && load.isKnown(index, this.#read, length)) return this.#done()
    const bytes = this.#partial === null ? this.#read.subarray(0, length) : Buffer.concat([this.#partial, this.#read.subarray(0, length)])
    try {
      const answer = readAnswer(bytes)
      if (answer === null) {
        this.#partial = this.#partial === null ? Buffer.from(bytes) : bytes
        return
      }
      this.#partial = null
      if (answer.end !== bytes.length) throw new Error('more bytes than the answer has')
      load.check(index, bytes, answer)
    } catch (error) {
      this.#index = -1
      return this.#round.fail(error as Error)
    }
    this.#done()
  }

  #done (): void {
    this.#index = -1
    this.#round.answered(this, this.#since)
  }
}
