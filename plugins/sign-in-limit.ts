import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { groupAddress } from '../lib/addresses.ts'
import type { Counter } from '../lib/counter.ts'
import { IdentityError } from '../lib/errors.ts'
import { hashToken } from '../lib/tokens.ts'
import { countWith } from './attempts.ts'

/** One account from everywhere, and one address for all accounts, may be tried so many times as often. */
const WIDE = 10

/** Throws ErrLimit when there were too many attempts. */
export type SignInLimit = (request: FastifyRequest, account?: string) => Promise<void>

/**
 * Bounds how often passwords and codes can be guessed: from one address for one account tightly, and for an account or an
 * address as a whole loosely, so that a stranger who guesses does not lock the user out.
 * @param perMinute false: no limit
 */
export async function createSignInLimit (app: FastifyInstance, perMinute: number | false, counter: Counter): Promise<SignInLimit> {
  if (perMinute === false) return async () => {}
  await app.register(rateLimit, { global: false, store: countWith(counter) })
  // By their hashes: what was typed may be as long as a form.
  const accounts = new WeakMap<FastifyRequest, string>()
  const account = (request: FastifyRequest) => accounts.get(request) ?? ''
  const count = (max: number, keyGenerator: (request: FastifyRequest) => string) =>
    app.createRateLimit({ max, timeWindow: '1 minute', keyGenerator, allowList: [] })
  const address = count(perMinute * WIDE, (request) => `address ${groupAddress(request.ip)}`)
  const guesses = [
    count(perMinute, (request) => `guess ${groupAddress(request.ip)} ${account(request)}`),
    count(perMinute * WIDE, (request) => `account ${account(request)}`)
  ]
  return async function signInLimit (request, name) {
    if (name !== undefined) accounts.set(request, hashToken(name.toLowerCase()))
    for (const limit of name === undefined ? [address] : [address, ...guesses]) {
      const { isAllowed, ...state } = await limit(request)
      if (isAllowed || !('isExceeded' in state) || !state.isExceeded) continue
      const seconds = Math.max(1, state.ttlInSeconds)
      throw new IdentityError('ErrLimit', `too many attempts, try again in ${seconds} s`, { headers: { 'retry-after': String(seconds) } })
    }
  }
}
