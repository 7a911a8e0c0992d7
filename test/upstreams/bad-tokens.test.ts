import { Events, OAuth2Server } from 'oauth2-mock-server'
import t from 'tap'
import { startHarness } from '../oidc/harness.ts'
import { leave, readError, answerOf } from './through.ts'

// A provider that nobody here has written, and its tokens, each wrong in one way.
t.test('tokens of another server', async (t) => {
  const server = new OAuth2Server()
  await server.issuer.keys.generate('RS256')
  await server.start(0, '127.0.0.1')
  t.teardown(async () => await server.stop())
  // It names itself by `localhost`, where it may not listen.
  server.issuer.url = `http://127.0.0.1:${server.address().port}`
  const harness = await startHarness(t, {
    signUp: true, upstreams: [{ id: 'mock', kind: 'oidc', issuer: server.issuer.url, clientId: 'us', clientSecret: 'shh', emails: 'verified', create: true }]
  })
  const claims = { sub: 'ann', aud: 'us', email: 'a@example.org', email_verified: true, iss: server.issuer.url }
  let [nonce, change, header]: [string | null, Record<string, unknown>, Record<string, unknown>] = [null, {}, {}]
  server.service.on(Events.BeforeTokenSigning, (token) => {
    Object.assign(token.payload, { ...claims, nonce, ...change })
    Object.assign(token.header, header)
  })

  async function enter () {
    const browser = harness.browser()
    const asked = await leave(browser, '/api/v1/auth/upstream/mock')
    nonce = asked.searchParams.get('nonce')
    return await browser.open(await answerOf(asked))
  }

  const right = await enter()
  t.match(right.title, /Profile/, readError(right))
  const [past, future] = [Math.floor(Date.now() / 1000) - 3600, Math.floor(Date.now() / 1000) + 3600]
  for (const [name, wrong, head = {}] of [
    ['another audience', { aud: 'somebody else' }],
    ['several audiences, and no party', { aud: ['us', 'them'] }],
    ['another party', { azp: 'them' }],
    ['another issuer', { iss: 'https://evil.example' }],
    ['expired', { exp: past }],
    ['of the future', { nbf: future }],
    ['another nonce', { nonce: 'another' }],
    ['no nonce', { nonce: undefined }],
    ['no subject', { sub: undefined }],
    ['a key that there is not', {}, { kid: 'unknown' }]
  ] as [string, Record<string, unknown>, Record<string, unknown>?][]) {
    change = wrong
    header = head
    t.match(readError(await enter()), /does not answer as it should/, name)
  }
  change = header = {}
  server.service.on(Events.BeforeResponse, (response) => { delete (response.body as Record<string, unknown>)['id_token'] })
  t.match(readError(await enter()), /does not answer as it should/, 'no ID token')
})
