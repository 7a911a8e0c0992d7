import type { OutageOf } from '../work/outage.ts'

/** How a token was issued: by a grant, or by the operator (`mint`). */
type GrantLabel = 'code' | 'refresh' | 'client' | 'device' | 'mint'

export type Outcome = 'success' | 'failure' | 'limited' | 'error'

/** Returns a number at each scrape, or undefined while there is none. */
export type Reading = () => number | undefined | Promise<number | undefined>

/** The metrics of the service. No label contains a user, a client, or anything that a caller can choose. */
export interface Meter {
  request (labels: { method: string, route: string, status: number }, seconds: number): void
  /** @param method the methods of RFC 8176 that were used, or the method that failed */
  signIn (outcome: Outcome, method: string): void
  tokens (grant: GrantLabel): void
  tokenCheck (outcome: Outcome): void
  store (operation: string, outcome: 'success' | 'error', seconds: number): void
  /** A question to the former system that people move from, or one that was not asked because it is left alone. */
  formerSystem (outcome: 'right' | 'wrong' | 'failed' | 'resting'): void
  /** Work of a kind was given up: a mail, a logout token, an event for a webhook or the webhook itself, a notice of an expiring secret. */
  gaveUp (kind: 'mail' | 'logout' | 'webhook' | 'secret'): void
  /** An outage of something that the service calls has begun. */
  outage (kind: OutageOf): void
  /** A list has started (1) or ended (-1). */
  lists (change: 1 | -1): void
  /** Registers a gauge. Its name gets the prefix `identity_`. */
  read (name: string, help: string, reading: Reading): void
  /** Registers a gauge with a label. Each reading returns all its values. */
  readEach (name: string, label: string, help: string, reading: () => Record<string, number>): void
  /** Renders all metrics as text, with the media type: OpenMetrics 1.0, or the older format of Prometheus. */
  render (format: 'openmetrics' | 'prometheus'): Promise<{ type: string, text: string }>
}
