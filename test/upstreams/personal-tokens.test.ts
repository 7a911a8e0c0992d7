import t from 'tap'
import { hashToken } from '../../lib/crypto/random-token.ts'
import { type TokenRecord, toUserHolder } from '../../lib/records/token.ts'
import { eachStore } from '../oidc/harness.ts'
import { through } from './through.ts'

t.setTimeout(180_000)

const START = '/api/v1/auth/upstream/test'
const HOUR = 60 * 60_000
const DAY = 24 * HOUR
const MIA = { sub: 'mia', email: 'mia@corp.example', email_verified: true }
const ONLY = { only: true, domains: ['corp.example'] }

for (const [name, upstream, bound] of [['30 days', ONLY, 30 * DAY], ['tokenMax', { ...ONLY, tokenMax: 3600 }, HOUR]] as const) {
  eachStore(t, `the tokens of people whom one provider lets in alone work while its last answer is younger than ${name}`, async (t, start) => {
    const harness = await start({ signUp: true, personalTokens: { maxDays: 365 }, upstream })
    const { kit } = harness
    const { users } = kit.app.identity
    const signIn = async () => {
      kit.upstream(MIA)
      await through(harness.browser(), START)
    }
    await signIn()
    const user = (await users.getByAccount('mia@corp.example'))!
    const { headers } = await kit.personalToken(user.user_id, { scopes: ['account:read'], expires_in: 300 * 86_400 })
    const asker = await harness.register()
    const token = headers.authorization.slice('Bearer '.length)
    const works = async () => {
      const info = (await kit.inject({ url: '/api/v1/auth/tokeninfo', headers })).statusCode === 200
      t.equal((await harness.post('introspect', { token }, asker)).body.active, info, 'introspection says the same')
      return info
    }
    t.ok(await works())
    t.ok(await works(), 'and again, from what is cached')
    kit.clock.advance(bound - 60_000)
    t.ok(await works())
    kit.clock.advance(2 * 60_000)
    t.notOk(await works(), 'the provider has said nothing for too long')
    t.notOk(await works())
    await signIn()
    t.ok(await works(), 'the person has signed in with it again')
    await users.patch(user.user_id, { data: { roles: { admin: true } } }, { user_id: '', isAdmin: true })
    kit.clock.advance(bound + 60_000)
    t.ok(await works(), 'an administrator is excepted')
  })
}

eachStore(t, 'the provider ends the tokens with the person, and not with one of its sessions', async (t, start) => {
  const harness = await start({ signUp: true, personalTokens: { maxDays: 365 }, upstream: ONLY })
  const { kit } = harness
  const { upstream } = kit
  const tell = async (claims: Record<string, unknown>) => {
    const body = new URLSearchParams({ logout_token: await upstream.logoutToken(claims) })
    return (await fetch(`${harness.url}/api/v1/auth/upstream/test/backchannel-logout`, { method: 'POST', body })).status
  }
  const enter = async () => {
    upstream({ ...MIA, sid: 's1' })
    await through(harness.browser(), START)
    return (await kit.app.identity.users.getByAccount('mia@corp.example'))!.user_id
  }
  const user_id = await enter()
  const other = await kit.mint({ user: 'boss@example.com' })
  const [mine, theirs] = [await kit.personalToken(user_id), await kit.personalToken(other.user_id)]
  const works = async ({ headers }: typeof mine) => (await kit.inject({ url: '/api/v1/auth/tokeninfo', headers })).statusCode === 200
  t.equal(await tell({ sub: 'mia', sid: 's1' }), 200)
  t.ok(await works(mine), 'the end of one session')
  t.equal(await tell({ sub: 'somebody' }), 200)
  t.ok(await works(mine), 'the end of somebody else')
  t.equal(await tell({ sub: 'mia' }), 200)
  t.notOk(await works(mine), 'the end of the person')
  t.ok(await works(theirs), 'the tokens of others go on')
  t.strictSame(await kit.app.identity.personalTokens?.list(user_id), [])
  await enter()
  t.notOk(await works(mine), 'a later sign-in brings none back')
  t.ok(await works(await kit.personalToken(user_id)), 'a new one works')
  const events = (await kit.events.list({ user: user_id })).map(({ type }) => type)
  t.equal(events.filter((type) => type === 'token.personal_removed').length, 1)
})

eachStore(t, 'a person who leaves while the option is off has no token when it is on again', async (t, start) => {
  const harness = await start({ signUp: true, upstream: ONLY })
  const { kit } = harness
  const { store, users } = kit.app.identity
  kit.upstream(MIA)
  await through(harness.browser(), START)
  const { user_id } = (await users.getByAccount('mia@corp.example'))!
  const id = hashToken((await kit.mint({ user: user_id })).access_token)
  const records = store.collection<TokenRecord>('access_tokens')
  // As one that was made while the option was on.
  await records.update(id, { set: { kind: 'Personal', client_id: 'personal', holder: toUserHolder(user_id), name: 'nightly' } })
  const body = new URLSearchParams({ logout_token: await kit.upstream.logoutToken({ sub: 'mia' }) })
  t.equal((await fetch(`${harness.url}/api/v1/auth/upstream/test/backchannel-logout`, { method: 'POST', body })).status, 200)
  t.equal(await records.get(id), null)
})

eachStore(t, 'of a provider beside other methods, they do not end', async (t, start) => {
  const harness = await start({ signUp: true, personalTokens: { maxDays: 365 }, upstream: {} })
  const { kit } = harness
  kit.upstream(MIA)
  await through(harness.browser(), START)
  const { user_id } = (await kit.app.identity.users.getByAccount('mia@corp.example'))!
  const { headers } = await kit.personalToken(user_id, { expires_in: 300 * 86_400 })
  kit.clock.advance(40 * DAY)
  const body = new URLSearchParams({ logout_token: await kit.upstream.logoutToken({ sub: 'mia' }) })
  t.equal((await fetch(`${harness.url}/api/v1/auth/upstream/test/backchannel-logout`, { method: 'POST', body })).status, 200)
  t.equal((await kit.inject({ url: '/api/v1/auth/tokeninfo', headers })).statusCode, 200)
})

t.test('tokenMax needs only', async (t) => {
  const { startIdentity } = await import('../../testing/index.ts')
  await t.rejects(startIdentity({ t, upstream: { tokenMax: 3600 } }), { message: /tokenMax: needs only/ })
})
