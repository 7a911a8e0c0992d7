import type { Load } from '../types.ts'
import type { Answer } from './answer.ts'

const COUNTER = '{counter}'
const DIGITS = 10

interface Learned {
  /** Bytes of the whole answer, and the offset of its body. */
  length: number
  start: number
  body: Buffer
}

/** A load ready to be sent: requests as bytes, and the answers learned. */
export class PreparedLoad {
  readonly size: number
  readonly once: boolean
  readonly #requests: Buffer[]
  readonly #counters: number[]
  readonly #learned: (Learned | undefined)[]
  readonly #proofs: string[] | undefined
  readonly #status: number
  readonly #statusBytes: Buffer
  readonly #volatile: boolean
  #counter: number

  /** @param first the first value of `{counter}` */
  constructor ({ requests, proofs, status = 200, volatile = false, once = false }: Load, first: number) {
    this.size = requests.length
    this.once = once
    this.#counters = requests.map((text) => Buffer.from(text).indexOf(COUNTER))
    this.#requests = requests.map((text) => Buffer.from(text.replace(COUNTER, '0'.repeat(DIGITS))))
    this.#learned = requests.map(() => undefined)
    this.#proofs = proofs
    this.#status = status
    this.#statusBytes = Buffer.from(String(status))
    this.#volatile = volatile
    this.#counter = first
  }

  request (index: number): Buffer {
    const at = this.#counters[index]!
    if (at === -1) return this.#requests[index]!
    // A copy: the previous one may not be sent yet.
    const bytes = Buffer.from(this.#requests[index]!)
    bytes.write(String(this.#counter++).padStart(DIGITS, '0'), at, 'latin1')
    return bytes
  }

  /** Whether the bytes are the answer learned for this request. */
  isLearned (index: number, bytes: Buffer, length: number): boolean {
    const learned = this.#learned[index]
    return learned !== undefined && length === learned.length && bytes.compare(this.#statusBytes, 0, 3, 9, 12) === 0 &&
      (this.#volatile || bytes.compare(learned.body, 0, learned.body.length, learned.start, length) === 0)
  }

  /** Checks an answer and learns the first. Throws when it is wrong. */
  check (index: number, bytes: Buffer, { status, body, end }: Answer): void {
    if (status !== this.#status) throw new Error(`answered ${status}: ${bytes.toString('utf8', body, Math.min(end, body + 200))}`)
    const learned = this.#learned[index]
    if (learned === undefined) {
      const proof = this.#proofs?.[index]
      if (proof !== undefined && !bytes.toString('utf8', body, end).includes(proof)) throw new Error(`an answer lacks the text ${proof}`)
      this.#learned[index] = { length: end, start: body, body: Buffer.from(bytes.subarray(body, end)) }
    } else if (!this.#volatile && bytes.compare(learned.body, 0, learned.body.length, body, end) !== 0) {
      throw new Error(`an answer changed: ${bytes.toString('utf8', body, Math.min(end, body + 200))}`)
    }
  }
}
