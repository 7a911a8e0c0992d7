import t from 'tap'
import { askCode, signIn, startHarness } from './harness.ts'

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

t.test('a loopback URI with an impossible port is a wrong request, not a failure of the service', async (t) => {
  const harness = await startHarness(t)
  for (const open of [true, false]) {
    const app = await harness.register({ public: open, redirectUris: ['http://127.0.0.1/cb'] })
    for (const redirect_uri of ['http://127.0.0.1:99999/cb', 'http://127.0.0.1:65536/cb', 'http://127.0.0.1:0099999/cb']) {
      const { response } = await harness.browser().open(askCode(app, { redirect_uri }).url)
      t.equal(response.status, 400, `${redirect_uri}, ${open ? 'public' : 'confidential'}`)
    }
  }
})
