import { compareSync, getRounds, hashSync } from 'bcryptjs'
import type { PasswordJob } from './passwords.ts'

/** Runs in a worker thread, where the synchronous calls are the fastest and block nobody. */
export default function run ({ digest, hash, cost }: PasswordJob): string | boolean {
  if (hash === undefined) return hashSync(digest, cost)
  if (compareSync(digest, hash)) return true
  // A hash of a lower cost is cheaper to compare, which would reveal that the account exists. With one hash of each cost
  // in between, the work is that of today's cost: 2^c + (2^c + 2^(c+1) + ... + 2^(cost-1)) = 2^cost.
  for (let lower = getRounds(hash); lower < cost; lower++) hashSync(digest, lower)
  return false
}
