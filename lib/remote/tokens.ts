import { LRUCache } from 'lru-cache'
import type { TokenInfo } from '../../schemas/auth.ts'
import type { Clock } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import { holdsRole, type RoleNames } from '../roles.ts'
import type { MaybePromise } from '../store/port.ts'
import { hashToken, type Caller } from '../tokens/tokens.ts'
import { unavailable, type Source, type Verdict } from './source.ts'

export interface RemoteTokensOptions {
  source: Pick<Source, 'ask'>
  /** Milliseconds, see schemas/remote.ts. */
  cacheTtl: number
  staleTtl: number
  cacheSize: number
  roles: RoleNames
  now: Clock
  /** Told once when the service can no longer be asked, and once when it can again. */
  onChange: (error: unknown | undefined) => void
}

/** A verdict, and when the service was asked for it: what is revoked later than that, it does not know of. */
type Answer = Verdict & { at: number }

/** A question on its way, or one that waits for its turn and has no time yet. */
interface Flight {
  at?: number
  answer: Promise<Answer>
}

/** Characters of a good answer on average, before answers that are longer push out others. */
const AVERAGE_ANSWER = 4096

/**
 * Who a token belongs to, as the service elsewhere says. Stands in for lib/tokens/tokens.ts in a guard.
 *
 * No answer is used that was asked for more than `cacheTtl` ago, be it kept or still on its way; that alone bounds how long
 * a revoked token is good. Tokens are kept by their hash, good and bad ones apart: made-up tokens push out no good one.
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
   * Who this access token belongs to. Answers without a promise where it knows.
   * @throws ErrUnknown when the service does not take the token, ErrRsc (503) when it cannot be asked
   */
  authenticate (token: string): MaybePromise<Caller> {
    const id = hashToken(token)
    const known = this.#good.get(id) ?? this.#bad.get(id)
    if (known !== undefined && this.#isYoung(known, this.#options.cacheTtl)) return this.#toCaller(id, known)
    const asked = this.#ask(id, token)
    const stale = this.#findStale(id)
    if (this.#down && stale !== undefined) {
      // Nobody waits for a service that is known to be down; its first answer is for the next request.
      asked.catch(() => {})
      return this.#toCaller(id, stale)
    }
    return asked.then((answer) => this.#toCaller(id, answer), (error) => {
      const last = this.#findStale(id)
      if (last === undefined) throw unavailable(error)
      return this.#toCaller(id, last)
    })
  }

  #isYoung ({ at }: { at: number }, milliseconds: number): boolean {
    const age = this.#options.now() - at
    return age >= 0 && age < milliseconds
  }

  #findStale (id: string): Answer | undefined {
    const answer = this.#good.get(id)
    return answer !== undefined && this.#isYoung(answer, this.#options.staleTtl) ? answer : undefined
  }

  /**
   * Joins the question that is on its way for this token, if its answer may still be used then; else asks after it.
   * So a token has one question on its way and one waiting at most, however many requests come.
   */
  #ask (id: string, token: string): Promise<Answer> {
    const last = this.#flights.get(id)
    if (last !== undefined && (last.at === undefined || this.#isYoung({ at: last.at }, this.#options.cacheTtl))) return last.answer
    const flight = {} as Flight
    flight.answer = this.#fly(flight, last?.answer, id, token)
    this.#flights.set(id, flight)
    return flight.answer
  }

  async #fly (flight: Flight, before: Promise<unknown> | undefined, id: string, token: string): Promise<Answer> {
    if (before !== undefined) await before.catch(() => {})
    flight.at = this.#options.now()
    try {
      const answer = { ...await this.#options.source.ask(token), at: flight.at }
      this.#keep(id, answer)
      this.#turn(false)
      return answer
    } catch (error) {
      this.#turn(true, error)
      throw error
    } finally {
      if (this.#flights.get(id) === flight) this.#flights.delete(id)
    }
  }

  #keep (id: string, answer: Answer): void {
    const { cacheTtl, staleTtl } = this.#options
    this.#good.delete(id)
    this.#bad.delete(id)
    if ('challenge' in answer) {
      if (cacheTtl > 0) this.#bad.set(id, answer)
    } else if (cacheTtl > 0 || staleTtl > 0) this.#good.set(id, answer)
  }

  #turn (down: boolean, error?: unknown): void {
    if (this.#down === down) return
    this.#down = down
    this.#options.onChange(error)
  }

  /** Made anew for each request, so that a handler that changes its caller changes nobody else's. */
  #toCaller (id: string, answer: Answer): Caller {
    if ('challenge' in answer) {
      throw new IdentityError('ErrUnknown', 'the access token is unknown, expired or revoked', {
        headers: { 'www-authenticate': answer.challenge }
      })
    }
    const { user_id, account, name, roles, client_id, scopes }: TokenInfo = JSON.parse(answer.text).data
    return {
      user: { user_id, account, name, roles },
      client: { clientId: client_id },
      token: { id, scopes },
      isAdmin: holdsRole(roles, this.#options.roles.admin)
    }
  }
}
