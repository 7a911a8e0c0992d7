import { createHash, randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import type { ClientRecord } from '../../lib/records/client.ts'
import { startIdentity, type StartOptions, type TestKit } from '../../testing/index.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { IS_ELSEWHERE, MONGODB_URL } from '../helpers/mongodb.ts'
import { findFreePort } from '../helpers/port.ts'
import { Browser, type Page } from './browser.ts'
import '../helpers/plain-threads.ts'

export interface App { client_id: string, client_secret: string, redirect_uri: string }

export interface Harness {
  kit: TestKit
  url: string
  user: { user_id: string, account: string, password: string }
  /** Registers a client that the user owns. */
  register: (options?: { public?: boolean, first_party?: boolean, scopes?: string[], redirectUris?: string[], name?: string }) => Promise<App>
  /** Sets fields of the client's record that only an administrator may set. */
  mark: (app: App, fields: Partial<Pick<ClientRecord, 'pkce' | 'first_party' | 'id_token_claims' | 'redirectUris' | 'roles' | 'idTokenAlg' | 'profile'>>) => Promise<void>
  browser: () => Browser
  /** POSTs a form to an endpoint, with the client's secret if it has one. */
  post: (path: string, fields: Record<string, string>, app?: App, headers?: Record<string, string>) => Promise<Answer>
  get: (path: string, token?: string) => Promise<Answer>
}

export interface Answer { status: number, headers: Headers, body: Record<string, unknown> }

async function answer (response: Response): Promise<Answer> {
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text.startsWith('{') ? JSON.parse(text) : { text } }
}

/** Runs the cases on SQLite, and on MongoDB if MONGODB_URL is set. */
export function eachStore (t: Test, name: string, run: (t: Test, start: (options?: StartOptions) => Promise<Harness>, store: 'sqlite' | 'mongodb') => Promise<void>): void {
  if (!IS_ELSEWHERE) t.test(`${name} on sqlite`, async (t) => await run(t, async (options) => await startHarness(t, options), 'sqlite'))
  t.test(`${name} on mongodb`, { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
    const database = reuseMongoDatabase(t, MONGODB_URL!)
    await run(t, async (options) => await startHarness(t, { database, ...options }), 'mongodb')
  })
}

/** The directory of each test: another call of `testdir` would empty it. */
const files = new WeakMap<Test, { directory: string, count: number }>()

/** The URL of a new SQLite file. A store in memory caches no documents, so it would hide faults of the cache. */
export function createFile (t: Test): string {
  const place = files.get(t) ?? { directory: t.testdir(), count: 0 }
  files.set(t, place)
  return `sqlite:${place.directory}/identity-${place.count++}.db`
}

/** The option for a service at localhost, where passkeys work. */
export async function atLocalhost (): Promise<{ oidc: { issuer: string } }> {
  return { oidc: { issuer: `http://localhost:${await findFreePort()}` } }
}

/** The service on a socket, with a user who has a password. It listens on the port of an issuer at localhost. */
export async function startHarness (t: Test, options: StartOptions = {}): Promise<Harness> {
  const place = options.database === undefined && options.store === undefined ? { database: createFile(t) } : {}
  const kit = await startIdentity({ t, rateLimit: false, ...place, ...options })
  const issuer = options.oidc === false ? undefined : options.oidc?.issuer
  const [, port] = /^http:\/\/localhost:(\d+)$/.exec(issuer ?? '') ?? []
  const { url: address } = await kit.listen({ port: Number(port ?? 0) })
  const url = port === undefined ? address : issuer!
  const account = 'ann@example.com'
  const password = 'correct horse'
  const user = { ...await kit.app.identity.users.create({ data: { account, password, name: 'Ann' } }), account, password }
  const { clients } = kit.app.identity
  return {
    kit,
    url,
    user,
    async register ({ public: open = false, first_party = true, scopes = ['read', 'write'], redirectUris = ['https://app.example/cb'], name = 'The App' } = {}) {
      const owner = { user_id: user.user_id, isAdmin: true }
      const grants = (['code', 'refresh', 'device', 'client'] as const).filter((grant) => grant !== 'client' || !open)
      const { clientId } = await clients.create({ data: { redirectUris, scopes, name, grants: [...grants], first_party }, credentials: !open }, owner)
      const { clientSecret = '' } = await clients.require(clientId, owner)
      return { client_id: clientId, client_secret: clientSecret, redirect_uri: redirectUris[0] ?? '' }
    },
    async mark ({ client_id }, fields) {
      await kit.app.identity.store.collection('clients').update(client_id, { set: fields })
    },
    browser: () => new Browser(url),
    post: async (path, fields, app, headers = {}) => await answer(await fetch(`${url}/api/v1/auth/${path}`, {
      method: 'POST',
      headers: {
        ...(app !== undefined && app.client_secret !== '' && {
          authorization: `Basic ${Buffer.from(`${app.client_id}:${app.client_secret}`).toString('base64')}`
        }),
        ...headers
      },
      body: new URLSearchParams({ ...(app !== undefined && app.client_secret === '' && { client_id: app.client_id }), ...fields })
    })),
    get: async (path, token) => await answer(await fetch(`${url}/api/v1/auth/${path}`, {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` }
    }))
  }
}

export interface Asked { url: string, verifier: string }

/** An authorization request with PKCE. */
export function askCode (app: App, params: Record<string, string | undefined> = {}): Asked {
  const verifier = randomBytes(32).toString('base64url')
  const query = {
    client_id: app.client_id,
    redirect_uri: app.redirect_uri,
    response_type: 'code',
    scope: 'openid offline_access read',
    state: 'abc',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...params
  }
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return { url: `/api/v1/auth/authorize?${new URLSearchParams(given)}`, verifier }
}

/** Signs in, and consents if asked. */
export async function signIn ({ user, browser }: Harness, url: string, with_: Browser = browser()): Promise<Page> {
  let page = await with_.open(url)
  if (page.title === 'Sign in') page = await page.submit({ account: user.account, password: user.password })
  if (page.title.startsWith('Continue to')) page = await page.submit({ decision: 'allow' })
  return page
}

/** Signs in; resolves to the form fields that redeem the code. */
export async function getCode (harness: Harness, app: App, params: Record<string, string | undefined> = {}, browser?: Browser): Promise<{ code: string, code_verifier: string, redirect_uri: string, grant_type: string }> {
  const { url, verifier } = askCode(app, params)
  const { left, text, title } = await signIn(harness, url, browser)
  const code = left?.searchParams.get('code')
  if (typeof code !== 'string') throw new Error(`no code: ${left?.search ?? `${title} ${text}`}`)
  return { code, code_verifier: verifier, redirect_uri: params.redirect_uri ?? app.redirect_uri, grant_type: 'authorization_code' }
}
