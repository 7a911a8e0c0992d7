import { createHmac } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { extname } from 'node:path'
import type { Piscina } from 'piscina'
import { busyError } from '../errors.ts'
import { randomText } from '../ids.ts'
import { Lazy } from '../lazy.ts'

/** Characters of salt before the HMAC (service.md, 8); bcrypt adds 128 bits of its own. */
const SALT_LENGTH = 8

/** Hashings that may wait for a thread; past it callers get ErrBusy. */
const DEFAULT_QUEUE = 128

/** What a worker is asked, see password-worker.ts. */
export interface PasswordJob {
  digest: string
  /** Absent: hash with `cost`. */
  hash?: string
  cost: number
}

export interface PasswordOptions {
  /** bcrypt's cost: each step doubles the work. */
  cost: number
  /** Hashings that may wait. */
  queue?: number
  /** Processes that share the cores and the queue, this one included; each takes its part of both. */
  processes?: number
}

/** Salted password hashes, made and compared in worker threads. */
export interface Passwords {
  /** The form that is stored. Rejects with ErrBusy when too many are waiting. */
  hash (password: string): Promise<string>
  /**
   * Compares. Without a stored hash it takes the same work and answers false, so that an unknown account tells nothing; so
   * does a hash of a lower cost that does not match. Rejects with ErrBusy when the queue is full.
   */
  verify (password: string, stored: string | undefined): Promise<boolean>
  /** The hash was made with a lower cost than today's. */
  isWeak (stored: string): boolean
  close (): Promise<void>
}

/** The whole password goes through an HMAC first: bcrypt alone would cut it at 72 bytes and stop at a NUL. */
function digest (password: string, salt: string): string {
  return createHmac('sha256', salt).update(password).digest('base64')
}

export function createPasswords ({ cost, queue: asked = DEFAULT_QUEUE, processes = 1 }: PasswordOptions): Passwords {
  const queue = Math.max(1, Math.floor(asked / processes))
  // A core for each event loop.
  const threads = Math.max(1, Math.floor(availableParallelism() / processes) - 1)
  // The threads start with the first password, not with the service, and go away when there is nothing to hash.
  const opened = new Lazy(async (): Promise<Piscina> => {
    const { Piscina } = await import('piscina')
    return new Piscina({
      filename: new URL(`./password-worker${extname(import.meta.url)}`, import.meta.url).href,
      minThreads: 0,
      maxThreads: threads,
      maxQueue: queue,
      idleTimeout: 30_000,
      niceIncrement: process.platform === 'win32' ? 0 : 10
    })
  })

  async function run<T> (job: PasswordJob): Promise<T> {
    const pool = await opened.get()
    if (pool.queueSize >= queue) throw busyError('password hashings')
    return await pool.run(job) as T
  }

  // Compared when there is no stored hash: well-formed, so that comparing takes a hash, and no password fits it.
  const dummy = `${randomText(SALT_LENGTH)}$2b$${String(cost).padStart(2, '0')}$${randomText(53)}`

  async function hash (password: string): Promise<string> {
    const salt = randomText(SALT_LENGTH)
    return salt + await run<string>({ digest: digest(password, salt), cost })
  }

  return {
    hash,
    async verify (password, stored) {
      const known = stored || dummy
      const salt = known.slice(0, SALT_LENGTH)
      return await run<boolean>({ digest: digest(password, salt), hash: known.slice(SALT_LENGTH), cost })
    },
    isWeak (stored) {
      return Number(stored.split('$')[2]) < cost
    },
    async close () {
      await (await opened.peek())?.close()
    }
  }
}
