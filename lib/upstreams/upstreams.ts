import type { Upstream, UpstreamKind } from '../../schemas/upstream.ts'
import type { Base } from '../base.ts'
import { IdentityError } from '../errors.ts'
import { Lazy } from '../lazy.ts'
import type { Outbound } from '../outbound/fetcher.ts'
import type { Outages } from '../work/outage.ts'
import { isOfDomain } from '../records/user.ts'
import type { Turn } from '../fair-queue.ts'
import { type Attempt, createUpstreamAttempts } from './attempts.ts'
import { KEY_GAP, createCalls } from './calls.ts'
import { readRoles } from './claimed-roles.ts'
import { type Claimed, isOfTenant, readClaims } from './claims.ts'
import { describeFailure, isWrongCode, toFailure } from './describe-failure.ts'
import { UpstreamError, type UpstreamRefusal } from './failure.ts'
import { type Intent, asksToSignIn } from './intent.ts'
import { findIssuer, nameUpstream, sendsLogouts } from './kinds.ts'
import { type LogoutClaims, verifyLogoutToken } from './logout-token.ts'
import { type Enter, createPlaces } from './places.ts'
import { allows } from './policy.ts'
import type { Authorization, Claims, Provider } from './provider.ts'
import { readMessage } from '../failure.ts'

/** Milliseconds for all calls of a sign-in together. */
const DEADLINE = 5_000

/** Characters of a code or a state, and of a name that came with a form. */
const LONGEST = 4096
const LONGEST_NAME = 200

/** Logout tokens that wait at once for the keys of a provider. They share the fetches, so each costs a connection and no more. */
const LOGOUTS = 200

type Places = ReturnType<typeof createPlaces>

/** A provider with what is kept of it. */
interface Opened {
  upstream: Upstream
  provider: Lazy<Provider>
  places: Places
  /** Of logout tokens, which anybody may send: they take none from a sign-in. */
  logouts: Places
}

export interface UpstreamParts extends Pick<Base, 'store' | 'now' | 'box'> {
  outbound: Pick<Outbound, 'read'>
  upstreams: readonly Upstream[]
  /** Notes whether the providers can be used. */
  outages: Pick<Outages, 'of'>
  /** Is called for each sign-in that a provider could not be used for. */
  onDown?: () => void
  deadline?: number
}

/** The answer of a provider, judged. */
export interface Answered {
  upstream: Upstream
  intent: Intent
  claimed: Claimed
}

async function open (upstream: Upstream, { outbound, now }: Pick<UpstreamParts, 'outbound' | 'now'>): Promise<Provider> {
  const calls = createCalls(outbound, now)
  if (upstream.kind === 'github') return (await import('./github.ts')).createGithub(upstream, calls)
  return await (await import('./openid.ts')).createOpenid(upstream, calls, now)
}

function prepare (upstream: Upstream, { outbound, now, deadline = DEADLINE }: Pick<UpstreamParts, 'outbound' | 'now' | 'deadline'>): Opened {
  return {
    upstream,
    provider: new Lazy(async () => await open(upstream, { outbound, now })),
    places: createPlaces(upstream.id, deadline),
    logouts: createPlaces(upstream.id, deadline + KEY_GAP, LOGOUTS)
  }
}

/** Checks whether a provider can be used. @throws Error with the reason */
export async function testUpstream (upstream: Upstream, parts: Pick<UpstreamParts, 'outbound' | 'now'>): Promise<void> {
  const provider = await open(upstream, parts)
  const signal = AbortSignal.timeout(DEADLINE)
  await provider.check(async () => signal).catch((error: unknown) => {
    const reason = describeFailure(error)
    throw new Error(`the upstream ${upstream.id} cannot be used: ${reason === 'Error' ? readMessage(error) : reason}`)
  })
}

/** The domains of an upstream narrow who may sign in, and prove nothing. @throws UpstreamError `domain` */
function checkDomain ({ domains }: Upstream, { address, seen }: Claimed): void {
  const known = address ?? seen
  if (domains !== undefined && (known === undefined || !isOfDomain(known, domains))) throw new UpstreamError('domain')
}

/**
 * What an answer says of a person.
 * @param name that came with the form
 * @throws UpstreamError `tenant`, `domain`, `roles`, `down`
 */
function judge (upstream: Upstream, claims: Claims, name: string | undefined, time: number): Claimed {
  if (!isOfTenant(upstream, claims)) throw new UpstreamError('tenant')
  const claimed = readClaims(upstream, name === undefined ? claims : { name, ...claims })
  if (claimed === null) throw new UpstreamError('down')
  try {
    checkDomain(upstream, claimed)
    const roles = readRoles(upstream, claims, time)
    return roles === undefined ? claimed : { ...claimed, roles }
  } catch (error) {
    if (error instanceof UpstreamError) error.claimed = claimed
    throw error
  }
}

/** Why the provider has sent no code: it says so only to those who know the state. */
function toRefusal ({ intent }: Attempt, params: URLSearchParams): UpstreamRefusal {
  if (intent.kind === 'renew') return 'unrenewed'
  return params.get('error') === 'access_denied' ? 'refused' : 'down'
}

type Work<T> = (provider: Provider, enter: Enter) => Promise<T>

/** Creates the function that uses a provider in turn with others, and notes whether it can be used. */
function createUse ({ outages, onDown = () => {} }: Pick<UpstreamParts, 'outages' | 'onDown'>) {
  /** @throws UpstreamError `busy`, `down`; and where the caller has disconnected */
  return async function use<T> ({ upstream, provider, places }: Opened, turn: Turn, work: Work<T>): Promise<T> {
    const outage = outages.of('upstream', upstream.id)
    let isCalled = false
    try {
      const answer = await places.run(turn, async (enter) => await work(await provider.get(), async () => {
        isCalled = true
        return await enter()
      }))
      // What the cache answers says nothing about the provider.
      if (isCalled) outage.succeed()
      return answer
    } catch (error) {
      if (error instanceof UpstreamError || error instanceof IdentityError) throw error
      // Anybody can bring a code that the provider has not given.
      if (!isWrongCode(error)) {
        outage.fail(toFailure(error))
        onDown()
      }
      throw new UpstreamError('down', error)
    }
  }
}

/** The beginning of an authorization request. */
export interface Begin extends Pick<Authorization, 'redirectUri' | 'hint' | 'asksAccount' | 'maxAge'> {
  /** The secret of the browser. */
  secret: string
  intent: Intent
  /** The turn of the caller among the calls of the provider. */
  turn?: Turn | undefined
}

/** Sends people to other providers, and judges the answers. */
export function createUpstreams (parts: UpstreamParts) {
  const { now, upstreams, outages } = parts
  const attempts = createUpstreamAttempts(parts)
  const use = createUse(parts)
  const opened = new Map(upstreams.map((upstream) => [upstream.id, prepare(upstream, parts)]))

  /** @throws UpstreamError `off` */
  function require (id: string, client_id?: string): Opened {
    const found = opened.get(id)
    if (found === undefined || !allows(found.upstream, client_id)) throw new UpstreamError('off')
    return found
  }

  /** Spends an attempt, after it has a place: whoever finds none brings the answer again. */
  async function redeem (one: Opened, attempt: Attempt, params: URLSearchParams, turn: Turn): Promise<Claimed> {
    if (params.has('error')) {
      await attempts.spend(attempt)
      throw new UpstreamError(toRefusal(attempt, params))
    }
    const url = new URL(`${attempt.redirect_uri}?${params}`)
    const claims = await use(one, turn, async (provider, enter) => {
      await enter()
      await attempts.spend(attempt)
      return await provider.redeem({ ...attempt, url }, enter)
    })
    return judge(one.upstream, claims, attempt.name, now())
  }

  return {
    /** The upstreams that people may sign in with: to this client, or to the pages of the account. */
    list: (client_id?: string): { id: string, kind: UpstreamKind, name: string }[] => (
      upstreams.filter((upstream) => allows(upstream, client_id)).map((upstream) => ({ id: upstream.id, kind: upstream.kind, name: nameUpstream(upstream) }))),

    /** Whether the provider may be asked now whether a session goes on: see createUpstreamAttempts. */
    mayRenew: attempts.mayRenew,

    /** The settings of an upstream. @throws UpstreamError `off`: also when it is not for this client */
    require: (id: string, client_id?: string): Upstream => require(id, client_id).upstream,

    /**
     * Begins an authorization.
     * @returns the URL at the provider
     * @throws UpstreamError `off`, `busy`, `down`
     */
    async begin (id: string, { secret, intent, turn = {}, ...asked }: Begin): Promise<string> {
      const one = require(id)
      const made = await attempts.begin(secret, { upstream: id, redirectUri: asked.redirectUri, intent })
      const authorization = { ...made, ...asked, isSilent: intent.kind === 'renew', isFresh: asksToSignIn(intent) }
      return await use(one, turn, async (provider, enter) => await provider.toAuthorization(authorization, enter))
    },

    /**
     * Verifies a logout token of a provider. It uses none of the places of sign-ins. Callers that wait for keys take turns by network.
     * @throws LogoutTokenError, UpstreamError `off` for an upstream without such tokens, `busy`, `down`
     */
    async verifyLogout (id: string, token: string, turn: Turn = {}): Promise<{ upstream: Upstream, issuer: string, claims: LogoutClaims }> {
      const { upstream, provider: lazy, logouts } = require(id)
      if (!sendsLogouts(upstream)) throw new UpstreamError('off')
      const issuer = findIssuer(upstream)
      const readKeys = async (kid: string | undefined) => {
        try {
          const { readLogoutKeys } = await lazy.get()
          if (readLogoutKeys === undefined) throw new UpstreamError('off')
          return await logouts.run(turn, async (enter) => await readLogoutKeys(kid, enter))
        } catch (error) {
          if (error instanceof UpstreamError || error instanceof IdentityError) throw error
          outages.of('upstream', id).fail(toFailure(error))
          throw new UpstreamError('down', error)
        }
      }
      return { upstream, issuer, claims: await verifyLogoutToken(token, { issuer, clientId: upstream.clientId }, readKeys) }
    },

    /** Keeps what comes with a form only: the name. */
    async keepName (id: string, state: string, name: string): Promise<void> {
      if (state.length <= LONGEST && name !== '') await attempts.keepName(id, state, name.slice(0, LONGEST_NAME))
    },

    /**
     * Judges the answer of a provider, once. After `busy` the browser may bring it again.
     * @param secret of the browser that brings it
     * @throws UpstreamError, with the place to go back to where it is known
     */
    async complete (id: string, params: URLSearchParams, secret: string | undefined, turn: Turn = {}): Promise<Answered> {
      const [state = '', ...more] = params.getAll('state')
      if (state === '' || more.length > 0 || state.length > LONGEST) throw new UpstreamError('over')
      const attempt = await attempts.require(id, state, secret)
      const { intent } = attempt
      try {
        const one = require(id)
        const { created_at: asked_at } = attempt
        return { upstream: one.upstream, intent, claimed: { ...await redeem(one, attempt, params, turn), asked_at } }
      } catch (error) {
        if (error instanceof UpstreamError) error.place = intent.place
        throw error
      }
    }
  }
}

export type Upstreams = ReturnType<typeof createUpstreams>
