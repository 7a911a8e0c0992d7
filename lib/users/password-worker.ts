import { compareSync, getRounds, hashSync } from 'bcryptjs'
import type { PasswordJob } from './passwords.ts'

/** The worker thread's job. The synchronous calls are the fastest, and block only this thread. */
export default function run ({ digest, hash, cost }: PasswordJob): string | boolean {
  if (hash === undefined) return hashSync(digest, cost)
  if (compareSync(digest, hash)) return true
  // Comparing with a hash of a lower cost is faster, which would reveal that the account exists. One more hash of each cost from
  // that cost on makes up for the difference: 2^c + (2^c + 2^(c+1) + ... + 2^(cost-1)) = 2^cost.
  for (let lower = getRounds(hash); lower < cost; lower++) hashSync(digest, lower)
  return false
}
