import { Ajv } from 'ajv'
import { Data, RolesSchema } from '../../schemas/common.ts'
import { TokenInfoSchema, type TokenInfo } from '../../schemas/auth.ts'
import type { Upstream } from '../bridge/upstream.ts'
import { IdentityError } from '../errors.ts'
import { Relay, type Dispatcher, type RelayResponse } from '../bridge/relay.ts'
import { METADATA, readMetadata, TOKENINFO, type ServiceLocation } from './place.ts'

export interface SourceOptions {
  place: ServiceLocation
  /** Milliseconds for one answer in all. */
  timeout: number
  maxConnections: number
  /** Used instead of pools of our own, and left open. */
  dispatcher?: Dispatcher | undefined
}

/** What the service says of a token: the body that describes it, or the challenge of a 401. */
export type Verdict = { text: string } | { challenge: string }

/** Bytes of an answer: roles may fill a body of 64 KiB, and scopes and names stand beside them. */
const MAX_ANSWER = 128 * 1024
/** Characters of a challenge, or of a Retry-After, that are passed on. */
const MAX_CHALLENGE = 512
const SECONDS = /^\d{1,4}$/

const INVALID_TOKEN = 'Bearer error="invalid_token", error_description="the access token is unknown, expired or revoked"'

/** A kept-alive connection that the service closed at the moment we used it; a GET may be sent again (RFC 9112, 9.3.1). */
const BROKEN = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

/** As the service writes it, and its roles checked as at a write: a falsy one would grant what it seems to deny. */
const isTokenInfo = new Ajv({ strict: true, strictTypes: false })
  .compile<{ data: TokenInfo }>(Data({ ...TokenInfoSchema, properties: { ...TokenInfoSchema.properties, roles: RolesSchema } }))

/** The service could not be asked: callers are told to try again, the cause is for the log. */
export function unavailable (cause: unknown): IdentityError {
  const { headers } = cause instanceof IdentityError ? cause : {}
  return new IdentityError('ErrRsc', 'the identity service is unavailable', {
    statusCode: 503, cause, headers: { 'retry-after': headers?.['retry-after'] ?? '1' }
  })
}

async function readText (answer: RelayResponse): Promise<string> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of answer.body) {
    size += part.length
    if (size > MAX_ANSWER) throw new Error(`the identity service sent more than ${MAX_ANSWER} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

/** Not the service's word on the token, whatever it is. */
function unexpected ({ status, headers }: RelayResponse): IdentityError {
  const after = headers['retry-after']
  return new IdentityError('ErrRsc', `the identity service answered ${status}`, {
    headers: after !== undefined && SECONDS.test(after) ? { 'retry-after': after } : {}
  })
}

/** RFC 6750, 3: as the service put it, where it did. */
function readChallenge ({ headers }: RelayResponse): string {
  const challenge = [headers['www-authenticate'] ?? []].flat().join(', ')
  return /^(bearer|dpop)\b/i.test(challenge) && challenge.length <= MAX_CHALLENGE ? challenge : INVALID_TOKEN
}

function readVerdict (answer: RelayResponse, text: string): Verdict {
  if (answer.status === 401) return { challenge: readChallenge(answer) }
  if (answer.status !== 200) throw unexpected(answer)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    // V8's own message repeats a part of the text.
  }
  if (!isTokenInfo(body)) throw new Error('the identity service sent token information that is none')
  return { text }
}

/** Where the question goes. */
interface Target {
  relay: Relay
  path: string
}

/** Asks the service about tokens, over kept-alive connections. Keeps nothing of what it hears. */
export class Source {
  readonly #options: SourceOptions
  #target: Promise<Target> | undefined

  constructor (options: SourceOptions) {
    this.#options = options
  }

  /**
   * What the service says of a token now. Takes `timeout` at most.
   * @throws Error when it cannot be asked, or its answer is not one
   */
  async ask (token: string): Promise<Verdict> {
    return await this.#inTime(async (signal) => {
      const { relay, path } = await this.#connect(signal)
      const headers = { authorization: `Bearer ${token}`, accept: 'application/json' }
      const send = async () => await relay.send({ method: 'GET', path, headers, body: null, signal })
      const answer = await send().catch(async (error: Error) => {
        const { code } = (error.cause ?? {}) as { code?: string }
        if (code === undefined || !BROKEN.has(code) || signal.aborted) throw error
        return await send()
      })
      return readVerdict(answer, await readText(answer))
    })
  }

  /** Frees the connections, if they are our own. */
  async close (): Promise<void> {
    await (await this.#target?.catch(() => undefined))?.relay.close()
  }

  async #inTime<T> (work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const end = new AbortController()
    const timer = setTimeout(() => end.abort(new Error('the identity service did not answer in time')), this.#options.timeout)
    try {
      return await work(end.signal)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Found at the first request, so that the app starts while the service is down; what failed is tried again. */
  async #connect (signal: AbortSignal): Promise<Target> {
    this.#target ??= this.#locate(signal).then(({ origin, base }) => ({ relay: this.#open(origin), path: base })).catch((error) => {
      this.#target = undefined
      throw error
    })
    return await this.#target
  }

  async #locate (signal: AbortSignal): Promise<Upstream> {
    const { place } = this.#options
    if ('upstream' in place) return { ...place.upstream, base: place.upstream.base + TOKENINFO }
    const relay = this.#open(place.at.origin)
    try {
      const answer = await relay.send({
        method: 'GET', path: place.at.base + METADATA, headers: { accept: 'application/json' }, body: null, signal
      })
      const text = await readText(answer)
      if (answer.status !== 200) throw unexpected(answer)
      return readMetadata(text, place.issuer)
    } finally {
      await relay.close()
    }
  }

  #open (origin: string): Relay {
    const { timeout, maxConnections, dispatcher } = this.#options
    return new Relay({
      upstream: { origin, base: '' }, maxConnections, dispatcher, connectTimeout: timeout, headersTimeout: timeout, bodyTimeout: timeout
    })
  }
}
