import { compareSync, getRounds, hashSync } from 'bcryptjs'
import { readHash } from '../hashes/foreign.ts'
import type { PasswordJob } from './passwords.ts'

/** The least cost of bcrypt, about a millisecond. */
const LEAST = 4

/** The weight of a new duration in the average. */
const WEIGHT = 1 / 8

/** Milliseconds of one iteration of bcrypt in this thread, once measured. */
let speed: number | undefined

const { threadCpuUsage } = process as { threadCpuUsage?: () => { user: number, system: number } }

/** Milliseconds that this thread has worked: time in which others have the processor does not count. Node before 23.9 has the clock only. */
function readTime (): number {
  if (threadCpuUsage === undefined) return performance.now()
  const { user, system } = threadCpuUsage()
  return (user + system) / 1_000
}

/** Does the work of bcrypt at a cost, and measures it. */
function spend (digest: string, cost: number): void {
  const start = readTime()
  hashSync(digest, cost)
  const measured = (readTime() - start) / 2 ** cost
  speed = speed === undefined ? measured : speed + WEIGHT * (Math.min(measured, 2 * speed) - speed)
}

/**
 * Makes up for a comparison that took less time than one with a hash of our own: the difference would tell who was imported. The rest is
 * made of hashes of lower costs, as a number is made of powers of two.
 * @param start when the comparison began
 */
function makeUp (start: number, cost: number): void {
  // To learn the speed; it counts as a part of the rest.
  if (speed === undefined) spend('', Math.min(cost, 8))
  const rest = 2 ** cost - (readTime() - start) / speed!
  for (let lower = cost - 1, left = rest; lower >= LEAST; lower--) {
    if (left < 2 ** lower) continue
    left -= 2 ** lower
    spend('', lower)
  }
}

async function verifyForeign ({ foreign, password, cost }: Extract<PasswordJob, { foreign: string }>): Promise<boolean> {
  const start = readTime()
  if (await readHash(foreign).verify(password)) return true
  makeUp(start, cost)
  return false
}

/** The worker thread's job. The synchronous calls are the fastest, and block only this thread. */
export default function run (job: PasswordJob): string | boolean | Promise<boolean> {
  if ('foreign' in job) return verifyForeign(job)
  const { digest, hash, cost } = job
  if (hash === undefined) return hashSync(digest, cost)
  if (compareSync(digest, hash)) return true
  // Comparing with a hash of a lower cost is faster, which would reveal that the account exists. One more hash of each cost from
  // that cost on makes up for the difference: 2^c + (2^c + 2^(c+1) + ... + 2^(cost-1)) = 2^cost.
  for (let lower = getRounds(hash); lower < cost; lower++) hashSync(digest, lower)
  return false
}
