import t from 'tap'
import { type HeldRow, checkHolders } from '../helpers/holders.ts'
import { type App, type Answer, askCode, getCode, signIn, startHarness } from './harness.ts'

// What the first client sends was issued to the second one, for the same user.

const harness = await startHarness(t)
const { kit, post } = harness
const [ANOTHER, HOLDER] = [await harness.register({ name: 'Another' }), await harness.register({ name: 'Holder' })]

/** @throws with the code of an error */
async function send (path: string, app: App, fields: Record<string, string>): Promise<Answer> {
  const answer = await post(path, fields, app)
  if (answer.status >= 400) throw Object.assign(new Error(`${path}: ${answer.status}`), { code: answer.body.error })
  return answer
}

/** The call, by each with what was issued to the holder. */
const each = <T>(issue: () => Promise<T>, call: (by: App, issued: T) => Promise<unknown>): HeldRow['hold'] => async () => {
  const issued = await issue()
  return { other: async () => await call(ANOTHER, issued), own: async () => await call(HOLDER, issued) }
}

async function issueTokens (): Promise<{ access_token: string, refresh_token: string }> {
  const { body } = await send('token', HOLDER, await getCode(harness, HOLDER))
  return body as { access_token: string, refresh_token: string }
}

async function approveDevice (): Promise<string> {
  const { body: { device_code, user_code } } = await send('device_authorization', HOLDER, { scope: 'openid read' })
  const browser = harness.browser()
  await signIn(harness, askCode(HOLDER).url, browser)
  const asked = await (await browser.open('/api/v1/auth/device')).submit({ user_code: String(user_code) })
  await asked.submit({ decision: 'allow' })
  return String(device_code)
}

async function pushRequest (): Promise<string> {
  const query = new URL(askCode(HOLDER).url, 'http://localhost').searchParams
  return String((await send('par', HOLDER, Object.fromEntries(query))).body.request_uri)
}

async function authorize ({ client_id }: App, request_uri: string): Promise<void> {
  const page = await harness.browser().open(`/api/v1/auth/authorize?${new URLSearchParams({ client_id, request_uri })}`)
  if (page.title !== 'Sign in') throw Object.assign(new Error('not asked to sign in'), { code: page.left?.searchParams.get('error') })
}

const INVALID = { code: 'invalid_grant' }

checkHolders(t, kit.app.identity.store, {
  'a code': { refusal: INVALID, hold: each(async () => await getCode(harness, HOLDER), async (app, fields) => await send('token', app, fields)) },
  'a refresh token': {
    refusal: INVALID,
    hold: each(issueTokens, async (app, { refresh_token }) => await send('token', app, { grant_type: 'refresh_token', refresh_token }))
  },
  'a pushed request': { refusal: { code: 'invalid_request_object' }, hold: each(pushRequest, authorize) },
  'an access token that is revoked': { refusal: { code: 'invalid_request' }, hold: each(issueTokens, async (app, { access_token: token }) => await send('revoke', app, { token })) },
  'a refresh token that is revoked': { refusal: { code: 'invalid_request' }, hold: each(issueTokens, async (app, { refresh_token: token }) => await send('revoke', app, { token })) }
})

// Its poll is counted, so its answer is not all that changes.
t.test('a device code', async (t) => {
  const device_code = await approveDevice()
  const poll = async (app: App) => await send('token', app, { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code })
  await t.rejects(poll(ANOTHER), INVALID)
  kit.clock.advance(10_000)
  t.match((await poll(HOLDER)).body, { access_token: String })
})
