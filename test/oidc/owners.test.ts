import t from 'tap'
import type { ClientRecord } from '../../lib/records/client.ts'
import { callAs, signIn as mintFor, unique } from '../helpers/people.ts'
import { type App, askCode, eachStore, getCode } from './harness.ts'

const OPERATOR = { user_id: 'operator', isAdmin: true }
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'

eachStore(t, 'an app that only its owner stands for', async (t, start) => {
  const harness = await start()
  const { kit, post, get, browser } = harness
  const { clients, users } = kit.app.identity

  /** An app of a new user, to which somebody else has signed in. */
  async function setUp (fields: object = {}) {
    const owner = await kit.app.identity.users.create({ data: { account: unique('owner'), password: 'p'.repeat(8) } })
    const { clientId } = await clients.create({
      data: { redirectUris: ['https://app.example/cb'], scopes: ['read'], name: 'Tracker', userId: owner.user_id, grants: ['code', 'refresh', 'device'], ...fields }, credentials: true
    }, OPERATOR)
    const app: App = { client_id: clientId, client_secret: String((await clients.require(clientId, OPERATOR)).clientSecret), redirect_uri: 'https://app.example/cb' }
    const { body } = await post('token', await getCode(harness, app), app)
    const code = await getCode(harness, app)
    const device = (await post('device_authorization', { scope: 'openid' }, app)).body
    return { ...owner, app, access: String(body.access_token), refresh: String(body.refresh_token), code, device: String(device.device_code) }
  }
  type Stage = Awaited<ReturnType<typeof setUp>>

  /** The answers at every endpoint that a client takes part in. */
  async function ask ({ app, refresh, code, device }: Stage) {
    const page = await browser().open(askCode(app).url)
    const answers = {
      device: await post('device_authorization', { scope: 'openid' }, app),
      poll: await post('token', { grant_type: DEVICE, device_code: device }, app),
      code: await post('token', code, app),
      refresh: await post('token', { grant_type: 'refresh_token', refresh_token: refresh }, app),
      par: await post('par', { response_type: 'code', redirect_uri: app.redirect_uri }, app),
      introspect: await post('introspect', { token: refresh }, app)
    }
    return { authorize: [page.response.status, page.title], ...Object.fromEntries(Object.entries(answers).map(([name, { status, body }]) => [name, [status, body.error]])) }
  }

  const disabled = await setUp()
  await clients.patch(disabled.app.client_id, { data: { disabled: true } }, OPERATOR)
  const expected = await ask(disabled)
  t.match(expected, { authorize: [400, 'Something went wrong'], code: [401, 'invalid_client'], refresh: [401, 'invalid_client'], device: [401, 'invalid_client'], poll: [401, 'invalid_client'] })

  for (const [name, stop] of Object.entries({
    disabled: async ({ user_id }: Stage) => { await users.patch(user_id, { disable: true }, OPERATOR) },
    deleted: async ({ user_id }: Stage) => { await users.remove(user_id, OPERATOR) },
    expired: async ({ user_id }: Stage) => { await kit.app.identity.store.collection('users').update(user_id, { set: { expired_at: new Date(kit.clock.now() - 1000).toISOString() } }) }
  })) {
    await t.test(`answers as a disabled one when the owner is ${name}; its access tokens run out`, async (t) => {
      const stage = await setUp()
      await stop(stage)
      t.strictSame(await ask(stage), expected)
      t.equal((await get('tokeninfo', stage.access)).status, 200)
      kit.clock.advance(3601_000)
      t.equal((await get('tokeninfo', stage.access)).status, 401)
    })
  }

  await t.test('goes on when the owner is enabled again, and one that the operator vouches for never stops', async (t) => {
    const stage = await setUp()
    const ours = await setUp({ first_party: true })
    for (const { user_id } of [stage, ours]) await users.patch(user_id, { disable: true }, OPERATOR)
    t.match(await post('token', { grant_type: 'refresh_token', refresh_token: ours.refresh }, ours.app), { status: 200 })
    await users.patch(stage.user_id, { disable: false }, OPERATOR)
    t.match(await post('token', { grant_type: 'refresh_token', refresh_token: stage.refresh }, stage.app), { status: 200 })
  })

  await t.test('a sign-in that waits on a page ends too', async (t) => {
    const stage = await setUp()
    const page = await browser().open(askCode(stage.app).url)
    await users.patch(stage.user_id, { disable: true }, OPERATOR)
    const next = await page.submit({ account: harness.user.account, password: harness.user.password })
    t.equal(next.response.status, 400)
    t.equal(next.left, undefined)
  })

  await t.test('an administrator is told how many stop, and may remove them', async (t) => {
    const admin = await mintFor(kit, { roles: ['admin'] })
    const api = callAs(kit, admin.headers)
    const stage = await setUp()
    for (const fields of [{}, { disabled: true }, { first_party: true }]) {
      await clients.create({ data: { redirectUris: [], scopes: [], name: 'more', userId: stage.user_id, ...fields } }, OPERATOR)
    }
    t.match(await api.patch(`/user/${stage.user_id}`, { disable: true }), { status: 204, headers: { 'identity-clients': '2' } })
    const enabled = await api.patch(`/user/${stage.user_id}`, { disable: false })
    t.equal(enabled.headers['identity-clients'], undefined)
    t.match(await api.delete(`/user/${stage.user_id}`), { status: 204, headers: { 'identity-clients': '2' } })
    t.match((await api.get(`/client/${stage.app.client_id}`)).body, { data: { userId: stage.user_id } }, 'they stay, and name their former owner')
    t.match((await api.get(`/client/count?user=${stage.user_id}`)).body, { data: { count: 4 } })

    const other = await setUp()
    const narrowed = callAs(kit, (await mintFor(kit, { roles: ['admin'], scopes: ['users:write'] })).headers)
    t.match(await narrowed.delete(`/user/${other.user_id}?clients=delete`), { status: 403, headers: { 'www-authenticate': /clients:write/ } })
    t.match(await api.delete(`/user/${other.user_id}?clients=all`), { status: 400 })
    t.match(await api.delete(`/user/${admin.user_id}?clients=delete`), { status: 403 }, 'nobody deletes themselves, or their clients by it')
    t.ok(await users.get(other.user_id))
    t.match(await api.delete(`/user/${other.user_id}?clients=delete`), { status: 204, headers: { 'identity-clients': '1' } })
    t.match(await api.get(`/client/${other.app.client_id}`), { status: 404 })
    t.equal((await get('tokeninfo', other.access)).status, 401)
  })

  await t.test('an administrator takes it over by one write, with a new secret', async (t) => {
    const admin = await mintFor(kit, { roles: ['admin'] })
    const stage = await setUp()
    const url = `/client/${stage.app.client_id}`
    const records = kit.app.identity.store.collection<ClientRecord>('clients')
    const { revision = 0, secret } = (await records.get(stage.app.client_id))!
    const owner = callAs(kit, (await mintFor(kit, { user: stage.user_id })).headers)
    t.match(await owner.patch(url, { take_over: true }), { status: 403 })
    t.match(await callAs(kit, admin.headers).patch(url, { take_over: true }), { status: 204 })
    const taken = (await records.get(stage.app.client_id))!
    t.match(taken, { userId: admin.user_id, revision: revision + 1, name: 'Tracker' })
    t.not(taken.secret, secret)
    t.equal((await get('tokeninfo', stage.access)).status, 401)
    t.match(await post('token', { grant_type: 'refresh_token', refresh_token: stage.refresh }, stage.app), { status: 401 })
    t.match(await owner.get(url), { status: 404 })
    await users.patch(stage.user_id, { disable: true }, OPERATOR)
    const renewed = { ...stage.app, client_secret: String((await clients.require(stage.app.client_id, { user_id: admin.user_id, isAdmin: true })).clientSecret) }
    t.match(await post('device_authorization', { scope: 'openid' }, renewed), { status: 200 }, 'it is independent of its former owner')
    t.match(await callAs(kit, admin.headers).patch(url, { take_over: true }), { status: 400 })
    const { clientId } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'public', userId: stage.user_id } }, OPERATOR)
    t.match(await callAs(kit, admin.headers).patch(`/client/${clientId}`, { take_over: true, data: { name: 'ours' } }), { status: 204 })
    t.match(await records.get(clientId), { userId: admin.user_id, epoch: 1, secret: undefined, name: 'ours' })
  })

  await t.test('one that nobody owns signs people in, acts for nobody, and shows its consent page without a domain', async (t) => {
    const stage = await setUp()
    const records = kit.app.identity.store.collection<ClientRecord>('clients')
    await records.update(stage.app.client_id, { unset: ['userId'], set: { grants: ['client', 'code', 'device', 'refresh'] }, increment: { revision: 1 } })
    await users.remove(stage.user_id, OPERATOR)
    const page = await (await browser().open(askCode(stage.app).url)).submit({ account: harness.user.account, password: harness.user.password })
    t.match(page, { title: /Tracker/, text: /hasn’t verified this app/ })
    t.notMatch(page.text, /It was registered by/)
    t.match(await post('token', await getCode(harness, stage.app), stage.app), { status: 200 })
    t.match(await post('token', { grant_type: 'client_credentials' }, stage.app), { status: 400, body: { error: 'unauthorized_client', error_description: /nobody owns/ } })
    await t.rejects(clients.patch(stage.app.client_id, { data: { grants: ['client'] } }, OPERATOR), { code: 'ErrParam', message: /^grants: / })
    const admin = await mintFor(kit, { roles: ['admin'] })
    const api = callAs(kit, admin.headers)
    t.match(await api.patch(`/client/${stage.app.client_id}`, { data: { disabled: true } }), { status: 204 })
    t.match(await post('token', { grant_type: 'refresh_token', refresh_token: stage.refresh }, stage.app), { status: 401 })
    await kit.app.identity.events.flush()
    const [event] = (await Array.fromAsync(kit.app.identity.events.list({ type: 'client.updated' }))).flat().filter(({ target }) => target.id === stage.app.client_id)
    t.match(event, { actor: { user_id: admin.user_id }, user_id: undefined }, 'an event about it is about nobody')
    t.match(await api.patch(`/client/${stage.app.client_id}`, { take_over: true }), { status: 204 })
    t.match(await records.get(stage.app.client_id), { userId: admin.user_id })
  })

  await t.test('a token of a removed client stays dead when its id is used again', async (t) => {
    const stage = await setUp()
    const records = kit.app.identity.store.collection<ClientRecord>('clients')
    const made = async () => {
      await clients.create({ data: { redirectUris: [], scopes: [], name: 'back' } }, { user_id: harness.user.user_id, isAdmin: true }, { id: 'comes-back', isLasting: false })
      return (await records.get('comes-back'))!
    }
    const { epoch } = await made()
    const token = 'x'.repeat(43)
    const issue = async () => await kit.app.identity.tokens.issue({ token, ttl: 600, fields: {} }, { user_id: stage.user_id, client_id: 'comes-back', user_epoch: 0, client_epoch: epoch })
    await issue()
    t.equal((await get('tokeninfo', token)).status, 200)
    await clients.remove('comes-back', OPERATOR)
    await kit.app.identity.tokens.settle()
    kit.clock.advance(1)
    t.ok((await made()).epoch > epoch)
    // As if the process had died before it deleted the tokens.
    await issue()
    t.equal((await get('tokeninfo', token)).status, 401)
  })
})
