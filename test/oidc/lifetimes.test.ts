import t from 'tap'
import { declareResource } from '../helpers/powers.ts'
import { type App, type Harness, askCode, eachStore, getCode, signIn, startHarness } from './harness.ts'

const DAY = 86_400_000

/** Whether the browser is signed in; this also counts as a use of the session. */
async function isSignedIn (browser: ReturnType<Harness['browser']>, app: App): Promise<boolean> {
  const { left } = await browser.open(askCode(app, { prompt: 'none' }).url)
  return left?.searchParams.has('code') === true
}

eachStore(t, 'the longest life of sessions', async (t, start) => {
  const harness = await start()
  const { kit, post, register } = harness
  const app = await register()

  await t.test('a browser that is used every week is signed in for 90 days from the sign-in', async (t) => {
    const browser = harness.browser()
    await signIn(harness, askCode(app).url, browser)
    for (let week = 1; week <= 12; week++) {
      kit.clock.advance(7 * DAY)
      t.ok(await isSignedIn(browser, app), `week ${week}`)
    }
    kit.clock.advance(6 * DAY - 1)
    t.ok(await isSignedIn(browser, app), 'just before')
    kit.clock.advance(1)
    t.notOk(await isSignedIn(browser, app), 'after 90 days')
  })

  await t.test('a new sign-in with the password starts again, consent does not', async (t) => {
    const third = await register({ first_party: false })
    const browser = harness.browser()
    await signIn(harness, askCode(app).url, browser)
    for (let week = 1; week <= 12; week++) {
      kit.clock.advance(7 * DAY)
      await isSignedIn(browser, app)
    }
    t.match((await signIn(harness, askCode(third).url, browser)).left?.searchParams.get('code'), /./, 'asked for consent')
    kit.clock.advance(5 * DAY)
    await signIn(harness, askCode(app, { prompt: 'login' }).url, browser)
    kit.clock.advance(7 * DAY)
    t.ok(await isSignedIn(browser, app))
    const other = harness.browser()
    await signIn(harness, askCode(app).url, other)
    for (let week = 1; week <= 12; week++) {
      kit.clock.advance(7 * DAY)
      await signIn(harness, askCode(third).url, other)
    }
    kit.clock.advance(6 * DAY)
    t.notOk(await isSignedIn(other, app))
  })

  await t.test('a token session is refreshed for 365 days from its authorization', async (t) => {
    let tokens = await post('token', await getCode(harness, app), app)
    const refresh = async () => await post('token', { grant_type: 'refresh_token', refresh_token: String(tokens.body.refresh_token) }, app)
    const since = kit.clock.now()
    for (let turn = 0; turn < 18; turn++) {
      kit.clock.advance(20 * DAY)
      tokens = await refresh()
      t.match(tokens, { status: 200 }, `after ${(turn + 1) * 20} days`)
    }
    kit.clock.set(since + 365 * DAY - 1)
    const before = await refresh()
    t.match(before, { status: 400, body: { error: 'invalid_grant' } }, 'less than a second is left')
    tokens = await post('token', await getCode(harness, app), app)
    t.match(await refresh(), { status: 200 }, 'a new authorization')
  })

  await t.test('a minted session too', async (t) => {
    const pair = await kit.app.identity.tokens.mint({ user_id: harness.user.user_id, client_id: app.client_id, refresh: true })
    let token = pair.refresh_token ?? ''
    for (let turn = 0; turn < 18; turn++) {
      kit.clock.advance(20 * DAY)
      token = String((await post('token', { grant_type: 'refresh_token', refresh_token: token }, app)).body.refresh_token)
    }
    t.match((await post('introspect', { token }, app)).body, { active: true })
    kit.clock.advance(5 * DAY)
    t.match((await post('introspect', { token }, app)).body, { active: false })
    t.match(await post('token', { grant_type: 'refresh_token', refresh_token: token }, app), { status: 400 })
  })
})

t.test('a lifetime beyond the maximum is shortened to it', async (t) => {
  const harness = await startHarness(t, { oidc: { refreshTtl: 1000, refreshMax: 100, sessionTtl: 1000, sessionMax: 100 } })
  const app = await harness.register()
  const browser = harness.browser()
  const { body } = await harness.post('token', await getCode(harness, app, {}, browser), app)
  const minted = await harness.kit.app.identity.tokens.mint({ user_id: harness.user.user_id, client_id: app.client_id, refresh: true })
  harness.kit.clock.advance(100_000)
  t.notOk(await isSignedIn(browser, app))
  for (const refresh_token of [body.refresh_token, minted.refresh_token]) {
    t.match(await harness.post('token', { grant_type: 'refresh_token', refresh_token: String(refresh_token) }, app), { status: 400 })
  }
})

eachStore(t, 'a resource sets the lifetime of its access tokens', async (t, start) => {
  const harness = await start({ oidc: { refreshTtl: 600 } })
  const { kit, get, post, register } = harness
  const scopes = { slow: 'slow:read', quick: 'quick:read', plain: 'plain:read' }
  const { resourceId } = await declareResource(kit, { [scopes.slow]: 'read slowly' }, 'https://slow.example/', { accessTtl: 86_400 })
  await declareResource(kit, { [scopes.quick]: 'read quickly' }, 'https://quick.example/', { accessTtl: 60 })
  await declareResource(kit, { [scopes.plain]: 'read' }, 'https://plain.example/', {})
  const app = await register({ scopes: ['read', ...Object.values(scopes)] })
  const isValid = async ({ body }: Awaited<ReturnType<typeof post>>) => (await get('tokeninfo', String(body.access_token))).status === 200

  await t.test('with a code, with a refresh token and for the client itself; no other token', async (t) => {
    for (const [scope, expires_in] of [[scopes.slow, 86_400], [scopes.quick, 60], [scopes.plain, 3600], ['read', 3600]] as const) {
      const tokens = await post('token', await getCode(harness, app, { scope: `openid offline_access ${scope}` }), app)
      t.match(tokens, { status: 200, body: { expires_in } }, scope)
      t.match(await post('token', { grant_type: 'refresh_token', refresh_token: String(tokens.body.refresh_token) }, app), { status: 200, body: { expires_in } }, scope)
      t.match(await post('token', { grant_type: 'client_credentials', scope }, app), { status: 200, body: { expires_in } }, scope)
    }
  })

  await t.test('the token lives for that long, also past its refresh token, and ends with its session at once', async (t) => {
    const take = async (scope: string) => await post('token', await getCode(harness, app, { scope }), app)
    const [slow, quick, ended] = [await take(`openid offline_access ${scopes.slow}`), await take(`openid offline_access ${scopes.quick}`), await take(`openid offline_access ${scopes.slow}`)]
    kit.clock.advance(59_000)
    t.ok(await isValid(quick))
    kit.clock.advance(1_000)
    t.notOk(await isValid(quick))
    kit.clock.advance(86_339_000)
    t.ok(await isValid(slow))
    t.equal((await post('revoke', { token: String(ended.body.access_token) }, app)).status, 200)
    t.notOk(await isValid(ended))
    kit.clock.advance(1_000)
    t.notOk(await isValid(slow))
  })

  await t.test('a change counts from the next token on', async (t) => {
    const { resources } = kit.app.identity
    const ask = async () => (await post('token', { grant_type: 'client_credentials', scope: scopes.slow }, app)).body.expires_in
    await resources.patch(resourceId, { data: { accessTtl: 120 } })
    t.equal(await ask(), 120)
    await resources.patch(resourceId, { data: { accessTtl: null } })
    t.equal(await ask(), 3600)
  })
})
