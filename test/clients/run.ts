// `npm run test:clients`: client libraries of others, unmodified and with their default settings. Each program here signs a user
// in through the pages, in Chromium, and shows as JSON what its library makes of it.
import t from 'tap'
import { createTestKey } from '../helpers/assertions.ts'
import { findFreePort } from '../helpers/port.ts'
import { type App, type Harness, startHarness } from '../oidc/harness.ts'
import { press, startChromium, skip, typeIn, withTab } from '../pages/chromium.ts'
import { type LibraryProgram, build, findMissing, startProgram } from './programs.ts'

interface Program extends LibraryProgram {
  /** It authenticates by a key of this kind instead of a secret. */
  key?: 'RS256' | 'ES256'
  /** It is told which audience its assertions have. Absent: that of the library. */
  audience?: 'issuer'
  /** Its secret is a named one. */
  named?: boolean
  /** The path of its redirect URI. */
  callback?: string
  /** The page where the result is. */
  result?: string
  /** Another redirect URI. */
  redirect?: string
  /** The button that ends the sign-in, if the program signs out. */
  end?: string
  /** The scopes that it asks for, if it is told. */
  scope?: string
  public?: boolean
  /** The library reads the ID token only. */
  id_token_claims?: boolean
  /** The button that begins the sign-in, if the library has a page of its own. */
  button?: string
  expected: (harness: Harness) => object
}

const AUDIENCES: Pick<Program, 'audience'>[] = [{}, { audience: 'issuer' }]

const ROLES = ['editor', 'reader']

const profile = ({ user }: Harness) => ({ sub: user.user_id, name: 'Ann', email: user.account })

const PROGRAMS: Program[] = [
  { name: 'Authlib', file: 'flask_authlib.py', expected: (harness) => ({ claims: { sub: harness.user.user_id }, profile: profile(harness), refreshed: true }) },
  { name: 'requests-oauthlib', file: 'flask_requests.py', expected: (harness) => ({ profile: profile(harness), refreshed: true }) },
  {
    name: 'passport-openidconnect',
    file: 'passport.js',
    result: '/result',
    id_token_claims: true,
    expected: ({ user }) => ({ profile: { id: user.user_id, displayName: 'Ann', emails: [{ value: user.account }] } })
  },
  {
    name: 'Auth.js',
    file: 'auth-js.js',
    callback: '/auth/callback/identity',
    result: '/result',
    button: 'Sign in with Identity',
    id_token_claims: true,
    expected: ({ user }) => ({ user: { id: user.user_id, name: 'Ann', email: user.account, roles: ROLES } })
  },
  {
    name: 'better-auth',
    file: 'better-auth.js',
    callback: '/api/auth/callback/identity',
    result: '/result',
    id_token_claims: true,
    expected: ({ user }) => ({ user: { name: 'Ann', email: user.account, emailVerified: false, roles: ROLES } })
  },
  ...AUDIENCES.map((to): Program => (
    { ...to, key: 'RS256', name: 'Authlib with a key', file: 'flask_authlib_key.py', expected: (harness) => ({ profile: profile(harness), refreshed: true }) })),
  ...AUDIENCES.map((to): Program => ({
    ...to, key: 'ES256', name: 'Spring Boot with a key', file: 'spring', tool: 'mvn', callback: '/login/oauth2/code/identity', result: '/login', expected: (harness) => ({ profile: profile(harness), refreshed: true, own: true })
  })),
  ...(['RS256', 'ES256'] as const).map((key): Program => (
    { key, name: `zitadel/oidc with a key, ${key}`, file: 'go/zitadel', tool: 'go', expected: (harness) => ({ profile: profile(harness), refreshed: true, before: true, after: false }) })),
  { name: 'golang.org/x/oauth2', file: 'go/xoauth2', tool: 'go', named: true, expected: (harness) => ({ profile: profile(harness), refreshed: true, own: true }) },
  {
    name: 'oidc-client-ts',
    file: 'oidc-client-ts.js',
    public: true,
    expected: ({ user }) => ({ profile: { sub: user.user_id }, refreshed: true, before: 200, after: 401 })
  },
  ...([['opaque tokens', false, 'openid offline_access read'], ['a JWT', true, 'openid offline_access orders:read']] as const).map(([what, isJwt, scope]): Program => ({
    name: `oidc-client-ts signs out with revokeTokensOnSignout, with ${what}`,
    file: 'oidc-client-ts-sign-out.js',
    public: true,
    result: '/signed-out',
    redirect: '/signed-out',
    end: 'Sign out',
    scope,
    expected: () => ({ isJwt, before: { access: true, refresh: true }, after: { access: false, refresh: false }, user: null })
  }))
]

/** Gives the client what the program authenticates by. @returns the variables for the program */
async function equip ({ kit, url, user }: Harness, { client_id, client_secret }: App, { key, audience, named = false }: Program): Promise<Record<string, string>> {
  const { clients } = kit.app.identity
  const admin = { user_id: user.user_id, isAdmin: true }
  if (named) return { CLIENT_SECRET: (await clients.addSecret(client_id, { data: { name: 'program' } }, admin)).secret }
  if (key === undefined) return { CLIENT_SECRET: client_secret }
  const { jwk, privateKey } = createTestKey(key)
  await clients.patch(client_id, { data: { jwks: { keys: [jwk] }, tokenAuth: 'private_key_jwt' } }, admin)
  return {
    CLIENT_KEY: String(privateKey.export({ format: 'pem', type: 'pkcs8' })),
    CLIENT_JWK: JSON.stringify(privateKey.export({ format: 'jwk' })),
    ...(audience !== undefined && { AUDIENCE: url })
  }
}

/** Runs the programs with this in their names. */
const ONLY = process.env.PROGRAM ?? ''

t.setTimeout(600_000)

t.test('client libraries', { skip }, async (t) => {
  startChromium(t)
  const harness = await startHarness(t)
  const { kit, mark, register, url, user } = harness
  await kit.app.identity.store.collection('users').update(user.user_id, { set: { roles: Object.fromEntries(ROLES.map((role) => [role, true])) } })
  await kit.app.identity.resources.create({ data: { id: 'https://orders.example', name: 'Orders', scopes: { 'orders:read': 'See your orders' }, tokenFormat: 'jwt' } })

  for (const program of PROGRAMS.filter(({ name }) => name.includes(ONLY))) {
    const { name, key, audience, callback = '/callback', result = callback, redirect, button, end, scope, id_token_claims = false, expected } = program
    await t.test(audience === undefined ? name : `${name}, for the issuer`, { skip: findMissing(program) }, async (t) => {
      const origin = `http://127.0.0.1:${await findFreePort()}`
      const app = await register({
        public: program.public ?? false, name, first_party: false, scopes: ['read', 'write', 'orders:read'], redirectUris: [callback, redirect].flatMap((path) => path === undefined ? [] : [origin + path])
      })
      const env = await equip(harness, app, program)
      if (program.public !== true && key === undefined) await mark(app, { pkce: 'optional', id_token_claims })
      await startProgram(t, await build(program), { ISSUER: url, ORIGIN: origin, CLIENT_ID: app.client_id, ...(scope !== undefined && { SCOPE: scope }), ...env })
      await withTab(t, {}, async (tab) => {
        await tab.goto(`${origin}/login`)
        if (button !== undefined) await press(tab, button)
        await typeIn(tab, user)
        await press(tab, 'Allow')
        if (end !== undefined) await press(tab, end)
        await tab.waitForURL((place) => place.origin === origin && place.pathname === result)
        const shown = tab.locator('pre:not(:empty)')
        t.match(JSON.parse(await shown.innerText()), expected(harness))
        // The programs have no icon, and a page asks with a revoked token.
        tab.complaints.length = 0
      })
    })
  }
})
