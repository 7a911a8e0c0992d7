import type { FastifyRequest } from 'fastify'
import { WINDOW, toCounted, toUserName } from '../lib/throttling/account-limits.ts'
import { NETWORK, groupAddress, groupNetwork, isInNetwork } from '../lib/throttling/networks.ts'
import type { Counter } from '../lib/throttling/counter.ts'
import type { KnownBrowser } from '../lib/throttling/known-browsers.ts'
import { IdentityError } from '../lib/errors.ts'

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
export function createSignInLimits (perMinute: number | false, counter: Counter): SignInLimits {
  if (perMinute === false) return { guess: async () => {}, begin: async () => {}, refuse: async () => {} }

  async function enforceOne (kind: string, key: string, most: number, account?: string): Promise<void> {
    const { current, ttl } = await counter.count(kind, key, WINDOW, account === undefined ? undefined : { account, most })
    if (current <= most) return
    const seconds = Math.max(1, Math.ceil(ttl / 1000))
    throw new IdentityError('ErrLimit', `too many attempts, try again in ${seconds} s`, { headers: { 'retry-after': String(seconds) } })
  }

  /**
   * Counts for the address, and for the IPv6 network that it belongs to.
   * @param account whose limit it is
   */
  async function enforce (kind: { address: string, network: string }, { ip }: FastifyRequest, most: number, account?: string): Promise<void> {
    const toKey = (from: string) => account === undefined ? from : `${from} ${account}`
    await enforceOne(kind.address, toKey(groupAddress(ip)), most, account)
    if (isInNetwork(ip)) await enforceOne(kind.network, toKey(groupNetwork(ip)), most * NETWORK, account)
  }

  return {
    async guess (request, account, known) {
      // The key has the epoch too: attempts with a cookie from before a password change are counted separately.
      if (known !== undefined) return await enforceOne('known', `${known.user_id} ${known.epoch}`, perMinute, toCounted(toUserName(known.user_id)))
      await enforce({ address: 'address', network: 'network' }, request, perMinute * WIDE)
      if (account !== undefined) await enforce({ address: 'guess', network: 'network-guess' }, request, perMinute, toCounted(account))
    },
    begin: (request) => enforce({ address: 'begin', network: 'network-begin' }, request, perMinute * STARTED),
    refuse: (request) => enforce({ address: 'refused', network: 'network-refused' }, request, perMinute * WIDE)
  }
}
