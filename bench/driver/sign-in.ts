import { createHash, randomBytes } from 'node:crypto'

/** A whole sign-in: the browser's part and the app's. */
export interface SignInOptions {
  port: number
  client: { clientId: string, secret?: string | undefined, redirectUris: string[] }
  accounts: string[]
  password: string
}

const API = '/api/v1/auth'

/** Keeps cookies by name, whatever their path: a sign-in sends all of them with each request. */
export class Browser {
  readonly #cookies = new Map<string, string>()

  async fetch (url: string, options: RequestInit = {}): Promise<Response> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', ...options, headers: { accept: 'text/html', cookie, ...options.headers as Record<string, string> } })
    await response.arrayBuffer()
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]*)=([^;]*)/.exec(line) ?? []
      if (value === '') this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
    return response
  }
}

/** The URL that a redirect leads to. Throws when the answer is not a redirect. */
function follow (response: Response, origin: string): string {
  const location = response.headers.get('location')
  if (location === null) throw new Error(`a step of the sign-in answered ${response.status}`)
  return new URL(location, origin).href
}

/** What a client sends to redeem a code. */
export interface Redemption {
  grant_type: 'authorization_code'
  code: string
  code_verifier: string
  redirect_uri: string
}

/**
 * The browser's part of the authorization code flow with PKCE: the request, and the form with account and password unless the user is
 * signed in at this browser.
 */
export async function requestCode ({ port, client, password }: Omit<SignInOptions, 'accounts'>, account: string, browser: Browser, scope: string): Promise<Redemption> {
  const origin = `http://127.0.0.1:${port}`
  const code_verifier = randomBytes(32).toString('base64url')
  const redirect_uri = client.redirectUris[0]!
  const query = new URLSearchParams({
    client_id: client.clientId,
    redirect_uri,
    response_type: 'code',
    scope,
    state: 'state',
    code_challenge: createHash('sha256').update(code_verifier).digest('base64url'),
    code_challenge_method: 'S256'
  })
  let next = follow(await browser.fetch(`${origin}${API}/authorize?${query}`), origin)
  if (next.startsWith(origin)) {
    next = follow(await browser.fetch(next, { method: 'POST', body: new URLSearchParams({ account, password }), headers: { origin } }), origin)
  }
  while (next.startsWith(origin)) next = follow(await browser.fetch(next), origin)
  const code = new URL(next).searchParams.get('code')
  if (code === null) throw new Error('a sign-in ended without a code')
  return { grant_type: 'authorization_code', code, code_verifier, redirect_uri }
}

/** The client's part. Resolves to the answer of the token endpoint. */
export async function redeem ({ port, client }: Pick<SignInOptions, 'port' | 'client'>, redemption: Redemption): Promise<{ access_token: string, refresh_token?: string }> {
  const answer = await fetch(`http://127.0.0.1:${port}${API}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${client.clientId}:${client.secret}`).toString('base64')}` },
    body: new URLSearchParams({ ...redemption })
  })
  if (answer.status !== 200) throw new Error(`a code was answered ${answer.status}`)
  return await answer.json() as { access_token: string, refresh_token?: string }
}

/** The whole authorization code flow. */
export async function signIn (options: SignInOptions, account: string): Promise<void> {
  await redeem(options, await requestCode(options, account, new Browser(), 'openid profile'))
}

/** Signs users in until `stopped`, `concurrency` at once. Resolves to the duration of each sign-in in milliseconds. */
export async function signInUntil (options: SignInOptions, concurrency: number, stopped: () => boolean): Promise<number[]> {
  const times: number[] = []
  let next = 0
  await Promise.all(Array.from({ length: concurrency }, async () => {
    while (!stopped()) {
      const start = performance.now()
      await signIn(options, options.accounts[next++ % options.accounts.length]!)
      times.push(performance.now() - start)
    }
  }))
  return times
}
