import { LRUCache } from 'lru-cache'
import type { TokenInfo } from '../../schemas/auth.ts'
import type { Clock } from '../clock.ts'
import { defined } from '../defined.ts'
import { IdentityError } from '../errors.ts'
import { holdsRole, type RoleNames } from '../roles.ts'
import type { MaybePromise } from '../store/port.ts'
import type { Caller } from '../tokens/tokens.ts'
import { hashToken } from '../crypto/random-token.ts'
import { readStrength } from '../tokens/strength.ts'
import { unavailable, type TokenInfoClient, type Verdict } from './token-info-client.ts'

interface RemoteTokensOptions {
  client: Pick<TokenInfoClient, 'ask'>
  /** Milliseconds, see schemas/remote.ts. */
  cacheTtl: number
  staleTtl: number
  cacheSize: number
  roles: RoleNames
  now: Clock
  /** Called with an error when the service becomes unavailable, and with undefined when it is available again. */
  onChange: (error: unknown | undefined) => void
}

/** A verdict, and the time when its request was sent. A later revocation is not reflected in it. */
type Answer = Verdict & { at: number }

/** A request in flight. A request that waits for the previous one about the same token has no `at` yet. */
interface Flight {
  at?: number
  answer: Promise<Answer>
}

/** The average number of characters in a good answer. With longer answers, fewer fit into the cache. */
const AVERAGE_ANSWER = 4096

/**
 * Checks tokens with a remote service. Replaces lib/tokens/tokens.ts in a guard.
 *
 * An answer is valid for `cacheTtl` from the time when its request was sent, whether it is cached or in flight. While the service is
 * unavailable, a good answer is valid for `staleTtl`. These two bound how long a revoked token is accepted. The caches are keyed by
 * the token's hash. Good and bad answers have separate caches, so that made-up tokens do not evict good answers.
 */
export class RemoteTokens {
  readonly #options: RemoteTokensOptions
  readonly #good: LRUCache<string, Answer & { text: string }>
  readonly #bad: LRUCache<string, Answer & { challenge: string }>
  readonly #flights = new Map<string, Flight>()
  #down = false

  constructor (options: RemoteTokensOptions) {
    const { cacheSize: max } = options
    this.#options = options
    this.#good = new LRUCache({ max, maxSize: max * AVERAGE_ANSWER, sizeCalculation: ({ text }) => text.length })
    this.#bad = new LRUCache({ max })
  }

  /**
   * Finds the caller of an access token. A cached answer is returned without a promise.
   * @throws ErrUnknown when the service refuses the token, ErrRsc (503) when it cannot be asked
   */
  authenticate (token: string): MaybePromise<Caller> {
    const id = hashToken(token)
    const cached = this.#good.get(id) ?? this.#bad.get(id)
    if (cached !== undefined && this.#isWithin(cached, this.#options.cacheTtl)) return this.#toCaller(id, cached)
    const asked = this.#ask(id, token)
    const stale = this.#findStale(id)
    if (this.#down && stale !== undefined) {
      // The service is down, so this request does not wait for it. A later request can use the answer.
      asked.catch(() => {})
      return this.#toCaller(id, stale)
    }
    return asked.then((answer) => this.#toCaller(id, answer), (error) => {
      const last = this.#findStale(id)
      if (last === undefined) throw unavailable(error)
      return this.#toCaller(id, last)
    })
  }

  #isWithin ({ at }: { at: number }, milliseconds: number): boolean {
    const age = this.#options.now() - at
    return age >= 0 && age < milliseconds
  }

  #findStale (id: string): Answer | undefined {
    const answer = this.#good.get(id)
    return answer !== undefined && this.#isWithin(answer, this.#options.staleTtl) ? answer : undefined
  }

  /**
   * Joins the request in flight for this token if its answer is still recent enough. Otherwise queues a new request behind it. So
   * each token has at most one request in flight and one waiting.
   */
  #ask (id: string, token: string): Promise<Answer> {
    const last = this.#flights.get(id)
    if (last !== undefined && (last.at === undefined || this.#isWithin({ at: last.at }, this.#options.cacheTtl))) return last.answer
    const flight = {} as Flight
    flight.answer = this.#fly(flight, last?.answer, id, token)
    this.#flights.set(id, flight)
    return flight.answer
  }

  async #fly (flight: Flight, previous: Promise<unknown> | undefined, id: string, token: string): Promise<Answer> {
    if (previous !== undefined) await previous.catch(() => {})
    flight.at = this.#options.now()
    try {
      const answer = { ...await this.#options.client.ask(token), at: flight.at }
      this.#cache(id, answer)
      this.#setDown(false)
      return answer
    } catch (error) {
      this.#setDown(true, error)
      throw error
    } finally {
      if (this.#flights.get(id) === flight) this.#flights.delete(id)
    }
  }

  #cache (id: string, answer: Answer): void {
    const { cacheTtl, staleTtl } = this.#options
    this.#good.delete(id)
    this.#bad.delete(id)
    if ('challenge' in answer) {
      if (cacheTtl > 0) this.#bad.set(id, answer)
    } else if (cacheTtl > 0 || staleTtl > 0) this.#good.set(id, answer)
  }

  #setDown (down: boolean, error?: unknown): void {
    if (this.#down === down) return
    this.#down = down
    this.#options.onChange(error)
  }

  /** Creates a new object for each request, so that a handler that modifies its caller affects no other request. */
  #toCaller (id: string, answer: Answer): Caller {
    if ('challenge' in answer) {
      throw new IdentityError('ErrUnknown', 'the access token is unknown, expired or revoked', {
        headers: { 'www-authenticate': answer.challenge }
      })
    }
    const info: TokenInfo = JSON.parse(answer.text).data
    const { user_id, account, name, roles, client_id, scopes, subject, aud, roles_withheld, token_id: _id, token_name, ...signIn } = info
    const auth = readStrength(signIn)
    return {
      subject: subject ?? 'user',
      user: { user_id, account, name, roles },
      client: { clientId: client_id },
      token: defined({ id, scopes, audience: aud, name: token_name, roles_withheld: roles_withheld || undefined }),
      ...(auth !== undefined && { auth }),
      isAdmin: holdsRole(roles, this.#options.roles.admin)
    }
  }
}
