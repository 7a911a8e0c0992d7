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
      t.match(answer.text, 'This sign-in is over')
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
