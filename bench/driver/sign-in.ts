import { createHash, randomBytes } from 'node:crypto'

/** A whole sign-in: the browser's part and the app's. */
export interface SignInOptions {
  port: number
  client: { clientId: string, secret?: string | undefined, redirectUris: string[] }
  accounts: string[]
  password: string
}

const API = '/api/v1/auth'

/** Cookies by name, whatever their path: a sign-in sends all of them with each request. */
class Jar {
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

/** The authorization code flow with PKCE: the request, the form with account and password, the code, the token. */
export async function signIn ({ port, client, password }: SignInOptions, account: string): Promise<void> {
  const origin = `http://127.0.0.1:${port}`
  const jar = new Jar()
  const verifier = randomBytes(32).toString('base64url')
  const redirect_uri = client.redirectUris[0]!
  const query = new URLSearchParams({
    client_id: client.clientId,
    redirect_uri,
    response_type: 'code',
    scope: 'openid profile',
    state: 'state',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256'
  })
  const form = follow(await jar.fetch(`${origin}${API}/authorize?${query}`), origin)
  let next = follow(await jar.fetch(form, { method: 'POST', body: new URLSearchParams({ account, password }), headers: { origin } }), origin)
  while (next.startsWith(origin)) next = follow(await jar.fetch(next), origin)
  const code = new URL(next).searchParams.get('code')
  if (code === null) throw new Error('a sign-in ended without a code')
  const answer = await fetch(`${origin}${API}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${client.clientId}:${client.secret}`).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri })
  })
  const { access_token } = await answer.json() as { access_token?: string }
  if (access_token === undefined) throw new Error(`a code was answered ${answer.status}`)
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
