// `npm run test:clients`: client libraries of others, unmodified and with their default settings. Each program here signs a user
// in through the pages, in Chromium, and shows as JSON what its library makes of it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { findFreePort } from '../helpers/port.ts'
import { type Harness, startHarness } from '../oidc/harness.ts'
import { press, startChromium, skip, typeIn, withTab } from '../pages/chromium.ts'

const ROOT = import.meta.dirname
const PYTHON = join(ROOT, 'node_modules/.venv/bin/python')

interface Program {
  name: string
  file: string
  /** The path of its redirect URI. */
  callback?: string
  /** The page where the result is. */
  result?: string
  public?: boolean
  /** The library reads the ID token only. */
  id_token_claims?: boolean
  /** The button that begins the sign-in, if the library has a page of its own. */
  button?: string
  expected: (harness: Harness) => object
}

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
  {
    name: 'oidc-client-ts',
    file: 'oidc-client-ts.js',
    public: true,
    expected: ({ user }) => ({ profile: { sub: user.user_id }, refreshed: true, before: 200, after: 401 })
  }
]

/** Starts a program; resolves when it answers. It is killed when the test ends. */
async function startProgram (t: Test, file: string, env: Record<string, string>): Promise<void> {
  const child = spawn(file.endsWith('.py') ? PYTHON : process.execPath, [join(ROOT, file)], {
    env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe']
  })
  const closed = once(child, 'close')
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk: string) => { text += chunk })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await closed
    if (!t.passing()) process.stderr.write(text)
  })
  while (child.exitCode === null && !await fetch(`${env.ORIGIN}/nothing`).then(() => true, () => false)) await new Promise((resolve) => setTimeout(resolve, 50))
  if (child.exitCode !== null) throw new Error(`${file} exited: ${text}`)
}

t.setTimeout(300_000)

t.test('client libraries', { skip }, async (t) => {
  startChromium(t)
  const harness = await startHarness(t)
  const { kit, mark, register, url, user } = harness
  await kit.app.identity.store.collection('users').update(user.user_id, { set: { roles: Object.fromEntries(ROLES.map((role) => [role, true])) } })

  for (const { name, file, callback = '/callback', result = callback, button, id_token_claims = false, expected, ...kind } of PROGRAMS) {
    await t.test(name, async (t) => {
      const origin = `http://127.0.0.1:${await findFreePort()}`
      const app = await register({ ...kind, name, first_party: false, redirectUris: [origin + callback] })
      if (kind.public !== true) await mark(app, { pkce: 'optional', id_token_claims })
      await startProgram(t, file, { ISSUER: url, ORIGIN: origin, CLIENT_ID: app.client_id, CLIENT_SECRET: app.client_secret })
      await withTab(t, {}, async (tab) => {
        await tab.goto(`${origin}/login`)
        if (button !== undefined) await press(tab, button)
        await typeIn(tab, user)
        await press(tab, 'Allow')
        await tab.waitForURL((place) => place.origin === origin && place.pathname === result)
        const shown = tab.locator('pre:not(:empty)')
        t.match(JSON.parse(await shown.innerText()), expected(harness))
        // The programs have no icon, and a page asks with a revoked token.
        tab.complaints.length = 0
      })
    })
  }
})
