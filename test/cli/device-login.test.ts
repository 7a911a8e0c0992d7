import t from 'tap'
import { type DeviceCode, loginByDevice } from '../../cli/device-login.ts'
import { startHarness } from '../oidc/harness.ts'

t.test('the device flow', async (t) => {
  const harness = await startHarness(t)
  const { url, user } = harness
  const app = await harness.register({ public: true, redirectUris: [] })
  const told: DeviceCode[] = []
  const login = (rest: object = {}) => loginByDevice({ issuer: url, client_id: app.client_id, scope: 'openid offline_access read', showCode: (code) => told.push(code), ...rest })

  /** The user, between two polls. */
  const decide = (...turns: string[]) => async () => {
    const turn = turns.shift()
    if (turn === undefined || turn === 'nothing') return
    const form = await harness.browser().open(told.at(-1)?.verification_uri ?? '')
    const confirm = await form.submit({ user_code: told.at(-1)?.user_code ?? '' })
    if (turn === 'refuse') await confirm.submit({ abort: 'yes' })
    else {
      const consent = await (await confirm.submit()).submit({ account: user.account, password: user.password })
      t.equal((await consent.submit({ decision: 'allow' })).title, 'Device connected')
    }
  }

  const tokens = await login({ wait: decide('nothing', 'nothing', 'allow') })
  t.match(tokens, { expires_in: 3600, refresh_token: /./, scope: 'openid offline_access read' })
  t.match(await harness.get('tokeninfo', tokens.access_token), { status: 200, body: { data: { account: user.account } } })
  t.match(told[0], { user_code: /^\w{4}-\w{4}$/, verification_uri: `${url}/api/v1/auth/device` })
  t.notOk('device_code' in (told[0] ?? {}), 'the secret half is not shown')

  t.match((await login({ scope: '', wait: decide('allow') })).scope, 'read write', 'no scope: all of the client\'s own')
  await t.rejects(login({ wait: decide('refuse') }), /access_denied/)
  await t.rejects(login({ scope: 'foreign' }), /invalid_scope/)
  await t.rejects(login({ client_id: 'nobody' }), /invalid_client/)
  await t.rejects(login({ issuer: `${url}/elsewhere` }), /no authorization server/)
  await t.rejects(login({ issuer: url.replace('127.0.0.1', 'localhost') }), /no authorization server/, 'it goes by another name')
  const controller = new AbortController()
  await t.rejects(login({ signal: controller.signal, wait: async (_ms: number, signal: AbortSignal) => { controller.abort(); signal.throwIfAborted() } }), { name: 'AbortError' })
})
