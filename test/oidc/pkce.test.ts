import t from 'tap'
import { type App, askCode, eachStore, getCode, signIn } from './harness.ts'

const PLAIN = { code_challenge: undefined, code_challenge_method: undefined }
const REQUIRED = { error: 'invalid_request', error_description: /requires PKCE/ }

eachStore(t, 'PKCE', async (t, start) => {
  const harness = await start()
  const { mark, post, register } = harness
  const ask = async (app: App, params: Record<string, string | undefined> = PLAIN) =>
    Object.fromEntries((await signIn(harness, askCode(app, params).url)).left?.searchParams ?? [])
  const required = await register()
  const optional = await register()
  await mark(optional, { pkce: 'optional' })

  await t.test('every client sends a challenge, unless it is confidential and set so', async (t) => {
    t.match(await ask(required), REQUIRED)
    t.match(await ask(optional), { code: /./ })
    const open = await register({ public: true })
    await mark(open, { pkce: 'optional' })
    t.match(await ask(open), REQUIRED, 'a public client has nothing else that protects its code')
    t.match(await post('par', { client_id: required.client_id, response_type: 'code', redirect_uri: required.redirect_uri, scope: 'openid' }, required), { status: 400, body: REQUIRED })
    t.match(await post('par', { client_id: optional.client_id, response_type: 'code', redirect_uri: optional.redirect_uri, scope: 'openid' }, optional), { status: 201 })
  })

  await t.test('a challenge is S256, for every client', async (t) => {
    for (const app of [required, optional]) {
      t.match(await ask(app, { code_challenge_method: 'plain' }), { error: 'invalid_request' })
      t.match(await ask(app, { code_challenge_method: undefined }), { error: 'invalid_request' })
    }
  })

  await t.test('a code with a challenge needs its verifier, and one without takes none (RFC 9700, 4.8.2)', async (t) => {
    const { code_verifier, ...challenged } = await getCode(harness, optional)
    t.match(await post('token', challenged, optional), { status: 400, body: { error: 'invalid_grant' } })
    t.match(await post('token', { ...await getCode(harness, optional, PLAIN), code_verifier }, optional), { status: 400, body: { error: 'invalid_grant' } })
    const { code_verifier: _, ...plain } = await getCode(harness, optional, PLAIN)
    t.match(await post('token', plain, optional), { status: 200, body: { access_token: /./, id_token: /./ } })
    const { code_verifier: __, ...again } = await getCode(harness, optional, PLAIN)
    const posted = await post('token', { ...again, client_id: optional.client_id, client_secret: optional.client_secret })
    t.match(posted, { status: 200, body: { access_token: /./ } }, 'with the secret in the form')
    const { code_verifier: ___, ...bare } = await getCode(harness, optional, PLAIN)
    t.match(await post('token', { ...bare, client_id: optional.client_id }), { status: 401, body: { error: 'invalid_client' } }, 'the secret is what protects the code')
  })
})
