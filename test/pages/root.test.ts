import Fastify from 'fastify'
import t from 'tap'
import { buildApp } from '../../app.ts'
import { readConfig } from '../../config.ts'
import identity from '../../index.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'
const LOGO = `data:image/svg+xml;base64,${btoa('<svg xmlns="http://www.w3.org/2000/svg"/>')}`

async function start (t: { teardown: (fn: () => unknown) => unknown }, env: Record<string, string> = {}) {
  const app = await buildApp(readConfig({ DATABASE_URL: 'sqlite::memory:', IDENTITY_BCRYPT_COST: '4', LOG_LEVEL: 'silent', ...env }))
  t.teardown(() => app.close())
  return app
}

t.test('the root of the service is a page for browsers, and JSON for everybody else', async (t) => {
  const app = await start(t, { IDENTITY_NAME: 'Acme' })
  for (const [accept, isPage] of [
    [undefined, false], ['*/*', false], ['application/json', false], ['application/json, text/html;q=0.9', false], ['image/png', false],
    [BROWSER, true], ['text/html', true], ['text/*', true], ['text/html;q=0.5, application/json;q=0.4', true]
  ] as const) {
    const reply = await app.inject({ url: '/', headers: accept === undefined ? {} : { accept } })
    t.equal(reply.statusCode, 200)
    t.match(reply.headers.vary, /^Accept(, Accept-Encoding)?$/, accept ?? 'none')
    t.match(reply.headers['content-type'], isPage ? /^text\/html/ : /^application\/json/, accept ?? 'none')
  }
  const page = await app.inject({ url: '/', headers: { accept: BROWSER } })
  t.match(page.body, '<title>Your account - Acme</title>')
  const links = [...page.body.matchAll(/<a[^>]* href="(\/[^"]*)"/g)].map(([, path = '']) => path)
  t.strictSame(links, ['/account', '/docs'])
  for (const url of links) t.ok((await app.inject({ url, headers: { accept: BROWSER } })).statusCode < 400, url)
  t.match((await app.inject({ url: '/?language=de', headers: { accept: BROWSER } })).body, '<html lang="de">')
})

t.test('the page has no link to what is off, and without pages there is only JSON', async (t) => {
  const app = await start(t, { IDENTITY_ACCOUNT_PATH: 'off', IDENTITY_OPENAPI: 'off' })
  t.notMatch((await app.inject({ url: '/', headers: { accept: BROWSER } })).body, /href="\//)
  const bare = await start(t, { IDENTITY_OIDC: 'off' })
  t.match((await bare.inject({ url: '/', headers: { accept: BROWSER } })).headers['content-type'], /json/)
})

t.test('an unknown path is a page for browsers, and JSON for everybody else', async (t) => {
  const app = await start(t, { IDENTITY_NAME: 'Acme' })
  for (const url of ['/nope', '/nope?language=de']) {
    const page = await app.inject({ url, headers: { accept: BROWSER } })
    t.equal(page.statusCode, 404, url)
    t.equal(page.headers.vary, 'Accept, Accept-Encoding')
    t.match(page.headers['content-type'], /^text\/html/, url)
    t.match(page.headers['content-security-policy'], /default-src 'none'/)
    t.match(page.body, url.endsWith('de') ? '<html lang="de">' : '<a href="/account">', url)
    t.notMatch(page.body, 'nope<', 'it repeats nothing of the path')
    for (const headers of [{}, { accept: '*/*' }, { accept: 'application/json' }]) t.match((await app.inject({ url, headers })).json(), { code: 'ErrNotFound' }, url)
    t.match((await app.inject({ method: 'POST', url, headers: { accept: BROWSER, 'content-type': 'application/json' }, payload: '{' })).json(), { code: 'ErrNotFound' })
  }
  t.match((await app.inject({ url: '/api/v1/nope', headers: { accept: BROWSER } })).json(), { code: 'ErrNotFound' }, 'the API answers as everywhere')
  const bare = await start(t, { IDENTITY_OIDC: 'off' })
  t.match((await bare.inject({ url: '/nope', headers: { accept: BROWSER } })).json(), { code: 'ErrNotFound' })
})

t.test('the service has an icon: its logo, or a drawing', async (t) => {
  for (const [env, pattern] of [[{}, /<circle/], [{ IDENTITY_LOGO: LOGO }, /^<svg xmlns="http:\/\/www.w3.org\/2000\/svg"\/>$/]] as const) {
    const app = await start(t, env)
    const reply = await app.inject('/favicon.ico')
    t.equal(reply.statusCode, 200)
    t.equal(reply.headers['content-type'], 'image/svg+xml')
    t.equal(reply.headers['x-content-type-options'], 'nosniff')
    t.match(reply.headers['content-security-policy'], /default-src 'none'.*sandbox/)
    t.match(reply.body, pattern)
    const page = (await app.inject('/account/forgot')).body
    const [, inline = ''] = /<link rel="icon" href="data:image\/svg\+xml;base64,([^"]*)">/.exec(page) ?? []
    t.equal(atob(inline), reply.body, 'the same as in the pages')
  }
})

t.test('an app that embeds the plugin keeps its own root and icon', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(identity, { database: 'sqlite::memory:', bcryptCost: 4 })
  await app.ready()
  for (const url of ['/', '/favicon.ico']) t.equal((await app.inject({ url, headers: { accept: BROWSER } })).statusCode, 404, url)
})

t.test('the well-known addresses lead to the pages of the account', async (t) => {
  const app = await start(t, { IDENTITY_ISSUER: 'https://id.example/base', IDENTITY_ACCOUNT_PATH: '/me' })
  const endpoints = await app.inject({ url: '/.well-known/passkey-endpoints' })
  t.strictSame(endpoints.json(), { enroll: 'https://id.example/base/me/factors/passkeys', manage: 'https://id.example/base/me/methods' })
  t.match(endpoints.headers['content-type'], /^application\/json/)
  const change = await app.inject({ url: '/.well-known/change-password' })
  t.strictSame([change.statusCode, change.headers.location], [302, '/base/me/password'])
  const off = await start(t, { IDENTITY_ISSUER: 'https://id.example', IDENTITY_PASSKEYS: 'off' })
  t.equal((await off.inject({ url: '/.well-known/passkey-endpoints' })).statusCode, 404)
  t.equal((await off.inject({ url: '/.well-known/change-password' })).headers.location, '/account/password')
  const bare = await start(t, { IDENTITY_ISSUER: 'https://id.example', IDENTITY_ACCOUNT_PATH: 'off' })
  for (const path of ['passkey-endpoints', 'change-password']) t.equal((await bare.inject({ url: `/.well-known/${path}` })).statusCode, 404, path)
})
