import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { groupAddress } from '../lib/sign-in/addresses.ts'
import type { Counter } from '../lib/sign-in/counter.ts'
import { IdentityError } from '../lib/errors.ts'
import { hashToken } from '../lib/tokens/tokens.ts'
import { countWith } from './attempts.ts'

/** The limit per account, and the one per address, as a multiple of the limit per account and address. */
const WIDE = 10
/** The limit of started sign-ins per address, as a multiple of the same. A whole office may share an address. */
const STARTED = 100

/** Each method counts an attempt, and throws ErrLimit above the limit. */
export interface SignInLimits {
  /** An attempt at an account's password; without an account, at a user code. */
  guess (request: FastifyRequest, account?: string): Promise<void>
  /** The start of a sign-in. Anyone may start one, and it is stored until it ends or expires. */
  begin (request: FastifyRequest): Promise<void>
}

/**
 * Limits guesses at passwords and codes: strictly per account and address, loosely per account and per address, so that an
 * attacker cannot lock a user out. Also limits how many sign-ins an anonymous caller can make us store.
 * @param perMinute false: no limit
 */
export async function createSignInLimits (app: FastifyInstance, perMinute: number | false, counter: Counter): Promise<SignInLimits> {
  if (perMinute === false) return { guess: async () => {}, begin: async () => {} }
  await app.register(rateLimit, { global: false, store: countWith(counter) })
  // Hashed, because the typed account may be as long as a form allows.
  const accounts = new WeakMap<FastifyRequest, string>()
  const account = (request: FastifyRequest) => accounts.get(request) ?? ''
  const count = (max: number, keyGenerator: (request: FastifyRequest) => string) =>
    app.createRateLimit({ max, timeWindow: '1 minute', keyGenerator, allowList: [] })
  const starts = count(perMinute * STARTED, (request) => `begin ${groupAddress(request.ip)}`)
  const address = count(perMinute * WIDE, (request) => `address ${groupAddress(request.ip)}`)
  const guesses = [
    count(perMinute, (request) => `guess ${groupAddress(request.ip)} ${account(request)}`),
    count(perMinute * WIDE, (request) => `account ${account(request)}`)
  ]

  async function enforce (limit: typeof address, request: FastifyRequest): Promise<void> {
    const { isAllowed, ...state } = await limit(request)
    if (isAllowed || !('isExceeded' in state) || !state.isExceeded) return
    const seconds = Math.max(1, state.ttlInSeconds)
    throw new IdentityError('ErrLimit', `too many attempts, try again in ${seconds} s`, { headers: { 'retry-after': String(seconds) } })
  }

  return {
    async guess (request, name) {
      if (name !== undefined) accounts.set(request, hashToken(name.toLowerCase()))
      for (const limit of name === undefined ? [address] : [address, ...guesses]) await enforce(limit, request)
    },
    begin: (request) => enforce(starts, request)
  }
}
