import type { Upstream } from '../../schemas/upstream.ts'

/** Seconds from the last answer of a provider that lets some people in alone. */
const ONLY_DEFAULT = 24 * 60 * 60

/** The same for personal access tokens: with a day, every job would stop at a weekend. */
const ONLY_TOKENS = 30 * 24 * 60 * 60

/** What an upstream may bound: the sign-ins of browsers, the token sessions of apps, and personal access tokens of people whom it lets in alone. */
export type Bounded = 'session' | 'refresh' | 'token'

/** Seconds from a person's last answer of an upstream for which what came of it goes on; undefined without a bound. */
export function findBound (
  { only, sessionMax, refreshMax, tokenMax }: Pick<Upstream, 'only' | 'sessionMax' | 'refreshMax' | 'tokenMax'>, what: Bounded
): number | undefined {
  const given = { session: sessionMax, refresh: refreshMax, token: tokenMax }[what]
  return given ?? (only === true ? what === 'token' ? ONLY_TOKENS : ONLY_DEFAULT : undefined)
}
