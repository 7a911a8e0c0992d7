import { OutboundError } from '../outbound/fetcher.ts'
import { defined } from '../defined.ts'
import { readCode } from '../failure.ts'

/** A code of Node.js or of openid-client. */
const CODE = /^[A-Z][A-Z0-9_]{1,63}$/

/** The reason of a failure without what the provider has sent: texts of it may have secrets or addresses. */
export function describeFailure (error: unknown): string {
  const { name, code, cause } = error as Error & { code?: unknown }
  const inner = cause as { code?: unknown } | undefined
  // The cause may be what the provider has sent, with any member.
  const codes = [code, inner?.code].filter((one) => typeof one === 'string' && CODE.test(one))
  return codes.length > 0 ? codes.join(', ') : name
}

/** Why a provider cannot be used, for the log: its code, and a text without its answer. */
export function toFailure (error: unknown): Error {
  const code = readCode(error instanceof Error && error.cause instanceof OutboundError ? error.cause : error)
  return Object.assign(new Error(describeFailure(error)), defined({ code }))
}

/** Whether the provider has answered that the code is none that it gave. */
export function isWrongCode (error: unknown): boolean {
  return error instanceof Error && 'error' in error && error.error === 'invalid_grant'
}
