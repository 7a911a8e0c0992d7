import { setTimeout as sleep } from 'node:timers/promises'

/** Milliseconds for one request. */
const TIMEOUT = 30_000
const GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

/** The code that the user enters in a browser. */
export interface DeviceCode {
  user_code: string
  verification_uri: string
  verification_uri_complete?: string
  /** Seconds. */
  expires_in: number
}

interface DeviceTokens {
  access_token: string
  expires_in: number
  refresh_token?: string
  scope?: string
}

interface DeviceLogin {
  /** The authorization server's issuer. */
  issuer: string
  /** A public client. */
  client_id: string
  scope: string
  showCode: (code: DeviceCode) => void
  signal?: AbortSignal
  /** Sleeps for this many milliseconds; for tests. */
  wait?: (milliseconds: number, signal?: AbortSignal) => Promise<void>
}

async function send (
  url: string, fields: Record<string, string> | undefined, signal: AbortSignal | undefined
): Promise<{ ok: boolean, body: Record<string, unknown> }> {
  const limit = AbortSignal.timeout(TIMEOUT)
  const response = await fetch(url, {
    ...(fields && { method: 'POST', body: new URLSearchParams(fields) }),
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: signal === undefined ? limit : AbortSignal.any([signal, limit])
  })
  const body = await response.json().catch(() => ({})) as Record<string, unknown>
  return { ok: response.ok, body }
}

/**
 * Signs a user in on a device without a browser (RFC 8628).
 * @throws Error with the server's own error, or because its answer is invalid
 */
export async function loginByDevice (
  { issuer, client_id, scope, showCode, signal, wait = async (ms, signal) => { await sleep(ms, undefined, { signal }) } }: DeviceLogin
): Promise<DeviceTokens> {
  const base = issuer.replace(/\/$/, '')
  const { ok, body: metadata } = await send(`${base}/.well-known/openid-configuration`, undefined, signal)
  const { device_authorization_endpoint: begin, token_endpoint: token } = metadata
  // RFC 8414, 3.3: the metadata must be this issuer's own.
  if (!ok || metadata.issuer !== base || typeof begin !== 'string' || typeof token !== 'string') {
    throw new Error('there is no authorization server at this issuer')
  }
  const started = await send(begin, { client_id, ...(scope !== '' && { scope }) }, signal)
  if (!started.ok) throw new Error(explain(started.body))
  const { device_code, interval = 5, ...code } = started.body as unknown as DeviceCode & { device_code: string, interval?: number }
  const { verification_uri: uri, verification_uri_complete: complete, ...rest } = code
  if (typeof code.user_code !== 'string' || !URL.canParse(uri)) throw new Error(explain({}))
  // The server's text must not contain control characters for the terminal.
  showCode({
    ...rest,
    user_code: code.user_code.replace(/[^\x20-\x7e]/g, '?'),
    verification_uri: new URL(uri).href,
    ...(typeof complete === 'string' && URL.canParse(complete) && { verification_uri_complete: new URL(complete).href })
  })
  let pause = interval
  for (let waited = 0; waited < code.expires_in; waited += pause) {
    await wait(pause * 1000, signal)
    const { ok, body } = await send(token, { grant_type: GRANT, client_id, device_code }, signal)
    if (ok) return body as unknown as DeviceTokens
    if (body.error === 'slow_down') pause += 5
    else if (body.error !== 'authorization_pending') throw new Error(explain(body))
  }
  throw new Error('the code has expired')
}

function explain ({ error, error_description: description }: Record<string, unknown>): string {
  if (typeof error !== 'string') return 'the server did not answer like an authorization server'
  return (typeof description === 'string' ? `${description} (${error})` : error).replace(/[^\x20-\x7e]/g, '?')
}
