import { createSilentRecorder } from '../../helpers/events.ts'
import t from 'tap'
import type { GrantRecord, TokenRecord } from '../../../lib/records/token.ts'
import { createTokens } from '../../../lib/tokens/tokens.ts'
import { createToken, hashToken } from '../../../lib/crypto/random-token.ts'
import type { Json } from '../../../lib/store/port.ts'
import { forEachStore } from '../../helpers/build.ts'
import { callAs } from '../../helpers/people.ts'
import { redeem, rotate } from '../../helpers/redeem.ts'

t.setTimeout(120_000)

const HOUR = 3600

await forEachStore(t, async (t, build) => {
  t.test('deleting the grant is the one write that ends a token session', async (t) => {
    const kit = await build(t)
    const { tokens, store } = kit.app.identity
    const session = await kit.mint({ refresh: true })
    const ask = async () => (await callAs(kit, session.headers).get('/auth/tokeninfo')).status
    t.equal(await ask(), 200)
    t.equal(await ask(), 200, 'from the cache')
    const { token } = await tokens.authenticate(session.access_token)
    await store.collection('grants').delete(token.grant_id!)
    t.equal(await ask(), 401)
    t.equal(await store.collection('access_tokens').count({ equal: { user_id: session.user_id } }), 1, 'its record is still there')
    t.match(await redeem(kit, session, session.refresh_token), { status: 400 })
  })

  t.test('a token whose grant has expired or lags behind an epoch is dead', async (t) => {
    const kit = await build(t)
    const { tokens, store } = kit.app.identity
    const changes: Record<string, Json>[] = [{ expired_at: new Date(kit.clock.now()).toISOString() }, { user_epoch: -1 }, { client_epoch: -1 }]
    for (const set of changes) {
      const session = await kit.mint({ refresh: true })
      const { token } = await tokens.authenticate(session.access_token)
      await store.collection('grants').update(token.grant_id!, { set })
      t.equal((await callAs(kit, session.headers).get('/auth/tokeninfo')).status, 401, JSON.stringify(set))
    }
  })

  t.test('a grant never expires before a token under it', async (t) => {
    const kit = await build(t, { oidc: { refreshTtl: 60, accessTtl: HOUR } })
    const { tokens, store } = kit.app.identity
    const grants = store.collection<GrantRecord>('grants')
    const session = await kit.mint({ refresh: true, ttl: HOUR })
    const id = (await tokens.authenticate(session.access_token)).token.grant_id!
    t.equal(Date.parse((await grants.get(id))!.expired_at), kit.clock.now() + HOUR * 1000, 'minted')
    kit.clock.advance(30_000)
    const { body } = await redeem(kit, session, session.refresh_token)
    t.equal(Date.parse((await grants.get(id))!.expired_at), kit.clock.now() + HOUR * 1000, 'refreshed')
    kit.clock.advance(HOUR * 1000 - 1)
    t.equal((await callAs(kit, { authorization: `Bearer ${body.access_token}` }).get('/auth/tokeninfo')).status, 200)
    t.match(await redeem(kit, session, body.refresh_token), { status: 400 }, 'the refresh token has expired')
    await tokens.issueUnder('access_tokens', { token: createToken(), ttl: 2 * HOUR }, id)
    await tokens.issueUnder('access_tokens', { token: createToken(), ttl: 1 }, id)
    t.equal(Date.parse((await grants.get(id))!.expired_at), kit.clock.now() + 2 * HOUR * 1000, 'and never moves back')
  })

  t.test('a grant outlives its tokens however long the store takes', async (t) => {
    let time = Date.UTC(2126, 0, 1)
    const kit = await build(t, { oidc: { refreshTtl: 60, accessTtl: HOUR } })
    const { store, roles } = kit.app.identity
    // The clock advances at every call, as between the writes of a slow store.
    const tokens = createTokens({ store, now: () => (time += 1000), roles, recorder: createSilentRecorder(store), report: () => () => {}, refreshTtl: 60 })
    const { user_id, client_id } = await kit.mint()
    const { access_token, refresh_token } = await tokens.mint({ user_id, client_id, refresh: true, ttl: HOUR })
    const access = async (token: string) => (await store.collection<TokenRecord>('access_tokens').get(hashToken(token)))!
    const { grant_id, expired_at } = await access(access_token)
    const grant = async () => (await store.collection<GrantRecord>('grants').get(grant_id!))!.expired_at
    t.ok(await grant() >= expired_at, 'minted')
    t.ok(await grant() >= (await store.collection<TokenRecord>('refresh_tokens').get(hashToken(refresh_token!)))!.expired_at)
    const token = createToken()
    await tokens.issueUnder('access_tokens', { token, ttl: 2 * HOUR }, grant_id!)
    t.ok(await grant() >= (await access(token)).expired_at, 'issued')
  })

  t.test('the end of a session deletes its codes, device codes and tokens, and no others', async (t) => {
    const kit = await build(t)
    const { tokens, store } = kit.app.identity
    const names = ['access_tokens', 'refresh_tokens', 'authorization_codes', 'device_codes', 'grants']
    const sessions = await Promise.all([kit.mint({ refresh: true }), kit.mint({ refresh: true })])
    for (const { access_token, refresh_token } of sessions) {
      const { record } = (await tokens.find<TokenRecord>('refresh_tokens', hashToken(refresh_token!)))!
      await store.collection('authorization_codes').insert({ ...record, id: `code of ${access_token}` })
      await store.collection('device_codes').insert({ ...record, id: `device code of ${access_token}` })
    }
    await tokens.revoke((await tokens.authenticate(sessions[0].access_token)).token)
    await tokens.settle()
    for (const name of names) {
      for (const [index, { user_id }] of sessions.entries()) t.equal(await store.collection(name).count({ equal: { user_id } }), index, name)
    }
    t.match(await tokens.authenticate(sessions[1].access_token), { user: { user_id: sessions[1].user_id } })
  })

  t.test('every kind of record is dead at the millisecond it expires', async (t) => {
    const kit = await build(t)
    const { tokens, store } = kit.app.identity
    const { refresh_token } = await kit.mint({ refresh: true })
    const { record } = (await tokens.find<TokenRecord>('refresh_tokens', hashToken(refresh_token!)))!
    const expired_at = new Date(kit.clock.now() + 1000).toISOString()
    const names = ['access_tokens', 'refresh_tokens', 'authorization_codes', 'device_codes', 'grants', 'sign_in_sessions'] as const
    const { grant_id, client_id, ...ofUser } = record
    for (const name of names) {
      const owners = name === 'sign_in_sessions' ? {} : name === 'grants' ? { client_id } : { client_id, grant_id }
      await store.collection(name).put({ ...ofUser, ...owners, id: 'x', expired_at } as TokenRecord)
    }
    kit.clock.advance(999)
    for (const name of names) t.ok(await tokens.find(name, 'x'), name)
    kit.clock.advance(1)
    for (const name of names) t.equal(await tokens.find(name, 'x'), null, name)
  })

  t.test('a session that the caller keeps revives no record that an earlier change ended', async (t) => {
    const kit = await build(t)
    const { tokens, tokenSessions, store } = kit.app.identity
    const session = await kit.mint({ refresh: true })
    const id = hashToken(session.refresh_token!)
    // As after an earlier change that kept this session, and was interrupted before it updated the refresh token.
    const set = { user_epoch: -1 }
    await store.collection('refresh_tokens').update(id, { set })
    await tokenSessions.end(session.user_id, (await tokens.authenticate(session.access_token)).token)
    t.match(await tokens.authenticate(session.access_token), { user: { user_id: session.user_id } }, 'the session goes on')
    t.match(await redeem(kit, session, session.refresh_token), { status: 400 }, 'what was dead stays dead')
  })

  t.test('a session that the caller keeps goes on with all its tokens', async (t) => {
    const kit = await build(t)
    const { tokens, tokenSessions } = kit.app.identity
    const [session, other] = [await kit.mint({ user: 'ann', refresh: true }), await kit.mint({ user: 'ann', refresh: true })]
    await tokenSessions.end(session.user_id, (await tokens.authenticate(session.access_token)).token)
    t.match(await tokens.authenticate(session.access_token), { user: { account: 'ann' } })
    t.match(await redeem(kit, session, session.refresh_token), { status: 200 })
    t.match(await callAs(kit, other.headers).get('/auth/tokeninfo'), { status: 401 })
    t.match(await redeem(kit, other, other.refresh_token), { status: 400 })
  })

  t.test('a refresh token is minted only where an authorization server redeems it', async (t) => {
    const kit = await build(t, { oidc: false })
    await t.rejects(kit.mint({ refresh: true }), { code: 'ErrParam', message: 'refresh: there is no authorization server to redeem a refresh token' })
    t.ok(await kit.mint())
  })

  t.test('a failure to delete dead records is reported, and the session has ended', async (t) => {
    const kit = await build(t)
    const { tokens, store } = kit.app.identity
    const session = await kit.mint({ refresh: true })
    const { token } = await tokens.authenticate(session.access_token)
    const refreshTokens = store.collection('refresh_tokens')
    t.intercept(refreshTokens, 'deleteMany', { value: async () => { throw new Error('no disk') } })
    await tokens.revoke(token)
    t.match(await callAs(kit, session.headers).get('/auth/tokeninfo'), { status: 401 })
    await t.rejects(rotate(tokens, session.refresh_token!), { code: 'ErrUnknown' })
  })
})
