import t from 'tap'
import { askCode, eachStore, getCode } from './harness.ts'

interface Listed { session_id: string, client: { client_id: string, name: string }, created_at: string, last_used_at: string, current: boolean }

eachStore(t, 'token sessions', async (t, start) => {
  const harness = await start()
  const { kit, post, get, url, user, register, browser } = harness
  const app = await register({ name: 'First', scopes: ['read', 'account:write'] })
  const other = await register({ name: 'Second', scopes: ['read', 'account:write'] })
  const begin = async (client = app, with_ = browser()) => {
    const { body } = await post('token', await getCode(harness, client, { scope: 'openid offline_access account:write' }, with_), client)
    return { token: String(body.access_token), refresh: String(body.refresh_token), client, browser: with_ }
  }
  type Session = Awaited<ReturnType<typeof begin>>
  const list = async (token: string, query = '') => (await get(`sessions${query}`, token)).body.data as Listed[]
  const end = async (token: string, query = '') =>
    (await fetch(`${url}/api/v1/auth/sessions${query}`, { method: 'DELETE', headers: { authorization: `Bearer ${token}` } })).status
  const state = async ({ token, refresh, client, browser }: Session) => {
    const refreshed = await post('token', { grant_type: 'refresh_token', refresh_token: refresh }, client)
    const page = await browser.open(askCode(client, { prompt: 'none' }).url)
    return [(await get('tokeninfo', token)).status, refreshed.status, page.left?.searchParams.get('error') ?? 'signed in']
  }
  const DEAD = [401, 400, 'login_required']
  const ALIVE = [200, 200, 'signed in']

  await t.test('the list has the time of the last refresh of each', async (t) => {
    const first = await begin()
    kit.clock.advance(60_000)
    const second = await begin(other)
    const before = await list(first.token)
    t.strictSame(before.map(({ client, current }) => [client.name, current]).sort(), [['First', true], ['Second', false]])
    kit.clock.advance(60_000)
    await post('token', { grant_type: 'refresh_token', refresh_token: second.refresh }, other)
    const { created_at, last_used_at } = (await list(first.token)).find(({ client }) => client.client_id === other.client_id) as Listed
    t.equal(Date.parse(last_used_at) - Date.parse(created_at), 60_000)
    await kit.app.identity.clients.patch(other.client_id, { regen_secret: true }, { user_id: 'x', isAdmin: true })
    t.equal((await list(first.token)).length, 1, 'a session that has ended is not listed')
    other.client_secret = (await kit.app.identity.clients.require(other.client_id, { user_id: 'x', isAdmin: true })).clientSecret ?? ''
    t.match(await get('sessions?format=array', first.token), { status: 200, body: { text: /^\[\{/ } })
    t.match(await get('sessions?nonsense=1', first.token), { status: 400 })
    await end(first.token, '?all=true')
  })

  await t.test('ending all but the current one', async (t) => {
    const own = await begin()
    const others = [await begin(), await begin(other)]
    const minted = await kit.app.identity.tokens.mint({ user_id: user.user_id, client_id: app.client_id })
    t.equal(await end(own.token), 204)
    t.equal((await get('tokeninfo', minted.access_token)).status, 401)
    for (const session of others) t.strictSame(await state(session), DEAD)
    t.equal((await list(own.token)).length, 1)
    t.strictSame(await state(own), ALIVE)
    t.equal(await end(own.token, '?all=true'), 204)
  })

  await t.test("a caller's token without a session stays valid", async (t) => {
    const minted = await kit.app.identity.tokens.mint({ user_id: user.user_id, client_id: app.client_id })
    const session = await begin()
    t.equal(await end(minted.access_token), 204)
    t.equal((await get('tokeninfo', minted.access_token)).status, 200)
    t.strictSame(await state(session), DEAD)
    t.strictSame(await list(minted.access_token), [])
  })

  await t.test('ending all of them', async (t) => {
    const sessions = [await begin(), await begin(other)]
    t.equal(await end(sessions[0]?.token ?? '', '?all=true'), 204)
    for (const session of sessions) t.strictSame(await state(session), DEAD)
  })

  await t.test("another user's sessions are for admins; anyone else gets ErrPerm, and nothing ends", async (t) => {
    const session = await begin()
    const admin = await kit.mint({ user: 'admin', client: 'tools', roles: ['admin'] })
    const bob = await kit.mint({ user: 'bob', client: 'tools' })
    t.equal((await list(admin.access_token, `?user=${user.user_id}`)).length, 1)
    const own = await kit.mint({ user: 'bob', client: 'phone', refresh: true })
    const { user: { user_id: bobs } } = await kit.app.identity.tokens.authenticate(bob.access_token)
    t.match(await get(`sessions?user=${user.user_id}`, bob.access_token), { status: 403, body: { code: 'ErrPerm' } })
    t.equal(await end(bob.access_token, `?user=${user.user_id}`), 403)
    t.equal(await end(bob.access_token, `?user=${user.user_id}&all=true`), 403)
    t.equal((await get('tokeninfo', own.access_token)).status, 200)
    t.equal((await list(bob.access_token, `?user=${bobs}`)).length, 1, "the caller's own id is accepted")
    t.equal((await get('tokeninfo', bob.access_token)).status, 200)
    t.strictSame(await state(session), ALIVE)
    const again = await begin()
    t.equal(await end(admin.access_token, `?user=${user.user_id}`), 204)
    t.strictSame(await state(again), DEAD)
    t.equal((await get('tokeninfo', admin.access_token)).status, 200)
    t.equal(await end(admin.access_token, '?user=nobody'), 404)
  })
})
