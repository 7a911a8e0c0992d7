import { IdentityError, paramError } from '../errors.ts'

/** The rules that a document, or a request with one, can break. */
export type DocumentRule =
  | 'url' | 'host' | 'blocked' | 'address' | 'unreachable' | 'status' | 'type' | 'encoding' | 'size' | 'json'
  | 'client_id' | 'client_name' | 'redirect_uris' | 'redirect_host' | 'token_endpoint_auth_method' | 'jwks' | 'jwks_uri' | 'scope' | 'require_signed_request_object'
  | 'gone' | 'busy' | 'rate'

/** Rules that are judged before anything is fetched: whoever names the document may know how. */
const OPEN: ReadonlySet<DocumentRule> = new Set(['url', 'host', 'blocked', 'busy', 'rate'])

/** The most characters of a value that a page, the log or an event repeats. */
const SHOWN = 200

/** Control characters, invisible ones, and those that change the writing direction. The author of a document chooses its values. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** A value as it was seen, in one line of bounded length. */
export function showValue (value: unknown): string {
  const text = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
  return text.slice(0, SHOWN).replace(UNSAFE, '?')
}

/** A document is refused, or cannot be read. The log and events name the rule and the value that was seen. */
export class DocumentError extends Error {
  override readonly name = 'DocumentError'
  readonly rule: DocumentRule
  /** What was seen: never more than showValue shows. */
  readonly value: string
  /** Seconds after which another attempt may succeed. Present: the request was refused, and the document was not judged. */
  readonly retryAfter?: number
  /** The host did not answer, or not now: what is stored still counts. `gone`: it says that there is no document. */
  readonly state: 'refused' | 'down' | 'gone'

  constructor (
    rule: DocumentRule,
    reason: string,
    { value, retryAfter, state = 'refused' }: { value?: unknown, retryAfter?: number, state?: 'refused' | 'down' | 'gone' } = {}
  ) {
    super(reason)
    this.rule = rule
    this.value = showValue(value)
    this.state = state
    if (retryAfter !== undefined) this.retryAfter = retryAfter
  }

  /**
   * For the page, which anybody sees. What a fetch has shown is the operator's: otherwise a stranger could have this service look at hosts
   * for them.
   */
  get summary (): string {
    return OPEN.has(this.rule) ? `the document of the client was refused: ${this.detail}` : 'the document of the client could not be read'
  }

  /** The whole sentence, for the operator. */
  get detail (): string {
    return `${this.rule}: ${this.message}${this.value === '' ? '' : `: ${this.value}`}`
  }
}

/**
 * Runs a call for an operator, who has named the document.
 * @throws ErrParam that names the rule, and ErrBusy with Retry-After, in place of DocumentError
 */
export async function explain<T> (call: Promise<T>): Promise<T> {
  return await call.catch((error: unknown) => {
    if (!(error instanceof DocumentError)) throw error
    const { detail, retryAfter } = error
    throw retryAfter === undefined
      ? paramError('url', detail)
      : new IdentityError('ErrBusy', `url: ${detail}`, { headers: { 'retry-after': String(retryAfter) } })
  })
}
