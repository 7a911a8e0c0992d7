import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createMongoDatabase } from './helpers/mongo-database.ts'
import { MONGODB_URL } from './helpers/mongodb.ts'
import { runProgram, serviceEnv, startCommand } from './helpers/process.ts'

const ROOT = join(import.meta.dirname, '..')
const LISTENS = /"msg":"Server listening at (http:[^"]+)"/

type Environment = Record<string, string>

/** Starts the service with an environment in which it has made its first token, asks whose that is, and lists the modules that were loaded. */
async function listModules (t: Test, dir: string, env: Environment, token: string): Promise<string[]> {
  const list = join(dir, 'modules')
  const args = ['--import', new URL('helpers/list-modules.ts', import.meta.url).href, join(ROOT, 'server.ts')]
  const service = startCommand(t, process.execPath, { args, env: { ...env, LOADED_MODULES: list } })
  const [, url = ''] = await service.seen(LISTENS)
  const answer = await fetch(`${url}/api/v1/auth/tokeninfo`, { headers: { authorization: `Bearer ${token}` } })
  t.equal(answer.status, 200)
  service.child.kill('SIGTERM')
  t.equal(await service.ended, 0)
  return readFileSync(list, 'utf8').split('\n').map((url) => url.replace(`file://${ROOT}/`, ''))
}

/** Makes a database with a token. */
async function prepare (t: Test, env: Environment): Promise<string> {
  const { stdout } = await runProgram(t, 'cli.ts', { args: ['bootstrap', '--json'], env })
  return (JSON.parse(stdout) as { access_token: string }).access_token
}

/** What is not loaded before it is used, by what uses it. */
const LATER: Record<string, RegExp> = {
  'a password': /^node_modules\/piscina\//,
  'a sign-in': /^node_modules\/(oidc-provider\/lib|koa)\/|^lib\/oidc\/provider\.ts$/,
  'a page': /^lib\/pages\/index\.ts$/,
  'a passkey': /^node_modules\/@simplewebauthn\//,
  'an authenticator app': /^node_modules\/(otpauth|uqr)\//,
  'a CSV list': /^node_modules\/(fast-csv|@fast-csv)\/|^lib\/lists\/csv\.ts$/,
  'the API\'s document': /^node_modules\/@fastify\/swagger/,
  'an import': /^lib\/import\/(?!index\.ts$)/,
  'an export that is sealed': /^node_modules\/age-encryption\/|^lib\/export\/seal\.ts$/,
  'a mail': /^node_modules\/nodemailer\//,
  'a request to another service': /^node_modules\/undici\/|^lib\/service-client\/(?!address\.ts$)/,
  'a client from a document': /^lib\/client-documents\/documents\.ts$/,
  'an operator\'s command': /^lib\/maintenance\/(backup|compact|doctor|move)/,
  'the text of a log for people': /^node_modules\/pino-pretty\//,
  'nothing of the service': /^node:internal\/deps\/undici\//
}

/** What is loaded only while a capability is on, and the variables that turn it on. */
const CAPABILITIES: Record<string, { modules: RegExp, on: (dir: string) => Environment }> = {
  metrics: { modules: /^node_modules\/prom-client\/|^lib\/metrics\/(?!watch-store\.ts$)/, on: () => ({ IDENTITY_METRICS: '127.0.0.1:0' }) },
  'forward authentication': {
    modules: /^(routes|plugins|schemas)\/forward-/, on: () => ({ IDENTITY_FORWARD_AUTH: 'on' })
  },
  'personal access tokens': {
    modules: /^(routes|schemas|routes\/account)\/personal-token\.ts$|^routes\/account\/tokens\.ts$|^lib\/personal-tokens\//, on: () => ({ IDENTITY_PERSONAL_TOKENS: '30' })
  },
  bridge: { modules: /^routes\/bridge\.ts$|^lib\/bridge\//, on: () => ({ IDENTITY_BRIDGE_PREFIX: '/bridge' }) },
  upstreams: {
    modules: /^routes\/upstreams?\b|^lib\/upstreams\/(?!(?:authority|failure|kinds|policy|removed|settings)\.ts$)/,
    on (dir) {
      const [file, secret] = [join(dir, 'upstreams.json'), join(dir, 'upstream-secret')]
      writeFileSync(secret, 'a secret of the test')
      writeFileSync(file, JSON.stringify([{ id: 'google', kind: 'google', clientId: 'c', clientSecretFile: secret }]))
      return { IDENTITY_UPSTREAMS_FILE: file, IDENTITY_ISSUER: 'http://localhost' }
    }
  }
}

const STORES: Record<string, { own: RegExp, createUrl: (t: Test, dir: string) => string }> = {
  sqlite: { own: /^node:sqlite$|^lib\/store\/sqlite/, createUrl: (_t, dir) => `sqlite:${join(dir, 'identity.db')}` },
  mongodb: { own: /^node_modules\/(mongodb|bson)\/|^lib\/store\/mongo/, createUrl: (t) => createMongoDatabase(t, MONGODB_URL ?? '') }
}

for (const [engine, { own, createUrl }] of Object.entries(STORES)) {
  t.test(`a start on ${engine} loads what its first answer needs`, { skip: engine === 'mongodb' && MONGODB_URL === undefined }, async (t) => {
    const off = { IDENTITY_BRIDGE_PREFIX: 'off' }
    const dir = t.testdir()
    const env = serviceEnv(dir, { DATABASE_URL: createUrl(t, dir), IDENTITY_SECRET_KEY: Buffer.alloc(32, 1).toString('base64'), ...off })
    const token = await prepare(t, env)
    const modules = await listModules(t, dir, env, token)
    t.ok(modules.some((name) => own.test(name)), engine)
    for (const [other, { own }] of Object.entries(STORES)) if (other !== engine) t.strictSame(modules.filter((name) => own.test(name)), [], other)
    for (const [use, pattern] of Object.entries(LATER)) t.strictSame(modules.filter((name) => pattern.test(name)), [], `for ${use}`)
    for (const [capability, { modules: pattern }] of Object.entries(CAPABILITIES)) t.strictSame(modules.filter((name) => pattern.test(name)), [], `for ${capability}`)
    const on = Object.assign({}, ...Object.values(CAPABILITIES).map(({ on }) => on(dir))) as Environment
    const all = await listModules(t, dir, { ...env, ...on }, token)
    for (const [capability, { modules: pattern }] of Object.entries(CAPABILITIES)) t.ok(all.some((name) => pattern.test(name)), `${capability} is on`)
  })
}
