import { createHmac } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { extname } from 'node:path'
import type { Piscina } from 'piscina'
import { FairQueue, type Turn } from '../fair-queue.ts'
import { randomText } from '../ids.ts'
import { Lazy } from '../lazy.ts'
import type { MaybePromise } from '../store/port.ts'

/** Characters of salt before the HMAC. bcrypt adds 128 bits of its own. */
const SALT_LENGTH = 8

/** Begins a stored hash of another program (lib/hashes/). Our own begins with its salt, which has letters and digits only. */
const FOREIGN = '$'

/** Stored instead of a hash. No password matches it, and comparing one takes as long as with a hash. */
export const NO_PASSWORD = ''

/** A stored hash of our own. */
const OWN = /^[0-9A-Za-z]{8}\$2b\$(?<cost>\d\d)\$[./A-Za-z0-9]{53}$/

/** Hashes that may wait for a thread. MAX_WAIT is reached before that, except at a very low cost. */
const DEFAULT_QUEUE = 10_000

/** Milliseconds a hash may wait for a thread. */
export const MAX_WAIT = 10_000

/** Estimated iterations of bcrypt per millisecond, until hashes are measured. */
const SPEED = 16

/**
 * The cost of random codes is lower than that of passwords, which people choose, so that a set of ten takes as long as two or three passwords. It is
 * never lower than the least that is advised for passwords (OWASP Password Storage), unless that of passwords is.
 */
const CODE_COST_LESS = 2
const CODE_COST_LEAST = 10

/** The most turns that one comparison counts as. */
const MOST_TURNS = 100

/** The weight of a new duration in the average of its scheme. */
const WEIGHT = 1 / 8

/** A message to a worker thread (password-worker.ts). */
export type PasswordJob = {
  digest: string
  /** The hash to compare with. Absent: make one. */
  hash?: string
  cost: number
} | {
  /** The hash of another program to compare with. */
  foreign: string
  password: string
  cost: number
} | {
  /** Random codes, each hashed with the same salt: 16 bytes as base64url. */
  codes: readonly string[]
  salt: string
  cost: number
}

/** A hash of our own: its cost, estimated milliseconds of a verification, and its form as in lib/hashes. Null for any other text. */
export function readOwnHash (stored: string): { cost: number, work: number, form: string } | null {
  const text = OWN.exec(stored)?.groups?.['cost']
  const cost = Number(text)
  return text === undefined || cost < 4 ? null : { cost, work: 2 ** cost / SPEED, form: `~${SALT_LENGTH}$2b$${text}$~53` }
}

interface PasswordOptions {
  /** bcrypt's cost: each step doubles the work. */
  cost: number
  /** Hashes that may wait in all processes together. */
  queue?: number
  /** Processes on this machine, including this one. Each uses an equal share of the cores and of the queue. */
  processes?: number
  /**
   * The hash to compare with for an account that has none: one of another program for as many accounts as have such hashes, and always
   * the same for one account (lib/hashes/decoys.ts). Absent or undefined: a hash of our own.
   */
  chooseDecoy?: (account: string) => MaybePromise<string | undefined>
}

/** Makes and compares salted hashes of passwords, and of random codes, in worker threads. */
export interface Passwords {
  /** Resolves to the hash in its stored form. Rejects with ErrBusy when it would wait too long (lib/fair-queue.ts). */
  hash (password: string, turn?: Turn): Promise<string>
  /**
   * Compares a password with a stored hash. A missing hash takes the same work as one that exists, and so does a hash of a lower cost
   * that does not match, so timing does not reveal which accounts exist. Rejects with ErrBusy as `hash` does.
   * @param account what was typed: it chooses the work for a missing hash
   */
  verify (password: string, stored: string | undefined, turn?: Turn, account?: string): Promise<boolean>
  /** The cost of new hashes of random codes. */
  readonly codeCost: number
  /**
   * Hashes random codes with one salt, in the same threads and the same queue. Rejects with ErrBusy as `hash` does.
   * @param salt 16 bytes as base64url, and the cost
   */
  stretch (codes: readonly string[], salt: Readonly<{ salt: string, cost: number }>, turn?: Turn): Promise<string[]>
  /** Whether the hash was made with a lower cost than the configured one, or by another scheme. */
  isWeak (stored: string): boolean
  /** The number of hashes that wait for a thread. */
  countWaiting (): number
  /** Milliseconds since a password was last hashed or compared: 0 while one is, Infinity if none was. */
  countRest (): number
  close (): Promise<void>
}

/** bcrypt truncates its input at 72 bytes and at a NUL character. An HMAC first makes every character count. */
function digest (password: string, salt: string): string {
  return createHmac('sha256', salt).update(password).digest('base64')
}

export function createPasswords ({ cost, queue: asked = DEFAULT_QUEUE, processes = 1, chooseDecoy }: PasswordOptions): Passwords {
  const places = Math.max(1, Math.floor(asked / processes))
  // One core stays free for the event loop.
  const threads = Math.max(1, Math.floor(availableParallelism() / processes) - 1)
  // Threads start at the first password and exit when idle, so that a service that hashes nothing pays nothing.
  const opened = new Lazy(async (): Promise<Piscina> => {
    const { Piscina } = await import('piscina')
    return new Piscina({
      filename: new URL(`./password-worker${extname(import.meta.url)}`, import.meta.url).href,
      minThreads: 0,
      maxThreads: threads,
      idleTimeout: 30_000,
      // Without the process's flags: --import would load its module in the threads too.
      execArgv: [],
      niceIncrement: process.platform === 'win32' ? 0 : 10
    })
  })

  const queue = new FairQueue({ what: 'password hashes', slots: threads, places, maxWait: MAX_WAIT, duration: 2 ** cost / SPEED })

  async function run<T> (job: PasswordJob, turn: Turn | undefined, turns?: number): Promise<T> {
    return await queue.run(async () => await (await opened.get()).run(job) as T, turn, turns)
  }

  /** The turns of work that takes this many iterations of bcrypt. */
  const toTurns = (iterations: number): number => Math.min(MOST_TURNS, Math.max(1, Math.round(iterations / 2 ** cost)))

  // Compared when there is no stored hash. It is well-formed, so that the comparison computes a full hash. No password matches it.
  const dummy = `${randomText(SALT_LENGTH)}$2b$${String(cost).padStart(2, '0')}$${randomText(53)}`

  /** Measured milliseconds per estimated one, by the scheme of another program. */
  const ratios = new Map<string, number>()

  const isForeign = (stored: string): boolean => stored.startsWith(FOREIGN)

  async function verifyOwn (password: string, hash: string, turn?: Turn): Promise<boolean> {
    return await run<boolean>({ digest: digest(password, hash.slice(0, SALT_LENGTH)), hash: hash.slice(SALT_LENGTH), cost }, turn)
  }

  async function verifyForeign (password: string, foreign: string, turn?: Turn): Promise<boolean> {
    const { findHash } = await import('../hashes/foreign.ts')
    const found = findHash(foreign)
    if (found === undefined) return await verifyOwn(password, dummy, turn)
    const { scheme, work } = found
    const ratio = ratios.get(scheme) ?? 1
    const turns = toTurns(work * ratio * SPEED)
    return await queue.run(async () => {
      const threads = await opened.get()
      const start = performance.now()
      const same = await threads.run({ foreign, password, cost } satisfies PasswordJob) as boolean
      // A refusal takes as long as with a hash of our own, or longer. A cheap hash says nothing about the expensive ones of its scheme.
      const estimated = Math.max(work, same ? 1 : 2 ** cost / SPEED)
      // An outlier, such as the start of a thread, must not make the scheme look slow.
      const measured = Math.min((performance.now() - start) / estimated, 2 * ratio)
      ratios.set(scheme, ratio + WEIGHT * (measured - ratio))
      return same
    }, turn, turns)
  }

  async function hash (password: string, turn?: Turn): Promise<string> {
    const salt = randomText(SALT_LENGTH)
    return salt + await run<string>({ digest: digest(password, salt), cost }, turn)
  }

  return {
    hash,
    async verify (password, stored, turn, account = '') {
      // Chosen for every account, so that it takes the same time for all.
      const decoy = await chooseDecoy?.(account)
      const hash = stored || decoy || dummy
      if (isForeign(hash)) return await verifyForeign(password, hash, turn) && hash === stored
      return await verifyOwn(password, hash, turn) && hash === stored
    },
    codeCost: Math.min(cost, Math.max(CODE_COST_LEAST, cost - CODE_COST_LESS)),
    async stretch (codes, salt, turn) {
      return await run<string[]>({ codes, ...salt }, turn, toTurns(codes.length * 2 ** salt.cost))
    },
    isWeak (stored) {
      return isForeign(stored) || Number(stored.split('$')[2]) < cost
    },
    countWaiting: () => queue.waiting,
    countRest: () => queue.rest,
    async close () {
      await queue.idle()
      // All jobs have ended. `close` of the pool would leave a timer of 30 seconds behind.
      await (await opened.peek())?.destroy()
    }
  }
}
