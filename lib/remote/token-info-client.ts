import { Ajv } from 'ajv'
import { TokenInfoSchema, type TokenInfo } from '../../schemas/auth.ts'
import { Data, RolesSchema } from '../../schemas/common.ts'
import { Relay, type Dispatcher, type RelayResponse } from '../service-client/relay.ts'
import type { ServiceAddress } from '../service-client/address.ts'
import { IdentityError } from '../errors.ts'
import { METADATA, readKeysAddress, readMetadata, TOKENINFO, type ServiceLocation } from './service-location.ts'

interface TokenInfoClientOptions {
  location: ServiceLocation
  /** Milliseconds for a whole call, including the connection. */
  timeout: number
  maxConnections: number
  /** Used instead of our own pools, and never closed. */
  dispatcher?: Dispatcher | undefined
}

/** The service's answer about a token: the JSON that describes it, or the challenge of a 401. */
export type Verdict = { text: string } | { challenge: string }

/** The maximum size of a response in bytes. Roles alone may have 64 KiB, and scopes and names are added. */
const MAX_RESPONSE = 128 * 1024
/** The maximum length of a challenge that is passed on. */
const MAX_CHALLENGE = 512
const SECONDS = /^\d{1,4}$/

const INVALID_TOKEN = 'Bearer error="invalid_token", error_description="the access token is unknown, expired or revoked"'

/** Errors when the service closes an idle connection just when we reuse it. A GET may then be sent again (RFC 9112, 9.3.1). */
const STALE_CONNECTION = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

/** Checks roles as a write does, because a falsy value would grant the role that it seems to deny. */
const isTokenInfo = new Ajv({ strict: true, strictTypes: false })
  .compile<{ data: TokenInfo }>(Data({ ...TokenInfoSchema, properties: { ...TokenInfoSchema.properties, roles: RolesSchema } }))

/** The error for a caller whose token could not be checked. The cause is for the log. */
export function unavailable (cause: unknown): IdentityError {
  const { headers } = cause instanceof IdentityError ? cause : {}
  return new IdentityError('ErrRsc', 'the identity service is unavailable', {
    statusCode: 503, cause, headers: { 'retry-after': headers?.['retry-after'] ?? '1' }
  })
}

async function readText (response: RelayResponse): Promise<string> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of response.body) {
    size += part.length
    if (size > MAX_RESPONSE) throw new Error(`the identity service sent more than ${MAX_RESPONSE} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

/** The error for a status that says nothing about the token. */
function unexpected ({ status, headers }: RelayResponse): IdentityError {
  const after = headers['retry-after']
  return new IdentityError('ErrRsc', `the identity service answered ${status}`, {
    headers: after !== undefined && SECONDS.test(after) ? { 'retry-after': after } : {}
  })
}

/** The service's own challenge (RFC 6750, 3), if it sent one. */
function readChallenge ({ headers }: RelayResponse): string {
  const challenge = [headers['www-authenticate'] ?? []].flat().join(', ')
  return /^(bearer|dpop)\b/i.test(challenge) && challenge.length <= MAX_CHALLENGE ? challenge : INVALID_TOKEN
}

function readVerdict (response: RelayResponse, text: string): Verdict {
  if (response.status === 401) return { challenge: readChallenge(response) }
  if (response.status !== 200) throw unexpected(response)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    // The error is dropped, because V8's message repeats a part of the text.
  }
  if (!isTokenInfo(body)) throw new Error('the identity service sent invalid token information')
  return { text }
}

interface Target {
  relay: Relay
  path: string
}

/** Asks the service about tokens, over keep-alive connections. Caches nothing. */
export class TokenInfoClient {
  readonly #options: TokenInfoClientOptions
  #target: Promise<Target> | undefined

  constructor (options: TokenInfoClientOptions) {
    this.#options = options
  }

  /**
   * Asks the service about a token, within `timeout`.
   * @throws Error when the service cannot be reached, or its answer is invalid
   */
  async ask (token: string): Promise<Verdict> {
    return await this.#withTimeout(async (signal) => {
      const { relay, path } = await this.#connect(signal)
      const headers = { authorization: `Bearer ${token}`, accept: 'application/json' }
      const send = async () => await relay.send({ method: 'GET', path, headers, body: null, signal })
      const response = await send().catch(async (error: Error) => {
        const { code } = (error.cause ?? {}) as { code?: string }
        if (code === undefined || !STALE_CONNECTION.has(code) || signal.aborted) throw error
        return await send()
      })
      return readVerdict(response, await readText(response))
    })
  }

  /**
   * The public keys of the issuer (RFC 7517), as JSON text. Its metadata name their URL.
   * @throws Error when the issuer cannot be reached, or its answer is invalid
   */
  async readKeys (): Promise<string> {
    const { location } = this.#options
    if (!('issuer' in location)) throw new Error('the keys need the option issuer')
    return await this.#withTimeout(async (signal) => {
      const metadata = await this.#read({ ...location.at, base: location.at.base + METADATA }, signal)
      return await this.#read(readKeysAddress(metadata, location.issuer), signal)
    })
  }

  /** Closes our own connections. */
  async close (): Promise<void> {
    await (await this.#target?.catch(() => undefined))?.relay.close()
  }

  async #withTimeout<T> (work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const deadline = new AbortController()
    const timer = setTimeout(() => deadline.abort(new Error('the identity service did not answer in time')), this.#options.timeout)
    try {
      return await work(deadline.signal)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Resolves the location at the first request, so that the app starts while the service is down. Retried after a failure. */
  async #connect (signal: AbortSignal): Promise<Target> {
    this.#target ??= this.#locate(signal).then(({ origin, base }) => ({ relay: this.#open(origin), path: base })).catch((error) => {
      this.#target = undefined
      throw error
    })
    return await this.#target
  }

  async #locate (signal: AbortSignal): Promise<ServiceAddress> {
    const { location } = this.#options
    if ('upstream' in location) return { ...location.upstream, base: location.upstream.base + TOKENINFO }
    return readMetadata(await this.#read({ ...location.at, base: location.at.base + METADATA }, signal), location.issuer)
  }

  /** The text of a public document, over a connection of its own. */
  async #read ({ origin, base: path }: ServiceAddress, signal: AbortSignal): Promise<string> {
    const relay = this.#open(origin)
    try {
      const response = await relay.send({ method: 'GET', path, headers: { accept: 'application/json' }, body: null, signal })
      const text = await readText(response)
      if (response.status !== 200) throw unexpected(response)
      return text
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
