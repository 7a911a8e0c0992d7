/** The grants by which tokens are issued; `mint` is the operator's. */
export type GrantLabel = 'code' | 'refresh' | 'client' | 'device' | 'mint'

export type Outcome = 'success' | 'failure' | 'limited' | 'error'

/** A number that is read at each scrape; undefined while there is none. */
export type Reading = () => number | undefined | Promise<number | undefined>

/** What the service counts and measures. No label names a user, a client or anything that a caller chose. */
export interface Meter {
  request (labels: { method: string, route: string, status: number }, seconds: number): void
  /** @param method the methods of RFC 8176 that were used, or the one that failed */
  signIn (outcome: Outcome, method: string): void
  tokens (grant: GrantLabel): void
  tokenCheck (outcome: Outcome): void
  store (operation: string, outcome: 'success' | 'error', seconds: number): void
  /** A list was begun (1) or has ended (-1). */
  lists (change: 1 | -1): void
  /** A gauge, `identity_` before its name. */
  read (name: string, help: string, reading: Reading): void
  /** Everything as text, with its media type: OpenMetrics 1.0, or the older format of Prometheus. */
  render (format: 'openmetrics' | 'prometheus'): Promise<{ type: string, text: string }>
}
