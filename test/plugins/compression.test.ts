import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import t from 'tap'
import { buildApp } from '../../app.ts'
import { readConfig } from '../../config.ts'
import { maskXsrf, unmaskXsrf } from '../../lib/pages/xsrf.ts'

async function start (t: { teardown: (fn: () => unknown) => unknown }) {
  const app = await buildApp(readConfig({ DATABASE_URL: 'sqlite::memory:', IDENTITY_BCRYPT_COST: '4', LOG_LEVEL: 'silent' }))
  t.teardown(() => app.close())
  return app
}

t.test('a page is compressed as the browser accepts it, and is the same page', async (t) => {
  const app = await start(t)
  const plain = await app.inject('/account/sign-in')
  t.equal(plain.headers['content-encoding'], undefined)
  t.match(plain.headers.vary, 'Accept-Encoding')
  for (const [accepted, encoding, open] of [
    ['gzip, deflate, br, zstd', 'br', brotliDecompressSync], ['gzip', 'gzip', gunzipSync], ['br;q=0, gzip;q=0.5', 'gzip', gunzipSync]
  ] as const) {
    const reply = await app.inject({ url: '/account/sign-in', headers: { 'accept-encoding': accepted } })
    t.equal(reply.statusCode, 200)
    t.equal(reply.headers['content-encoding'], encoding, accepted)
    t.equal(Number(reply.headers['content-length']), reply.rawPayload.length)
    t.ok(reply.rawPayload.length < 5_000, `${reply.rawPayload.length} bytes`)
    const withoutIds = (page: string) => page.replaceAll(/value="[^"]*"/g, '')
    t.equal(withoutIds(open(reply.rawPayload).toString()), withoutIds(plain.body), accepted)
  }
  for (const accepted of ['identity', 'zstd', '', 'x'.repeat(1_000)]) {
    const reply = await app.inject({ url: '/account/sign-in', headers: { 'accept-encoding': accepted } })
    t.equal(reply.headers['content-encoding'], undefined, accepted)
    t.match(reply.body, '<!DOCTYPE html>')
  }
})

t.test('what programs read, and HEAD, are as they were', async (t) => {
  const app = await start(t)
  const headers = { 'accept-encoding': 'gzip, br' }
  for (const url of ['/', '/api/v1/nope', '/.well-known/openid-configuration', '/openapi.json']) {
    const reply = await app.inject({ url, headers })
    t.equal(reply.headers['content-encoding'], undefined, url)
    t.doesNotThrow(() => reply.json(), url)
  }
  t.equal((await app.inject({ method: 'HEAD', url: '/account/sign-in', headers })).body, '')
})

t.test('the token of a form is another text on every page, and the same for the service', (t) => {
  const token = 'c2VjcmV0-_0123456789'
  const page = `<form><input type="hidden" name="xsrf" value="${token}"></form><p>${token}</p>`
  const seen = new Set<string>()
  for (let count = 0; count < 100; count++) {
    const [, masked = ''] = /name="xsrf" value="([^"]*)"/.exec(maskXsrf(page)) ?? []
    seen.add(masked)
    t.equal(unmaskXsrf(masked), token)
    t.notMatch(masked, token.slice(0, 4))
  }
  t.equal(seen.size, 100)
  for (const text of [token, '', '~', '~a~', '~~', 'a~b~c', '~a~b~c']) t.equal(unmaskXsrf(text), text)
  t.end()
})
