import t from 'tap'
import { Browser } from '../oidc/browser.ts'
import { askCode, getCode, signIn, startHarness } from '../oidc/harness.ts'

t.test('authorization and end-session requests by a form of another site', async (t) => {
  const harness = await startHarness(t)
  const { url, post, register } = harness
  const app = await register()
  const AUTHORIZE = '/api/v1/auth/authorize'
  const END = '/api/v1/auth/session/end'
  const send = async (path: string, body?: RequestInit['body'], headers: Record<string, string> = {}) =>
    await fetch(`${url}${path}`, { method: 'POST', redirect: 'manual', headers: { accept: 'text/html', origin: 'https://app.example', ...headers }, ...(body !== undefined && { body }) })

  await t.test('a form is answered by a redirect to the GET with the same parameters, and stores nothing', async (t) => {
    for (const path of [AUTHORIZE, END]) {
      const reply = await send(path, new URLSearchParams([['state', 'a b&c=d\r\nx: y'], ['scope', 'openid ü'], ['scope', 'twice']]))
      t.equal(reply.status, 303)
      t.equal(reply.headers.get('location'), `${path}?state=a+b%26c%3Dd%0D%0Ax%3A+y&scope=openid+%C3%BC&scope=twice`)
      t.equal(reply.headers.get('cache-control'), 'no-store')
      t.strictSame(reply.headers.getSetCookie(), [])
      t.equal((await send(path)).headers.get('location'), path, 'an empty form')
    }
    for (const name of ['interactions', 'sign_in_sessions']) t.equal(await harness.kit.app.identity.store.collection(name).count(), 0, name)
  })

  await t.test('a form that is not UTF-8 is refused', async (t) => {
    for (const path of [AUTHORIZE, END]) {
      const reply = await send(path, 'state=%e9', { 'content-type': 'application/x-www-form-urlencoded' })
      t.equal(reply.status, 400)
      t.match(await reply.text(), 'body: must be UTF-8')
    }
  })

  await t.test('a user signs in and out', async (t) => {
    const browser = new Browser(url)
    const { url: asked, verifier } = askCode(app)
    const [, query = ''] = asked.split('?')
    let page = await browser.open(AUTHORIZE, { method: 'POST', body: new URLSearchParams(query), headers: { origin: 'https://app.example' } })
    t.equal(page.title, 'Sign in')
    page = await page.submit({ account: harness.user.account, password: harness.user.password })
    const tokens = await post('token', {
      grant_type: 'authorization_code', code: page.left?.searchParams.get('code') ?? '', code_verifier: verifier, redirect_uri: app.redirect_uri
    }, app)
    t.match(tokens, { status: 200 })
    const form = new URLSearchParams({ id_token_hint: String(tokens.body.id_token), post_logout_redirect_uri: app.redirect_uri, state: 'bye' })
    page = await browser.open(END, { method: 'POST', body: form })
    t.equal(page.title, 'Sign out')
    t.equal((await page.submit({ logout: 'yes' })).left?.href, `${app.redirect_uri}?state=bye`)
  })

  await t.test('another type, and a form that is too long for a query', async (t) => {
    for (const path of [AUTHORIZE, END]) {
      for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x']) {
        const reply = await send(path, '{}', { 'content-type': type })
        t.equal(reply.status, 415, type)
        t.match(await reply.text(), 'content-type: must be application/x-www-form-urlencoded')
      }
      for (const [length, text] of [[8200, 'x'], [3000, 'ü']] as const) {
        const reply = await send(path, `state=${text.repeat(length)}`, { 'content-type': 'application/x-www-form-urlencoded' })
        t.equal(reply.status, 413, `${length} characters`)
        t.match(await reply.text(), 'What you entered is too large.')
      }
      const fits = await send(path, `state=${'x'.repeat(8000)}`, { 'content-type': 'application/x-www-form-urlencoded' })
      t.equal(fits.status, 303)
      t.equal((await fetch(new URL(fits.headers.get('location') ?? '', url))).status < 431, true, 'the GET accepts the longest query')
    }
  })
})

t.test('behind a proxy that strips a path, the redirect leads to the path that browsers see', async (t) => {
  const { kit } = await startHarness(t, { oidc: { issuer: 'https://id.example/base' } })
  const reply = await kit.inject({
    method: 'POST', url: '/api/v1/auth/session/end', payload: 'state=a', headers: { 'content-type': 'application/x-www-form-urlencoded' }
  })
  t.equal(reply.headers.location, '/base/api/v1/auth/session/end?state=a')
})

t.test('revocation is answered without content and its type (RFC 7009, 2.2)', async (t) => {
  const harness = await startHarness(t)
  const app = await harness.register()
  const { body } = await harness.post('token', await getCode(harness, app), app)
  for (const token of [String(body.refresh_token), 'unknown']) {
    const reply = await harness.post('revoke', { token }, app)
    t.equal(reply.status, 200)
    t.equal(reply.headers.get('content-type'), null)
    t.equal(reply.headers.get('content-length'), '0')
    t.strictSame(reply.body, { text: '' })
  }
  t.match((await signIn(harness, askCode(app).url)).left?.searchParams.get('code'), /./)
})
