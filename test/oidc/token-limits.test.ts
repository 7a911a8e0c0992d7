import t from 'tap'
import { startIdentity } from '../../testing/index.ts'
import { enter } from '../pages/visits.ts'
import { createFile, eachStore, getCode, startHarness } from './harness.ts'

const CLIENT = { grant_type: 'client_credentials', scope: 'read' }
const LIMIT = { status: 429, body: { error: 'temporarily_unavailable', error_description: /^too many tokens were requested, try again in \d+ s$/ } }

eachStore(t, 'clients that nobody vouches for get as many tokens a minute as their owner may make changes', async (t, start) => {
  const harness = await start({ rateLimit: 60, writeLimit: 20 })
  const { kit, post, register } = harness
  const [app, second, vouched] = [await register({ first_party: false }), await register({ first_party: false }), await register()]
  const tokens: string[] = []
  for (let count = 0; count < 20; count++) {
    const { status, body } = await post('token', CLIENT, count % 2 === 0 ? app : second)
    t.equal(status, 200)
    tokens.push(String(body.access_token))
  }
  const refused = await post('token', CLIENT, app)
  t.match(refused, LIMIT)
  t.match(refused.headers.get('retry-after'), /^[1-9]\d?$/)
  t.match(await post('token', CLIENT, second), LIMIT, 'a second app of the owner gains nothing')
  t.equal(await kit.app.identity.store.collection('access_tokens').count(), 20, 'and nothing was stored')
  for (let count = 0; count < 25; count++) t.equal((await post('token', CLIENT, vouched)).status, 200, 'one that the operator vouches for has no limit')
  for (const [index, token] of tokens.entries()) t.equal((await post('revoke', { token }, index % 2 === 0 ? app : second)).status, 200, 'a revocation has no limit')
  kit.clock.advance(60_000)
  t.equal((await post('token', CLIENT, app)).status, 200, 'a minute later')

  const { user_id } = await kit.app.identity.users.create({ data: { account: 'bob', password: 'another horse' } })
  const { clientId: client_id } = await kit.app.identity.clients.create({ data: { redirectUris: [], scopes: ['read'], name: 'n' }, credentials: true }, { user_id, isAdmin: false })
  const { clientSecret: client_secret = '' } = await kit.app.identity.clients.require(client_id, { user_id, isAdmin: false })
  for (let count = 0; count < 19; count++) await post('token', CLIENT, app)
  t.match(await post('token', CLIENT, app), LIMIT)
  t.equal((await post('token', CLIENT, { client_id, client_secret, redirect_uri: '' })).status, 200, 'another owner has another count')
})

eachStore(t, 'a grant is refreshed 60 times a minute, whatever its client; a refused refresh spends nothing', async (t, start) => {
  const harness = await start({ rateLimit: 60, writeLimit: 20 })
  const { kit, post, register } = harness
  const app = await register()
  const sign = async () => String((await post('token', await getCode(harness, app, { scope: 'openid offline_access' }), app)).body.refresh_token)
  const refresh = async (refresh_token: string) => await post('token', { grant_type: 'refresh_token', refresh_token }, app)
  const [other] = [await sign()]
  let token = await sign()
  for (let count = 0; count < 60; count++) {
    const { status, body } = await refresh(token)
    t.equal(status, 200)
    token = String(body.refresh_token)
  }
  const refused = await refresh(token)
  t.match(refused, LIMIT)
  t.match(refused.headers.get('retry-after'), /^[1-9]\d?$/)
  t.equal((await refresh(other)).status, 200, 'another grant of the client goes on')
  t.type(await sign(), 'string', 'and so does a new sign-in')
  kit.clock.advance(60_000)
  t.equal((await refresh(token)).status, 200, 'the token was not spent')
})

t.test('a loop of client credentials and revocations is few events, and pushes nothing off the activity of the person', async (t) => {
  const database = createFile(t)
  const harness = await startHarness(t, { database })
  const { kit, post, register, browser, user } = harness
  const app = await register({ first_party: false, name: 'Loop' })
  const tab = browser()
  await enter(harness, '/account', tab)
  for (let count = 0; count < 150; count++) {
    const { body } = await post('token', CLIENT, app)
    t.equal((await post('revoke', { token: String(body.access_token) }, app)).status, 200)
  }
  const events = await kit.events.list({ type: 'token.revoked' })
  t.match(events, [{ target: { kind: 'token' }, owner_id: user.user_id, client_id: app.client_id, outcome: 'success' }])
  t.notHas(events[0], { user_id: String }, 'it is not about the account')
  const { text } = await tab.open('/account/activity')
  t.match(text, /You signed in[^]*<h2 id="clients">Developer apps, on their own<\/h2>[^]*A token of an app was revoked[^]*App: [^]*Loop/)
  await kit.close()

  const later = await startIdentity({ t, database })
  const all = await later.events.list({ type: 'token.revoked' })
  t.match(all, [{}, { owner_id: user.user_id, client_id: app.client_id, count: 149 }], 'none is lost when the service stops')
})
