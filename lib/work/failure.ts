/** The failure of deliveries that were due in a restored backup. They may have been delivered since it was made. */
export const RESTORED = 'RESTORED'

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
