import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { type DeviceCode, loginByDevice } from '../../cli/device-login.ts'
import { MINUTE, SECOND } from '../helpers/lives.ts'
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
    const signingIn = await form.submit({ user_code: told.at(-1)?.user_code ?? '' })
    const consent = await signingIn.submit({ account: user.account, password: user.password })
    const last = await consent.submit({ decision: turn === 'refuse' ? 'deny' : 'allow' })
    t.equal(last.title, turn === 'refuse' ? 'Error: Connect a device' : 'Device connected')
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

/** A server whose codes last for ten minutes, and which answers polls so. @returns its issuer */
async function serve (t: Test, answer: () => object): Promise<string> {
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo
    const url = `http://127.0.0.1:${port}`
    const replies: Record<string, () => object> = {
      '/.well-known/openid-configuration': () => ({ issuer: url, device_authorization_endpoint: `${url}/begin`, token_endpoint: `${url}/token` }),
      '/begin': () => ({ device_code: 'device', user_code: 'ABCD-EFGH', verification_uri: url, expires_in: 600, interval: 2 }),
      '/token': answer
    }
    const body = replies[request.url ?? '']!()
    response.writeHead('error' in body ? 400 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test('each slow_down adds five seconds to the wait', async (t) => {
  const answers = ['authorization_pending', 'slow_down', 'authorization_pending', 'slow_down', 'authorization_pending']
  const issuer = await serve(t, () => answers.length > 0 ? { error: answers.shift() } : { access_token: 'token', expires_in: 60 })
  const waits: number[] = []
  t.match(await loginByDevice({ issuer, client_id: 'app', scope: '', showCode: () => {}, wait: async (milliseconds) => { waits.push(milliseconds) } }), { access_token: 'token' })
  t.strictSame(waits, [2_000, 2_000, 7_000, 7_000, 12_000, 12_000])
})

t.test('a command polls as long as its code lasts', async (t) => {
  let [time, allowedAt] = [0, 0]
  const issuer = await serve(t, () => time < allowedAt ? { error: 'authorization_pending' } : { access_token: 'token', expires_in: 60 })
  const login = async () => await loginByDevice({ issuer, client_id: 'app', scope: '', showCode: () => {}, wait: async (milliseconds) => { time += milliseconds } })
    .then(({ access_token: token }) => token, ({ message }: Error) => message)
  for (const [allowed, outcome] of [[10 * MINUTE - SECOND, 'token'], [10 * MINUTE + SECOND, 'the code has expired']] as const) {
    [time, allowedAt] = [0, allowed]
    t.equal(await login(), outcome)
  }
})
