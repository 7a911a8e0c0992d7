import { compareSync, getRounds, hashSync } from 'bcryptjs'
import { readHash } from '../hashes/foreign.ts'
import type { PasswordJob } from './passwords.ts'

/** The worker thread's job. The synchronous calls are the fastest, and block only this thread. */
export default function run (job: PasswordJob): string | boolean | Promise<boolean> {
  if ('foreign' in job) return readHash(job.foreign).verify(job.password)
  const { digest, hash, cost } = job
  if (hash === undefined) return hashSync(digest, cost)
  if (compareSync(digest, hash)) return true
  // Comparing with a hash of a lower cost is faster, which would reveal that the account exists. One more hash of each cost from
  // that cost on makes up for the difference: 2^c + (2^c + 2^(c+1) + ... + 2^(cost-1)) = 2^cost.
  for (let lower = getRounds(hash); lower < cost; lower++) hashSync(digest, lower)
  return false
}
