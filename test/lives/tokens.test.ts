import t from 'tap'
import { type Answer, type App, askCode, getCode, signIn, startHarness } from '../oidc/harness.ts'
import { DAY, HOUR, type Life, MINUTE, SECOND, tryLives } from '../helpers/lives.ts'

// How long what the authorization server hands out can be used: the times of the documentation, over HTTP.

t.test('what the authorization server hands out', async (t) => {
  const harness = await startHarness(t)
  const { kit, post, get, register, browser } = harness
  const { store } = kit.app.identity
  const app = await register()
  const third = await register({ first_party: false })
  const device = await register({ public: true })

  /** Whether a request was answered; it may fail only in this way. */
  function isGranted ({ status, body }: Answer, error: string): boolean {
    if (status !== 200 && body.error !== error) throw new Error(`another error: ${JSON.stringify(body)}`)
    return status === 200
  }
  const redeem = async (fields: Record<string, string>, of: App = app) => await post('token', fields, of)
  const begin = async () => (await redeem(await getCode(harness, app))).body as { access_token: string, refresh_token: string }
  const refresh = async (refresh_token: string) => await redeem({ grant_type: 'refresh_token', refresh_token })
  const isLive = async (token: string) => (await get('tokeninfo', token)).status === 200
  const ask = async () => (await post('device_authorization', { scope: 'openid' }, device)).body as { device_code: string, user_code: string }
  const titleOf = async (page: ReturnType<typeof signIn>) => (await page).title

  const rows: Life[] = [
    {
      name: 'an access token of a client',
      life: HOUR,
      stored: 'access_tokens',
      async make () {
        const { access_token } = (await redeem({ grant_type: 'client_credentials' })).body
        return async () => await isLive(String(access_token))
      }
    },
    {
      name: 'an access token of a user',
      life: HOUR,
      stored: 'access_tokens',
      async make () {
        const { access_token } = await begin()
        return async () => await isLive(access_token)
      }
    },
    {
      name: 'a refresh token, from its issue',
      life: 30 * DAY,
      stored: 'refresh_tokens',
      async make () {
        const { refresh_token } = await begin()
        return async () => isGranted(await refresh(refresh_token), 'invalid_grant')
      }
    },
    {
      name: 'a refresh token that was used, for a lost response',
      life: 10 * SECOND,
      async make () {
        const { refresh_token } = await begin()
        t.equal((await refresh(refresh_token)).status, 200)
        return async () => isGranted(await refresh(refresh_token), 'invalid_grant')
      }
    },
    {
      name: 'an authorization code',
      life: MINUTE,
      stored: 'authorization_codes',
      async make () {
        const code = await getCode(harness, app)
        return async () => isGranted(await redeem(code), 'invalid_grant')
      }
    },
    {
      name: 'a pushed request',
      life: MINUTE,
      stored: 'pushed_requests',
      async make () {
        const { body, status } = await post('par', Object.fromEntries(new URL(askCode(app).url, harness.url).searchParams), app)
        t.equal(status, 201)
        const url = `/api/v1/auth/authorize?${new URLSearchParams({ client_id: app.client_id, request_uri: String(body.request_uri) })}`
        return async () => await titleOf(browser().open(url)) === 'Sign in'
      }
    },
    {
      name: 'a device code',
      life: 10 * MINUTE,
      async make () {
        const { device_code } = await ask()
        return async () => {
          const { error } = (await redeem({ grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code }, device)).body
          t.match(error, /^(?:authorization_pending|expired_token)$/)
          return error === 'authorization_pending'
        }
      }
    },
    {
      name: 'the code that a user types',
      life: 10 * MINUTE,
      async make () {
        const { user_code } = await ask()
        return async () => await titleOf((await browser().open('/api/v1/auth/device')).submit({ user_code })) === 'Sign in'
      }
    },
    {
      name: 'a sign-in page that nobody has used',
      life: 30 * MINUTE,
      stored: 'interactions',
      async make () {
        const page = await browser().open(askCode(third).url)
        return async () => await titleOf(page.submit({ account: harness.user.account, password: harness.user.password })) === 'Continue to The App'
      }
    },
    {
      name: 'a sign-in after its first form',
      life: HOUR,
      stored: 'interactions',
      async make () {
        const page = await (await browser().open(askCode(third).url)).submit({ account: harness.user.account, password: 'wrong' })
        t.equal(page.response.status, 400)
        return async () => await titleOf(page.submit({ account: harness.user.account, password: harness.user.password })) === 'Continue to The App'
      }
    },
    {
      name: 'a browser that is signed in, from its last use',
      life: 14 * DAY,
      async make () {
        const tab = browser()
        await signIn(harness, askCode(app).url, tab)
        kit.clock.advance(13 * DAY)
        const isSignedIn = async () => (await tab.open(askCode(app, { prompt: 'none' }).url)).left?.searchParams.has('code') === true
        t.ok(await isSignedIn())
        return isSignedIn
      }
    },
    {
      name: 'a named secret of a client',
      life: DAY,
      async make () {
        const { secret } = await kit.secret(app.client_id, { expires_in: DAY / SECOND })
        return async () => isGranted(await redeem({ grant_type: 'client_credentials' }, { ...app, client_secret: secret }), 'invalid_client')
      }
    }
  ]
  await tryLives(t, { clock: kit.clock, store }, rows)
})
