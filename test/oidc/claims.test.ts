import { hash } from 'node:crypto'
import t from 'tap'
import { type App, askCode, eachStore, getCode, signIn } from './harness.ts'

type Claims = Record<string, unknown>

/** Members that are about the token, not about the user. */
const OF_TOKEN = ['iss', 'aud', 'exp', 'iat', 'at_hash']

function readIdToken (token: unknown): Claims {
  return JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString())
}

eachStore(t, 'claims', async (t, start) => {
  const harness = await start()
  const { get, mark, post, register, user } = harness
  await harness.kit.app.identity.users.patch(user.user_id, { data: { roles: { clerk: true, seller: { area: 'north' } } } }, { user_id: 'x', isAdmin: true })
  const app = await register()
  const full = await register()
  await mark(full, { id_token_claims: true })
  const sub = user.user_id

  async function read (client: App, scope: string, params: Record<string, string> = {}): Promise<{ info: Claims, id: Claims, access: string, refresh: string }> {
    const { body } = await post('token', await getCode(harness, client, { scope, ...params }), client)
    const access = String(body.access_token)
    return { info: (await get('userinfo', access)).body, id: readIdToken(body.id_token), access, refresh: String(body.refresh_token) }
  }
  const ofUser = (claims: Claims) => Object.fromEntries(Object.entries(claims).filter(([name]) => !OF_TOKEN.includes(name)))

  const PROFILE = { preferred_username: user.account, name: 'Ann' }
  // The address is not verified.
  const EMAIL = { email: user.account, email_verified: false }
  const cases: [scope: string, claims: Claims][] = [
    ['openid', {}],
    ['openid profile', PROFILE],
    ['openid email', EMAIL],
    ['openid roles', { roles: ['clerk', 'seller'] }],
    ['openid profile email roles offline_access', { ...PROFILE, ...EMAIL, roles: ['clerk', 'seller'] }]
  ]
  for (const [scope, claims] of cases) {
    await t.test(scope, async (t) => {
      const plain = await read(app, scope)
      t.strictSame(plain.info, { sub, ...claims }, 'userinfo')
      t.strictSame(ofUser(plain.id), { sub }, 'the ID token of a client')
      const filled = await read(full, scope)
      t.strictSame(filled.info, { sub, ...claims }, 'userinfo')
      t.strictSame(ofUser(filled.id), { sub, ...claims }, 'the ID token of a client that wants the claims in it')
      if (!scope.includes('offline_access')) return
      for (const [client, { refresh }, expected] of [[app, plain, { sub }], [full, filled, { sub, ...claims }]] as const) {
        const again = await post('token', { grant_type: 'refresh_token', refresh_token: refresh }, client)
        t.strictSame(ofUser(readIdToken(again.body.id_token)), expected, 'after a refresh')
      }
    })
  }

  await t.test('a user whose account is not an address has no email', async (t) => {
    const { users } = harness.kit.app.identity
    await users.create({ data: { account: 'bob', password: 'secret', name: '' } })
    let page = await harness.browser().open(askCode(app, { scope: 'openid profile email' }).url)
    page = await page.submit({ account: 'bob', password: 'secret' })
    t.match(page.left?.searchParams.get('code'), /./)
    const { user_id } = (await users.signIn('bob', 'secret'))!
    const { access_token } = await harness.kit.app.identity.tokens.mint({ user_id, client_id: app.client_id })
    t.strictSame((await get('userinfo', access_token)).body, { sub: user_id })
  })

  await t.test('a request for acr_values is answered with the acr of a password sign-in', async (t) => {
    t.strictSame((await read(app, 'openid', { acr_values: '2 1' })).id.acr, '1')
    t.strictSame((await read(app, 'openid', { acr_values: 'urn:mace:incommon:iap:silver' })).id.acr, '1', 'as a voluntary claim: another level is no error')
    t.notOk('acr' in (await read(app, 'openid')).id)
    const browser = harness.browser()
    await signIn(harness, askCode(app).url, browser)
    const later = await post('token', await getCode(harness, app, { acr_values: '1', prompt: 'none' }, browser), app)
    t.strictSame(readIdToken(later.body.id_token).acr, '1', 'in a session that was there before')
  })

  await t.test('an ID token has the hash of the access token beside it', async (t) => {
    const expected = (token: string) => hash('sha256', token, 'buffer').subarray(0, 16).toString('base64url')
    const { id, access, refresh } = await read(app, 'openid offline_access')
    t.equal(id.at_hash, expected(access))
    const again = await post('token', { grant_type: 'refresh_token', refresh_token: refresh }, app)
    t.equal(readIdToken(again.body.id_token).at_hash, expected(String(again.body.access_token)))
  })

  await t.test('the metadata lists the claims that are issued, and the acr', async (t) => {
    const metadata = await (await fetch(`${harness.url}/.well-known/openid-configuration`)).json() as Record<string, string[]>
    t.strictSame(metadata.claims_supported?.sort(), ['acr', 'amr', 'auth_time', 'email', 'email_verified', 'iss', 'name', 'preferred_username', 'roles', 'sid', 'sub'])
    t.strictSame(metadata.acr_values_supported, ['1', 'mfa'])
    t.notOk(metadata.scopes_supported?.includes('sid'))
  })
})
