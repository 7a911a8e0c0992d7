import type { Upstream } from '../../schemas/upstream.ts'

/** Seconds from the last answer of a provider that lets some people in alone. */
const ONLY_DEFAULT = 24 * 60 * 60

/** What an upstream may bound: the sign-ins of browsers, and the token sessions of apps. */
export type Bounded = 'session' | 'refresh'

/** Seconds from a person's last answer of an upstream for which what came of it goes on; undefined without a bound. */
export function findBound ({ only, sessionMax, refreshMax }: Pick<Upstream, 'only' | 'sessionMax' | 'refreshMax'>, what: Bounded): number | undefined {
  return (what === 'session' ? sessionMax : refreshMax) ?? (only === true ? ONLY_DEFAULT : undefined)
}
