import fastify from 'fastify'
import t from 'tap'
import { askCode, eachStore, signIn, startHarness } from './harness.ts'

t.test('the port of a loopback URI may vary for a public client, and for no other (RFC 8252, 7.3)', async (t) => {
  const harness = await startHarness(t)
  const redirectUris = ['http://127.0.0.1/cb', 'http://localhost:3000/cb', 'https://app.example/cb']
  const open = await harness.register({ public: true, redirectUris })
  const confidential = await harness.register({ redirectUris })
  const answer = async (app: typeof open, redirect_uri: string) => {
    const page = await signIn(harness, askCode(app, { redirect_uri }).url)
    return page.left === undefined ? page.response.status : `${page.left.origin}${page.left.pathname}`
  }
  for (const uri of redirectUris) {
    t.equal(await answer(open, uri), uri, `${uri}, as registered, public`)
    t.equal(await answer(confidential, uri), uri, `${uri}, as registered, confidential`)
  }
  for (const uri of ['http://127.0.0.1:51004/cb', 'http://localhost/cb', 'http://localhost:51004/cb']) {
    t.equal(await answer(open, uri), uri, `${uri}, public`)
    t.equal(await answer(confidential, uri), 400, `${uri}, confidential`)
  }
  for (const uri of ['http://127.0.0.1:51004/other', 'http://127.0.0.2/cb', 'https://app.example:8443/cb', 'https://app.example/cb?a=1', 'https://app.example/CB']) {
    t.equal(await answer(open, uri), 400, `${uri}, public`)
    t.equal(await answer(confidential, uri), 400, `${uri}, confidential`)
  }
})

t.test('a loopback URI with an impossible port is refused, without a server error', async (t) => {
  const harness = await startHarness(t)
  const app = await harness.register({ public: true, redirectUris: ['http://127.0.0.1/cb'] })
  for (const port of ['65536', '99999', '999999999999']) {
    const redirect_uri = `http://127.0.0.1:${port}/cb`
    const page = await harness.browser().open(askCode(app, { redirect_uri }).url)
    t.equal(page.response.status, 400, port)
    t.match(page.text, 'redirect_uri did not match')
    const pushed = await harness.post('par', { response_type: 'code', redirect_uri, scope: 'openid' }, app)
    t.match(pushed, { status: 400 })
    const end = await harness.browser().open(`/api/v1/auth/session/end?${new URLSearchParams({ client_id: app.client_id, post_logout_redirect_uri: redirect_uri })}`)
    t.equal(end.response.status, 400)
  }
})

t.test('a refused redirect URI is on the page, escaped and bounded, and in the log without its query', async (t) => {
  const lines: Record<string, unknown>[] = []
  const write = (line: string) => { lines.push(JSON.parse(line)) }
  const harness = await startHarness(t, { app: fastify({ logger: { level: 'info', stream: { write } } }) })
  const app = await harness.register({ redirectUris: ['https://app.example/cb'] })
  const ask = async (redirect_uri: string) => {
    lines.length = 0
    const page = await harness.browser().open(askCode(app, { redirect_uri }).url)
    t.equal(page.response.status, 400)
    const { client_id, redirect_uri: logged } = lines.find(({ msg }) => String(msg).startsWith('a redirect URI was refused')) ?? {}
    t.equal(client_id, app.client_id)
    return { text: page.text, logged: String(logged) }
  }
  const other = await ask('https://app.example/api/auth/callback/identity')
  t.match(other.text, 'registered redirect_uris: https://app.example/api/auth/callback/identity</span>')
  t.equal(other.logged, 'https://app.example/api/auth/callback/identity')
  const secret = await ask('https://ann:hunter2@app.example/x?code=hunter2#hunter2')
  t.equal(secret.logged, 'https://***@app.example/x')
  const marked = await ask('https://app.example/"><script>alert(1)</script>')
  t.notMatch(marked.text, '<script>alert')
  t.match(marked.text, '&lt;script&gt;')
  const reversed = await ask('https://app.example/\u202eevil\u0000')
  for (const sign of ['\u202e', '\u0000']) t.notMatch(reversed.text, sign)
  const long = await ask(`https://app.example/${'a'.repeat(2000)}`)
  t.notMatch(long.text, 'a'.repeat(300))
  t.ok(long.logged.length <= 300)

  lines.length = 0
  await harness.browser().open(askCode(app, { code_challenge: undefined }).url)
  t.notOk(lines.some(({ msg }) => String(msg).startsWith('a redirect URI was refused')), 'no other error is about the URI')
})

eachStore(t, 'a redirect URI that is taken off the client while its user decides', async (t, start) => {
  const harness = await start()
  const { browser, mark, register, user } = harness
  const begin = async () => {
    const app = await register({ first_party: false, redirectUris: ['https://app.example/cb', 'https://old.example/cb'] })
    const sign = await browser().open(askCode(app, { redirect_uri: 'https://old.example/cb' }).url)
    return { app, sign, consent: async () => await sign.submit({ account: user.account, password: user.password }) }
  }
  const remove = async (app: Awaited<ReturnType<typeof register>>) => await mark(app, { redirectUris: ['https://app.example/cb'] })

  for (const decision of ['allow', 'deny']) {
    await t.test(`gets no answer: ${decision}`, async (t) => {
      const { app, consent } = await begin()
      const page = await consent()
      t.match(page.title, 'Continue to')
      await remove(app)
      const answer = await page.submit({ decision })
      t.equal(answer.left, undefined)
      t.equal(answer.response.status, 400)
      t.match(answer.text, 'This sign-in has expired')
    })
  }

  await t.test('at the sign-in', async (t) => {
    const { app, sign, consent } = await begin()
    await remove(app)
    t.equal((await consent()).response.status, 400)
    t.equal((await sign.submit({ cancel: 'yes' })).left, undefined)
  })

  await t.test('after the decision, before the code', async (t) => {
    const { app, consent } = await begin()
    const page = await consent()
    const action = /action="([^"]*)"/.exec(page.text)?.[1] ?? ''
    const decided = await page.browser.fetch(action, { method: 'POST', body: new URLSearchParams({ decision: 'allow' }), headers: { origin: harness.url } })
    t.equal(decided.status, 303)
    await remove(app)
    const answer = await page.browser.open(decided.headers.get('location') ?? '')
    t.equal(answer.left, undefined)
    t.equal(answer.response.status, 400)
    t.equal(await harness.kit.app.identity.store.collection('authorization_codes').count(), 0)
    t.equal(await harness.kit.app.identity.store.collection('grants').count(), 0)
  })
})

eachStore(t, 'an error that is found before the person has seen a page', async (t, start) => {
  const harness = await start()
  const { browser, register, post, user, kit } = harness
  const unvouched = await register({ first_party: false })
  const vouched = await register()
  const errors: [name: string, error: string, params: Record<string, string | undefined>, more?: string][] = [
    ['a scope that it does not have', 'invalid_scope', { scope: 'openid users:write' }],
    ['no PKCE', 'invalid_request', { code_challenge: undefined, code_challenge_method: undefined }],
    ['another response type', 'unsupported_response_type', { response_type: 'token' }],
    ['a resource that does not exist', 'invalid_target', { resource: 'https://none.example/' }],
    ['a wrong max_age', 'invalid_request', { max_age: 'x' }],
    ['a signed request without a signature', 'invalid_request_object', { request: 'e30.e30.' }],
    ['a scope twice', 'invalid_request', {}, '&scope=openid'],
    ['as a form', 'invalid_scope', { scope: 'openid users:write', response_mode: 'form_post' }],
    ['in the fragment', 'invalid_scope', { scope: 'openid users:write', response_mode: 'fragment' }]
  ]

  await t.test('ends on our page for a client that nobody vouches for, with a link that names the host', async (t) => {
    for (const [name, error, params, more = ''] of errors) {
      const page = await browser().open(askCode(unvouched, params).url + more)
      t.match(page, { left: undefined, response: { status: 400 }, error }, name)
      t.match(page.text.replaceAll('&#x2F;', '/'), /<bdi>app\.example<\/bdi>.*<a rel="noreferrer" href="https:\/\/app\.example\/">/s, name)
      t.notMatch(page.text, /<form/, `${name}: nothing submits itself`)
      t.equal(page.response.headers.get('location'), null)
    }
    const german = await browser().open(askCode(unvouched, { scope: 'openid users:write', ui_locales: 'de' }).url)
    t.match(german, { left: undefined, error: 'invalid_scope', text: /lang="de"/ })
  })

  await t.test('goes to one that the operator vouches for', async (t) => {
    for (const [name, error, params, more = ''] of errors) {
      const page = await browser().open(askCode(vouched, params).url + more)
      if (params.response_mode === 'form_post') t.match(page.text, new RegExp(`name="error" value="${error}"`), name)
      else if (params.response_mode === 'fragment' || params.response_type === 'token') t.match(page.left?.hash, new RegExp(`error=${error}`), name)
      else t.match(page, { left: { origin: 'https://app.example' }, error }, name)
    }
  })

  await t.test('goes to every app with prompt=none, which shows no page', async (t) => {
    for (const app of [unvouched, vouched]) {
      t.match(await browser().open(askCode(app, { prompt: 'none' }).url), { left: { origin: 'https://app.example' }, error: 'login_required' })
      t.match(await browser().open(askCode(app, { prompt: 'none', scope: 'openid users:write' }).url), { left: { origin: 'https://app.example' }, error: 'invalid_scope' })
    }
    for (const prompt of ['login', 'consent', 'nonesuch']) t.match(await browser().open(askCode(unvouched, { prompt, scope: 'openid users:write' }).url), { left: undefined, error: String }, prompt)
  })

  await t.test('after a page the app gets its answer', async (t) => {
    const sign = await browser().open(askCode(unvouched).url)
    t.match(await sign.submit({ cancel: 'yes' }), { left: { origin: 'https://app.example' }, error: 'access_denied' })
    const consent = await (await browser().open(askCode(unvouched).url)).submit({ account: user.account, password: user.password })
    t.match(await consent.submit({ decision: 'deny' }), { left: { origin: 'https://app.example' }, error: 'access_denied' })
    const page = await (await browser().open(askCode(unvouched).url)).submit({ account: user.account, password: user.password })
    const action = /action="([^"]*)"/.exec(page.text)?.[1] ?? ''
    const decided = await page.browser.fetch(action, { method: 'POST', body: new URLSearchParams({ decision: 'allow' }), headers: { origin: harness.url } })
    await kit.app.identity.clients.patch(unvouched.client_id, { data: { scopes: ['write'] } }, { user_id: user.user_id, isAdmin: true })
    t.match(await page.browser.open(decided.headers.get('location') ?? ''), { left: { origin: 'https://app.example' }, error: 'invalid_scope' }, 'an error that comes with the code')
    await kit.app.identity.clients.patch(unvouched.client_id, { data: { scopes: ['read', 'write'] } }, { user_id: user.user_id, isAdmin: true })
  })

  await t.test('the same for a request that the client has pushed', async (t) => {
    const toPushed = async (app: typeof unvouched, params: Record<string, string>) => {
      const { status, body } = await post('par', Object.fromEntries(new URL(askCode(app, params).url, harness.url).searchParams), app)
      t.equal(status, 201)
      return `/api/v1/auth/authorize?${new URLSearchParams({ client_id: app.client_id, request_uri: String(body.request_uri) })}`
    }
    for (const app of [unvouched, vouched]) {
      const url = await toPushed(app, {})
      await kit.app.identity.clients.patch(app.client_id, { data: { scopes: ['write'] } }, { user_id: user.user_id, isAdmin: true })
      t.match(await browser().open(url), app === vouched ? { left: { origin: 'https://app.example' }, error: 'invalid_scope' } : { left: undefined, error: 'invalid_scope' })
    }
  })
})
