import { compareSync, encodeBase64, getRounds, hashSync } from 'bcryptjs'
import { readHash } from '../hashes/foreign.ts'
import type { PasswordJob } from './passwords.ts'

/** The least cost of bcrypt, about a millisecond. */
const LEAST = 4

/** The weight of a new duration in the average. */
const WEIGHT = 1 / 8

/** Milliseconds of one iteration of bcrypt in this thread. 0: not measured yet. */
let speed = 0

/** Never written, so that a wait for it ends at its timeout. */
const CELL = new Int32Array(new SharedArrayBuffer(4))

/** Milliseconds of processor time that this thread has taken. */
function readTime (): number {
  // The kernel updates the processor time of a thread when the thread stops, and otherwise every few milliseconds only.
  Atomics.wait(CELL, 0, 0, 0.01)
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** Does the work of a hash of this cost, and learns the speed of bcrypt from it. */
function measure<T> (cost: number, work: () => T): T {
  const start = readTime()
  const result = work()
  const measured = (readTime() - start) / 2 ** cost
  // An outlier, such as the first hash of a thread, must not make the thread look slow.
  speed = speed === 0 ? measured : speed + WEIGHT * (Math.min(measured, 2 * speed) - speed)
  return result
}

/**
 * Makes up for a comparison that took less time than one with a hash of our own: the difference would tell who was imported. The rest is
 * made of hashes of lower costs, as a number is made of powers of two. The thread spins for what is less than the cheapest hash.
 * @param start when the comparison began
 */
function makeUp (start: number, cost: number): void {
  // Counts as a part of the rest.
  if (speed === 0) measure(Math.min(cost, 8), () => hashSync('', Math.min(cost, 8)))
  let left = 2 ** cost - (readTime() - start) / speed
  const end = performance.now() + left * speed
  for (let lower = cost - 1; lower >= LEAST; lower--) {
    if (left < 2 ** lower) continue
    left -= 2 ** lower
    hashSync('', lower)
  }
  while (performance.now() < end);
}

function verifyForeign ({ foreign, password, cost }: Extract<PasswordJob, { foreign: string }>): boolean {
  const start = readTime()
  if (readHash(foreign).verify(password)) return true
  makeUp(start, cost)
  return false
}

function verifyOwn (digest: string, hash: string, cost: number): boolean {
  const rounds = getRounds(hash)
  if (measure(rounds, () => compareSync(digest, hash))) return true
  // Comparing with a hash of a lower cost is faster, which would reveal that the account exists. One more hash of each cost from
  // that cost on makes up for the difference: 2^c + (2^c + 2^(c+1) + ... + 2^(cost-1)) = 2^cost.
  for (let lower = rounds; lower < cost; lower++) hashSync(digest, lower)
  return false
}

/** Bytes of a salt of bcrypt. */
const SALT_BYTES = 16

function stretch ({ codes, salt, cost }: Extract<PasswordJob, { codes: readonly string[] }>): string[] {
  const full = `$2b$${String(cost).padStart(2, '0')}$${encodeBase64(Buffer.from(salt, 'base64url'), SALT_BYTES)}`
  return codes.map((code) => hashSync(code, full))
}

/** The worker thread's job. The synchronous calls are the fastest, and block only this thread. */
export default function run (job: PasswordJob): string | boolean | string[] {
  if ('foreign' in job) return verifyForeign(job)
  if ('codes' in job) return stretch(job)
  const { digest, hash, cost } = job
  return hash === undefined ? hashSync(digest, cost) : verifyOwn(digest, hash, cost)
}
