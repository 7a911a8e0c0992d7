import t from 'tap'
import { askCode, eachStore, getCode, signIn } from './harness.ts'

eachStore(t, 'the code flow', async (t, start) => {
  const harness = await start()
  const { post, get, register, user } = harness
  const app = await register()

  await t.test('a code is exchanged for tokens that every route of the API accepts', async (t) => {
    const tokens = await post('token', await getCode(harness, app), app)
    t.match(tokens, { status: 200, body: { token_type: 'Bearer', expires_in: 3600, scope: 'openid read offline_access' } })
    const token = String(tokens.body.access_token)
    t.match(await get('tokeninfo', token), { status: 200, body: { data: { user_id: user.user_id, client_id: app.client_id } } })
    const data = (await get('tokeninfo', token)).body.data as Record<string, unknown>
    t.strictSame(data, {
      user_id: user.user_id, account: user.account, name: 'Ann', roles: {}, roles_withheld: true, client_id: app.client_id, scopes: ['read'], acr: '1', amr: ['pwd'], auth_time: data.auth_time
    }, 'scopes are narrowed to those granted')
    t.strictSame((await get('userinfo', token)).body, { sub: user.user_id })
    t.match(await get('userinfo'), { status: 401 })
  })

  await t.test('scopes that a client may request', async (t) => {
    for (const [scope, granted] of [
      [undefined, 'read write'],
      ['openid', 'openid'],
      ['write', 'write'],
      ['openid roles profile email', 'openid roles profile email']
    ] as const) {
      const tokens = await post('token', await getCode(harness, app, { scope }), app)
      t.equal(tokens.body.scope, granted, `requested ${scope}`)
      t.equal(tokens.body.refresh_token, undefined, 'without offline_access there is no refresh token')
    }
    const { left } = await signIn(harness, askCode(app, { scope: 'openid foreign' }).url)
    t.match(Object.fromEntries(left?.searchParams ?? []), { error: 'invalid_scope', state: 'abc', iss: harness.url })
    const bare = await register({ scopes: [] })
    t.equal((await post('token', await getCode(harness, bare, { scope: undefined }), bare)).body.scope, 'openid')
  })

  await t.test('the scope roles gives the claim roles', async (t) => {
    await harness.kit.app.identity.users.patch(user.user_id, { data: { roles: { clerk: true } } }, { user_id: 'x', isAdmin: true })
    const tokens = await post('token', await getCode(harness, app, { scope: 'openid roles' }), app)
    t.match((await get('userinfo', String(tokens.body.access_token))).body, { roles: ['clerk'] })
  })

  await t.test('a second use of a code ends the token session of the first', async (t) => {
    const code = await getCode(harness, app)
    const { body } = await post('token', code, app)
    t.match(await post('token', code, app), { status: 400, body: { error: 'invalid_grant' } })
    t.match(await get('tokeninfo', String(body.access_token)), { status: 401 })
    t.match(await post('token', { grant_type: 'refresh_token', refresh_token: String(body.refresh_token) }, app), { status: 400, body: { error: 'invalid_grant' } })
  })

  await t.test('concurrent uses of one code: at most one gets tokens, and they are revoked', async (t) => {
    const code = await getCode(harness, app)
    const answers = await Promise.all(Array.from({ length: 8 }, () => post('token', code, app)))
    const won = answers.filter(({ status }) => status === 200)
    t.ok(won.length <= 1)
    t.ok(answers.filter(({ status }) => status !== 200).every(({ body }) => body.error === 'invalid_grant'))
    for (const { body } of won) t.match(await get('tokeninfo', String(body.access_token)), { status: 401 })
  })

  await t.test('a sign-in serves the next authorization too, which has its own token session', async (t) => {
    const browser = harness.browser()
    const first = await post('token', await getCode(harness, app, {}, browser), app)
    const { url, verifier } = askCode(app, { prompt: 'none' })
    const { left } = await browser.open(url)
    const again = await post('token', {
      grant_type: 'authorization_code', code: left?.searchParams.get('code') ?? '', code_verifier: verifier, redirect_uri: app.redirect_uri
    }, app)
    t.equal(again.status, 200)
    await post('revoke', { token: String(first.body.refresh_token) }, app)
    t.match(await get('tokeninfo', String(first.body.access_token)), { status: 401 })
    t.match(await get('tokeninfo', String(again.body.access_token)), { status: 200 })
  })

  await t.test('a public client needs no secret and cannot use client credentials', async (t) => {
    const spa = await register({ public: true, redirectUris: ['http://127.0.0.1/cb', 'https://spa.example/cb'] })
    t.match(await post('token', await getCode(harness, spa, { redirect_uri: 'http://127.0.0.1:51004/cb' }), spa), { status: 200 })
    t.match(await post('token', { grant_type: 'client_credentials' }, spa), { status: 400, body: { error: 'invalid_request' } })
    const foreign = await harness.browser().open(askCode(spa, { redirect_uri: 'https://spa.example:8443/cb' }).url)
    t.match(foreign.response, { status: 400 }, 'other URIs match exactly')
    t.match(foreign.title, 'Something went wrong')
  })

  await t.test('every kind of redirect URI works', async (t) => {
    const redirectUris = ['com.example.app:/cb', 'http://localhost:3000/cb', 'https://localhost/cb', 'http://[::1]/cb']
    for (const open of [true, false]) {
      const mixed = await register({ public: open, redirectUris })
      for (const redirect_uri of redirectUris) {
        const { left } = await signIn(harness, askCode(mixed, { redirect_uri }).url)
        t.ok(left?.href.startsWith(redirect_uri), redirect_uri)
        t.ok(left?.searchParams.has('code'), redirect_uri)
      }
    }
  })
})
