import { explainFailure } from '../failure.ts'

/** The most characters of the other side's words. */
const WORDS_MAX = 300

/** The failure of deliveries that were due in a restored backup. They may have been delivered since it was made. */
export const RESTORED = 'RESTORED'

/** An attempt ended without an outcome. It does not count, and the work is due again at once. */
export class CutOffError extends Error {
  override readonly name = 'CutOffError'
}

/** The receiver did not accept: it answered with a status, or not at all, for which the code says why. */
export class RefusedError extends Error {
  readonly code: string | undefined
  readonly responseCode: number | undefined
  /** Milliseconds to the next attempt at least. */
  readonly retryAfter: number | undefined

  constructor ({ status, code, retryAfter }: { status?: number | undefined, code?: string | undefined, retryAfter?: number | undefined }) {
    super(`the receiver did not accept: ${status ?? code}`)
    this.code = code
    this.responseCode = status
    this.retryAfter = retryAfter
  }
}

/**
 * The reason of a failed attempt, in codes only: the other side's message may repeat an address.
 * @param error with the `code` of a connection, the `responseCode` of an answer, or both
 */
export function nameFailure (error: unknown): string {
  const { code, responseCode, name } = Object(error) as { code?: unknown, responseCode?: unknown, name?: unknown }
  // A DOMException, whose code is a number.
  if (name === 'TimeoutError') return 'TIMEOUT'
  const codes = [code, responseCode].filter((part) => /^\w{1,64}$/.test(String(part ?? '')))
  return codes.length > 0 ? codes.join(' ') : 'ERROR'
}

/** What may name a person, or open something: an address, a URL, and whatever is as long as a token. */
const TELLING = /\S*(?:@|:\/\/)\S*|[\w~+/-]{32,}=*/g

/** The other side's words about a failed attempt, for the operator. */
export function quoteFailure (error: unknown): string {
  return explainFailure(error).replace(/\s+/g, ' ').replace(TELLING, '***').slice(0, WORDS_MAX)
}
