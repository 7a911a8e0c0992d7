import type { Test } from 'tap'
import t from 'tap'
import { type Answer, type App, type Harness, eachStore, getCode } from './harness.ts'

const REFUSED = { status: 400, body: { error: 'invalid_grant' } }

function createRefresh ({ post }: Harness, app: App) {
  return async (tokens: Answer, rest: Record<string, string> = {}) =>
    await post('token', { grant_type: 'refresh_token', refresh_token: String(tokens.body.refresh_token), ...rest }, app)
}

async function isAlive (t: Test, { get }: Harness, tokens: Answer, alive: boolean, message: string) {
  t.equal((await get('tokeninfo', String(tokens.body.access_token))).status, alive ? 200 : 401, message)
}

eachStore(t, 'refresh', async (t, start) => {
  const harness = await start({ oidc: { refreshGrace: 10 } })
  const { post, kit, register } = harness
  const app = await register()
  const refresh = createRefresh(harness, app)
  const begin = async () => await post('token', await getCode(harness, app), app)

  await t.test('each use gives a new pair of tokens', async (t) => {
    const first = await begin()
    const second = await refresh(first)
    t.match(second, { status: 200, body: { token_type: 'Bearer', scope: 'openid read offline_access' } })
    t.not(second.body.refresh_token, first.body.refresh_token)
    t.match(await refresh(second), { status: 200 })
    await isAlive(t, harness, first, true, 'the old access token stays valid until it expires')
    t.match((await refresh(await begin(), { scope: 'read' })).body, { scope: 'read' })
    t.match(await refresh(await begin(), { scope: 'write' }), { status: 400, body: { error: 'invalid_scope' } })
  })

  await t.test('a refreshed ID token has no nonce', async (t) => {
    const read = ({ body: { id_token } }: Answer) => JSON.parse(Buffer.from(String(id_token).split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>
    const first = await post('token', await getCode(harness, app, { nonce: 'n-0S6' }), app)
    const second = await refresh(first)
    const narrowed = await refresh(second, { scope: 'openid' })
    t.equal(read(first).nonce, 'n-0S6')
    for (const answer of [second, narrowed, await refresh(second)]) t.match([read(answer).sub, 'nonce' in read(answer)], [read(first).sub, false])
  })

  await t.test('after a lost response the old token is accepted again within the grace', async (t) => {
    const first = await begin()
    const lost = await refresh(first)
    kit.clock.advance(9_000)
    const again = await refresh(first)
    t.match(again, { status: 200 })
    t.match(await refresh(lost), { status: 200 }, 'the lost pair works too')
    t.match(await refresh(again), { status: 200 })
  })

  await t.test('concurrent refreshes from several tabs all succeed', async (t) => {
    const first = await begin()
    for (let round = 0, tokens = first; round < 3; round++) {
      const answers = await Promise.all(Array.from({ length: 6 }, () => refresh(tokens)))
      t.strictSame(answers.map(({ status }) => status), Array(6).fill(200))
      t.equal(new Set(answers.map(({ body }) => body.refresh_token)).size, 6)
      for (const answer of answers) await isAlive(t, harness, answer, true, 'a tab')
      tokens = answers[round] as Answer
    }
  })

  await t.test('two successors of one token: after the grace, the use of one spends both', async (t) => {
    const first = await begin()
    const [client, thief] = [await refresh(first), await refresh(first)]
    const next = await refresh(client)
    t.match(next, { status: 200 })
    t.match((await post('introspect', { token: String(thief.body.refresh_token) }, app)).body, { active: true }, 'within the grace')
    kit.clock.advance(10_000)
    t.match((await post('introspect', { token: String(thief.body.refresh_token) }, app)).body, { active: false })
    t.match(await refresh(thief), REFUSED)
    t.match(await refresh(next), REFUSED, 'the session has ended')
    for (const tokens of [first, client, thief, next]) await isAlive(t, harness, tokens, false, 'the family')
  })

  await t.test('two parallel lines of tokens do not outlive the grace', async (t) => {
    const first = await begin()
    let lines = [await refresh(first), await refresh(first)]
    for (let turn = 0; turn < 6; turn++) {
      lines = [await refresh(lines[0]!), await refresh(lines[1]!)]
      t.match(lines, [{ status: 200 }, { status: 200 }], 'at once, as two tabs do')
    }
    const next = await refresh(lines[0]!)
    kit.clock.advance(3_600_000)
    t.match(await refresh(lines[1]!), REFUSED)
    await isAlive(t, harness, next, false, 'both')
  })

  await t.test('within the grace a token is accepted again, also after its successors were used', async (t) => {
    const first = await begin()
    let tokens = await refresh(first)
    for (let turn = 0; turn < 3; turn++) {
      kit.clock.advance(2_000)
      tokens = await refresh(tokens)
    }
    const late = await refresh(first)
    t.match(late, { status: 200 })
    t.match(await refresh(late), { status: 200 })
  })

  await t.test('a second use after the grace ends the token session', async (t) => {
    const first = await begin()
    const second = await refresh(first)
    const third = await refresh(second)
    kit.clock.advance(10_000)
    t.match(await refresh(first), REFUSED)
    t.match(await refresh(third), REFUSED)
    for (const tokens of [first, second, third]) await isAlive(t, harness, tokens, false, 'the family')
  })

  await t.test('a refresh token expires, counted from its last use', async (t) => {
    const first = await begin()
    kit.clock.advance(29 * 86_400_000)
    const second = await refresh(first)
    t.match(second, { status: 200 })
    kit.clock.advance(29 * 86_400_000)
    const third = await refresh(second)
    t.match(third, { status: 200 }, 'the lifetime restarts with each use')
    kit.clock.advance(30 * 86_400_000)
    t.match(await refresh(third), REFUSED)
  })

  await t.test('another client cannot use it', async (t) => {
    const tokens = await begin()
    t.match(await createRefresh(harness, await register())(tokens), REFUSED)
    t.match(await refresh(tokens), { status: 200 })
  })

  await t.test('minted tokens can be refreshed, introspected and revoked, and work at userinfo', async (t) => {
    const { app: { identity: { tokens } } } = kit
    const minted = await tokens.mint({ user_id: harness.user.user_id, client_id: app.client_id, refresh: true })
    const { get } = harness
    t.match(await post('introspect', { token: minted.access_token }, app), {
      status: 200, body: { active: true, sub: harness.user.user_id, client_id: app.client_id, scope: 'openid read write', token_type: 'Bearer' }
    })
    t.match(await get('userinfo', minted.access_token), { status: 200, body: { sub: harness.user.user_id } })
    const pair = await post('token', { grant_type: 'refresh_token', refresh_token: String(minted.refresh_token) }, app)
    t.match(pair, { status: 200 })
    t.match(await get('tokeninfo', String(pair.body.access_token)), { status: 200 })
    t.match(await post('revoke', { token: String(pair.body.access_token) }, app), { status: 200 })
    for (const token of [minted.access_token, String(pair.body.access_token)]) {
      t.match(await get('tokeninfo', token), { status: 401 })
      t.match((await post('introspect', { token }, app)).body, { active: false })
    }
    const alone = await tokens.mint({ user_id: harness.user.user_id, client_id: app.client_id, scopes: ['read'] })
    t.match(await get('userinfo', alone.access_token), { status: 200 }, 'also without a token session')
    t.match((await post('introspect', { token: alone.access_token }, app)).body, { active: true, scope: 'openid read' })
    await post('revoke', { token: alone.access_token }, app)
    t.match(await get('tokeninfo', alone.access_token), { status: 401 })
  })

  await t.test('logout by an access token ends its refresh token', async (t) => {
    const tokens = await begin()
    await fetch(`${harness.url}/api/v1/auth/logout`, { method: 'POST', headers: { authorization: `Bearer ${tokens.body.access_token}` } })
    t.match(await refresh(tokens), REFUSED)
    await isAlive(t, harness, tokens, false, 'the access token')
  })
})

eachStore(t, 'refresh without a grace', async (t, start) => {
  const harness = await start({ oidc: { refreshGrace: 0 } })
  const app = await harness.register()
  const refresh = createRefresh(harness, app)
  const first = await harness.post('token', await getCode(harness, app), app)
  const answers = await Promise.all([refresh(first), refresh(first), refresh(first)])
  t.ok(answers.filter(({ status }) => status === 200).length <= 1, 'at most one of several at once succeeds')
  for (const answer of answers.filter(({ status }) => status === 200)) t.match(await refresh(answer), REFUSED, 'and its session ends')
  await isAlive(t, harness, first, false, 'the family')
})
