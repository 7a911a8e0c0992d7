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
  /** Compares; without a stored hash it takes the same time and answers false, so that an unknown account tells nothing. */
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

  // Compared with when there is no such account; nobody's password.
  let nobody: Promise<string> | undefined

  async function hash (password: string): Promise<string> {
    const salt = randomText(SALT_LENGTH)
    return salt + await run<string>({ digest: digest(password, salt), cost })
  }

  function hashNobody (): Promise<string> {
    nobody ??= hash(randomText(32)).catch((error: unknown) => {
      // A full queue refuses this one, not every unknown account that comes later.
      nobody = undefined
      throw error
    })
    return nobody
  }

  return {
    hash,
    async verify (password, stored) {
      const known = stored ?? await hashNobody()
      const salt = known.slice(0, SALT_LENGTH)
      const same = await run<boolean>({ digest: digest(password, salt), hash: known.slice(SALT_LENGTH), cost })
      return same && stored !== undefined
    },
    isWeak (stored) {
      return Number(stored.slice(SALT_LENGTH).split('$')[2]) < cost
    },
    async close () {
      await (await opened.peek())?.close()
    }
  }
}
