import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { NETWORK, groupAddress, groupNetwork, isInNetwork } from '../lib/throttling/networks.ts'
import type { Counter } from '../lib/throttling/counter.ts'
import type { KnownBrowser } from '../lib/throttling/known-browsers.ts'
import { IdentityError } from '../lib/errors.ts'
import { hashToken } from '../lib/crypto/random-token.ts'
import { countWith } from './attempts.ts'

/** The limit per address, as a multiple of the limit per account and address. */
const WIDE = 10
/** The limit of started sign-ins per address, as a multiple of the same. A whole office may share an address. */
const STARTED = 100

/** Each method counts an attempt, and throws ErrLimit above the limit. */
export interface SignInLimits {
  /**
   * An attempt at an account's password; without an account, at a user code or a link.
   * @param known the account's entry in the browser's cookie. Its attempts are counted only with those of the user's other known
   *   browsers, so that others at the same address cannot use up the limit
   */
  guess (request: FastifyRequest, account?: string, known?: KnownBrowser): Promise<void>
  /** The start of a sign-in. Anyone may start one, and it is stored until it ends or expires. */
  begin (request: FastifyRequest): Promise<void>
  /** A token that nobody was to send, after it was refused. */
  refuse (request: FastifyRequest): Promise<void>
}

/**
 * Limits how fast one address may guess passwords and codes: strictly per account, loosely overall. The store counts the failures
 * at one account from all addresses (lib/throttling/attempts.ts). It does so after these limits, which therefore also limit how
 * much an anonymous caller can make us store.
 * @param perMinute false: no limit
 */
export async function createSignInLimits (app: FastifyInstance, perMinute: number | false, counter: Counter): Promise<SignInLimits> {
  if (perMinute === false) return { guess: async () => {}, begin: async () => {}, refuse: async () => {} }
  await app.register(rateLimit, { global: false, store: countWith(counter) })
  const keys = new WeakMap<FastifyRequest, string>()
  const key = (request: FastifyRequest) => keys.get(request) ?? ''
  const count = (max: number, keyGenerator: (request: FastifyRequest) => string) =>
    app.createRateLimit({ max, timeWindow: '1 minute', keyGenerator, allowList: [] })
  const starts = count(perMinute * STARTED, (request) => `begin ${groupAddress(request.ip)}`)
  const networkStarts = count(perMinute * STARTED * NETWORK, (request) => `network-begin ${groupNetwork(request.ip)}`)
  const refusals = count(perMinute * WIDE, (request) => `refused ${groupAddress(request.ip)}`)
  const networkRefusals = count(perMinute * WIDE * NETWORK, (request) => `network-refused ${groupNetwork(request.ip)}`)
  const address = count(perMinute * WIDE, (request) => `address ${groupAddress(request.ip)}`)
  const network = count(perMinute * WIDE * NETWORK, (request) => `network ${groupNetwork(request.ip)}`)
  const guess = count(perMinute, (request) => `guess ${groupAddress(request.ip)} ${key(request)}`)
  const networkGuess = count(perMinute * NETWORK, (request) => `network-guess ${groupNetwork(request.ip)} ${key(request)}`)
  // The key has the epoch too: attempts with a cookie from before a password change are counted separately.
  const knownGuess = count(perMinute, (request) => `known ${key(request)}`)

  async function enforceOne (limit: typeof address, request: FastifyRequest): Promise<void> {
    const { isAllowed, ...state } = await limit(request)
    if (isAllowed || !('isExceeded' in state) || !state.isExceeded) return
    const seconds = Math.max(1, state.ttlInSeconds)
    throw new IdentityError('ErrLimit', `too many attempts, try again in ${seconds} s`, { headers: { 'retry-after': String(seconds) } })
  }

  /** Counts for the address, and for the IPv6 network that it belongs to. */
  async function enforce (limit: typeof address, networkLimit: typeof address, request: FastifyRequest): Promise<void> {
    await enforceOne(limit, request)
    if (isInNetwork(request.ip)) await enforceOne(networkLimit, request)
  }

  return {
    async guess (request, account, known) {
      if (known !== undefined) {
        keys.set(request, `${known.user_id} ${known.epoch}`)
        return await enforceOne(knownGuess, request)
      }
      await enforce(address, network, request)
      if (account === undefined) return
      // Hashed, because the typed account may be as long as a form allows.
      keys.set(request, hashToken(account.toLowerCase()))
      await enforce(guess, networkGuess, request)
    },
    begin: (request) => enforce(starts, networkStarts, request),
    refuse: (request) => enforce(refusals, networkRefusals, request)
  }
}
