import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { groupAddress } from '../lib/sign-in/addresses.ts'
import type { Counter } from '../lib/sign-in/counter.ts'
import { IdentityError } from '../lib/errors.ts'
import { hashToken } from '../lib/tokens/tokens.ts'
import { countWith } from './attempts.ts'

/** One account from everywhere, and one address for all accounts, may be tried so many times as often. */
const WIDE = 10
/** And one address may begin so many sign-ins for each that it may try for one account: an office has one address. */
const BEGUN = 100

/** Each throws ErrLimit when there were too many. */
export interface SignInLimits {
  /** An attempt at the password of an account, or without one at a code. */
  guess (request: FastifyRequest, account?: string): Promise<void>
  /** A sign-in that is begun, which anyone may do: it is kept until it ends or expires. */
  begin (request: FastifyRequest): Promise<void>
}

/**
 * Bounds how often passwords and codes can be guessed: from one address for one account tightly, and for an account or an
 * address as a whole loosely, so that a stranger who guesses does not lock the user out. And how much a stranger can make us keep.
 * @param perMinute false: no limit
 */
export async function createSignInLimits (app: FastifyInstance, perMinute: number | false, counter: Counter): Promise<SignInLimits> {
  if (perMinute === false) return { guess: async () => {}, begin: async () => {} }
  await app.register(rateLimit, { global: false, store: countWith(counter) })
  // By their hashes: what was typed may be as long as a form.
  const accounts = new WeakMap<FastifyRequest, string>()
  const account = (request: FastifyRequest) => accounts.get(request) ?? ''
  const count = (max: number, keyGenerator: (request: FastifyRequest) => string) =>
    app.createRateLimit({ max, timeWindow: '1 minute', keyGenerator, allowList: [] })
  const begun = count(perMinute * BEGUN, (request) => `begin ${groupAddress(request.ip)}`)
  const address = count(perMinute * WIDE, (request) => `address ${groupAddress(request.ip)}`)
  const guesses = [
    count(perMinute, (request) => `guess ${groupAddress(request.ip)} ${account(request)}`),
    count(perMinute * WIDE, (request) => `account ${account(request)}`)
  ]

  async function hold (limit: typeof address, request: FastifyRequest): Promise<void> {
    const { isAllowed, ...state } = await limit(request)
    if (isAllowed || !('isExceeded' in state) || !state.isExceeded) return
    const seconds = Math.max(1, state.ttlInSeconds)
    throw new IdentityError('ErrLimit', `too many attempts, try again in ${seconds} s`, { headers: { 'retry-after': String(seconds) } })
  }

  return {
    async guess (request, name) {
      if (name !== undefined) accounts.set(request, hashToken(name.toLowerCase()))
      for (const limit of name === undefined ? [address] : [address, ...guesses]) await hold(limit, request)
    },
    begin: (request) => hold(begun, request)
  }
}
