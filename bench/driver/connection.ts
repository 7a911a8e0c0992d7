import { connect, type Socket } from 'node:net'
import { readAnswer } from './answer.ts'
import type { Round } from './round.ts'

/** More than any answer of a rotation, except lists of 100. */
const READ = 65_536

/**
 * A keep-alive connection with at most one request in flight. It works on the bare socket: a client library costs more than
 * some of the servers.
 */
export class Connection {
  readonly #round: Round
  readonly #read = Buffer.allocUnsafe(READ)
  #socket!: Socket
  #partial: Buffer | null = null
  /** The request in flight, and when it was due. */
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
      onread: { buffer: this.#read, callback: (length) => { this.#receive(length); return true } }
    }, resolve)
    const fail = (error: Error) => { reject(error); if (this.#index !== -1) this.#round.fail(error) }
    this.#socket.on('error', fail)
    this.#socket.on('close', () => fail(new Error('the server closed a connection with a request in flight')))
    await promise
  }

  /** @param since when the request was due, by performance.now() */
  send (index: number, since: number): void {
    this.#index = index
    this.#since = since
    this.#socket.write(this.#round.load.request(index))
  }

  close (): void {
    this.#index = -1
    this.#socket.destroy()
  }

  #receive (length: number): void {
    const index = this.#index
    const { load } = this.#round
    // The usual case: the answer arrives in one piece and is the one learned.
    if (this.#partial === null && load.isLearned(index, this.#read, length)) return this.#done()
    const bytes = this.#partial === null ? this.#read.subarray(0, length) : Buffer.concat([this.#partial, this.#read.subarray(0, length)])
    try {
      const answer = readAnswer(bytes)
      if (answer === null) {
        this.#partial = this.#partial === null ? Buffer.from(bytes) : bytes
        return
      }
      this.#partial = null
      if (answer.end !== bytes.length) throw new Error('bytes after the end of an answer')
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
