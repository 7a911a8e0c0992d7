import { compareSync, hashSync } from 'bcryptjs'
import type { PasswordJob } from './passwords.ts'

/** Runs in a worker thread: the synchronous calls are the quickest there, and hold nobody up. */
export default function run ({ digest, hash, cost }: PasswordJob): string | boolean {
  return hash === undefined ? hashSync(digest, cost) : compareSync(digest, hash)
}
