// `npm run test:clients`: client libraries of others, unmodified and with their default settings. Each program here signs a user
// in through the pages, in Chromium, and shows as JSON what its library makes of it.
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { createTestKey } from '../helpers/assertions.ts'
import { findFreePort } from '../helpers/port.ts'
import { type App, type Harness, startHarness } from '../oidc/harness.ts'
import { press, startChromium, skip, typeIn, withTab } from '../pages/chromium.ts'

const ROOT = import.meta.dirname
const PYTHON = join(ROOT, 'node_modules/.venv/bin/python')
const BUILT = join(ROOT, 'node_modules/.built')

/** How programs of a folder are built and started. The others are scripts. */
const TOOLS = {
  go: { version: ['version'], build: (file: string) => ['-C', join(ROOT, 'go'), 'build', '-o', join(BUILT, file), `./${file.slice('go/'.length)}`], start: (file: string) => [join(BUILT, file)] },
  mvn: { version: ['--version'], build: (file: string) => ['--batch-mode', '--quiet', '--file', join(ROOT, file), `-Dbuilt=${join(BUILT, file)}`, 'package'], start: (file: string) => ['java', '-jar', join(BUILT, file, 'clients.jar')] }
}

interface Program {
  name: string
  file: string
  /** What builds the program. Without it, the program is skipped. */
  tool?: keyof typeof TOOLS
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
  }
]

/** Builds what a tool must build, and returns the command that starts the program. */
async function build ({ file, tool }: Program): Promise<string[]> {
  if (tool === undefined) return [file.endsWith('.py') ? PYTHON : process.execPath, join(ROOT, file)]
  await promisify(execFile)(tool, TOOLS[tool].build(file))
  return TOOLS[tool].start(file)
}

/** Starts a program; resolves when it answers. It is killed when the test ends. */
async function startProgram (t: Test, [command = '', ...args]: string[], env: Record<string, string>): Promise<void> {
  const child = spawn(command, args, { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const closed = once(child, 'close')
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk: string) => { text += chunk })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await closed
    if (!t.passing()) process.stderr.write(text)
  })
  while (child.exitCode === null && !await fetch(`${env.ORIGIN}/nothing`).then(() => true, () => false)) await new Promise((resolve) => setTimeout(resolve, 50))
  if (child.exitCode !== null) throw new Error(`${command} exited: ${text}`)
}

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

t.setTimeout(600_000)

t.test('client libraries', { skip }, async (t) => {
  startChromium(t)
  const harness = await startHarness(t)
  const { kit, mark, register, url, user } = harness
  await kit.app.identity.store.collection('users').update(user.user_id, { set: { roles: Object.fromEntries(ROLES.map((role) => [role, true])) } })

  for (const program of PROGRAMS) {
    const { name, tool, key, audience, callback = '/callback', result = callback, button, id_token_claims = false, expected } = program
    const missing = tool !== undefined && spawnSync(tool, TOOLS[tool].version).status !== 0 && `${tool} is not installed`
    await t.test(audience === undefined ? name : `${name}, for the issuer`, { skip: missing }, async (t) => {
      const origin = `http://127.0.0.1:${await findFreePort()}`
      const app = await register({ public: program.public ?? false, name, first_party: false, redirectUris: [origin + callback] })
      const env = await equip(harness, app, program)
      if (program.public !== true && key === undefined) await mark(app, { pkce: 'optional', id_token_claims })
      await startProgram(t, await build(program), { ISSUER: url, ORIGIN: origin, CLIENT_ID: app.client_id, ...env })
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
