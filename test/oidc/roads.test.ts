import t from 'tap'
import type { SignInSessionRecord } from '../../lib/browsers/record.ts'
import type { Proof } from '../../lib/proofs.ts'
import type { GrantRecord } from '../../lib/records/token.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { TestTotp } from '../../testing/totp.ts'
import type { Browser, Page } from './browser.ts'
import { type App, type Harness, askCode, eachStore, signIn } from './harness.ts'

const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const HOUR = 60 * 60_000

/** The claims of the ID token, of an authorization that has ended. */
async function redeem ({ post }: Harness, app: App, page: Page, verifier: string): Promise<Record<string, unknown>> {
  const code = page.left?.searchParams.get('code')
  if (typeof code !== 'string') throw new Error(`no code: ${page.left?.search ?? page.title}`)
  const { body } = await post('token', { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: app.redirect_uri }, app)
  return JSON.parse(Buffer.from(String(body.id_token).split('.')[1] ?? '', 'base64url').toString())
}

eachStore(t, 'what a person has proved is judged on every road', async (t, start) => {
  const harness = await start()
  const { kit, user, browser, register } = harness
  const { ways, store } = kit.app.identity
  const users = store.collection<UserRecord>('users')
  const actor = async () => ({ user_id: user.user_id, epoch: (await users.get(user.user_id))!.epoch })
  let authenticator: TestTotp
  const add = async () => {
    authenticator = await kit.totp(user.user_id)
    return authenticator.id
  }
  /** The form with the next code. */
  const second = async () => {
    kit.clock.advance(30_000)
    return { code: await authenticator.code() }
  }
  const app = await register()
  const asked = (params: Record<string, string> = {}) => askCode(app, { acr_values: '1', ...params })
  const findError = ({ left }: Page) => left?.searchParams.get('error')
  /** A browser with a session by the password alone, of a user who has a second factor since. */
  async function enter (run: (tab: Browser, totp: string) => Promise<void>): Promise<void> {
    const tab = browser()
    await signIn(harness, asked().url, tab)
    const totp = await add()
    try {
      await run(tab, totp)
    } finally {
      for (const [id, { kind }] of Object.entries((await users.get(user.user_id))?.ways ?? {})) if (kind === 'totp') await ways.remove(await actor(), id, { isEnd: false })
    }
  }

  await t.test('a sign-in: the second step follows the password, and only then there is a code', async (t) => {
    const id = await add()
    const { url, verifier } = asked()
    const asking = await signIn(harness, url)
    t.equal(asking.title, 'Enter your verification code')
    const wrong = await asking.submit({ account: user.account, password: user.password, code: user.password })
    t.equal(wrong.response.status, 400, 'the password is not the second factor')
    const done = await wrong.submit(await second())
    t.match(await redeem(harness, app, done, verifier), { sub: user.user_id, acr: 'mfa', amr: ['pwd', 'otp', 'mfa'] })
    t.match(await signIn(harness, asked().url, done.browser), { left: URL }, 'single sign-on with both')
    await ways.remove(await actor(), id, { isEnd: false })
  })

  await t.test('single sign-on asks for what is missing, and prompt=none says so', async (t) => {
    await enter(async (tab) => {
      t.equal(findError(await tab.open(asked({ prompt: 'none' }).url)), 'login_required')
      const { url, verifier } = asked()
      const page = await tab.open(url)
      t.equal(page.left, undefined)
      t.match(await redeem(harness, app, await page.submit(await second()), verifier), { acr: 'mfa' }, 'the password is not asked for again')
      t.equal(findError(await tab.open(asked({ prompt: 'none' }).url)), null)
    })
  })

  await t.test('a step-up asks for all when the password is older than 12 hours, and for a fresh sign-in', async (t) => {
    await enter(async (tab) => {
      const forced = await tab.open(asked({ prompt: 'login' }).url)
      t.equal((await forced.submit(await second())).response.status, 400, 'prompt=login asks for the password first')
      kit.clock.advance(13 * HOUR)
      const page = await tab.open(asked().url)
      t.equal((await page.submit(await second())).response.status, 400)
      const asking = await page.submit({ account: user.account, password: user.password })
      t.equal(asking.left, undefined)
      t.type((await asking.submit(await second())).left, URL)
    })
  })

  await t.test('consent that was asked for before is not enough', async (t) => {
    const stranger = await register({ first_party: false })
    const tab = browser()
    const consent = await (await tab.open(askCode(stranger).url)).submit({ account: user.account, password: user.password })
    t.match(consent.title, /^Continue to/)
    const id = await add()
    const page = await consent.submit({ decision: 'allow' })
    t.equal(page.left, undefined, 'no code')
    t.type((await page.submit(await second())).left, URL)
    await ways.remove(await actor(), id, { isEnd: false })
  })

  await t.test('a device is connected after both', async (t) => {
    const device = await register({ public: true })
    await enter(async (tab) => {
      const { body } = await harness.post('device_authorization', { scope: 'openid' }, device)
      const poll = async () => (await harness.post('token', { grant_type: DEVICE, device_code: String(body.device_code) }, device)).body
      let page = await (await tab.open('/api/v1/auth/device')).submit({ user_code: String(body.user_code) })
      t.equal(page.title, 'Enter your verification code')
      t.equal((await poll()).error, 'authorization_pending')
      page = await page.submit(await second())
      page = await page.submit({ decision: 'allow' })
      t.equal(page.title, 'Device connected')
      t.type((await poll()).access_token, 'string')
    })
  })

  await t.test('each visit of an account page', async (t) => {
    await enter(async (tab, totp) => {
      const page = await tab.open('/account')
      t.equal(page.title, 'Enter your verification code')
      t.match((await page.submit(await second())).text, user.account)
      await add()
      await ways.remove(await actor(), totp, { isEnd: false })
      t.equal((await tab.open('/account')).title, 'Enter your verification code', 'a way that was removed proves nothing')
    })
  })

  await t.test('a code and its tokens say no more than what still stands', async (t) => {
    const id = await add()
    const done = await (await signIn(harness, asked().url)).submit(await second())
    await ways.remove(await actor(), id, { isEnd: false })
    async function countStrong (): Promise<number> {
      let count = 0
      for await (const batch of store.collection<GrantRecord>('grants').stream()) count += batch.filter(({ auth }) => auth?.acr === 'mfa').length
      return count
    }
    const before = await countStrong()
    const { url, verifier } = asked()
    const claims = await redeem(harness, app, await done.browser.open(url), verifier)
    t.match([claims.acr, claims.amr], ['1', ['pwd']])
    t.equal(await countStrong(), before)
  })

  await t.test('max_age is compared with the time of what still stands', async (t) => {
    const tab = browser()
    await signIn(harness, asked().url, tab)
    t.equal(findError(await tab.open(asked({ prompt: 'none', max_age: '3600' }).url)), null)
    const sessions = store.collection<SignInSessionRecord>('sign_in_sessions')
    const toTime = (ago: number) => new Date(kit.clock.now() - ago).toISOString()
    const proofs: Proof[] = [{ way: 'password', kind: 'password', at: toTime(2 * HOUR) }, { way: 'removed', kind: 'upstream', at: toTime(0) }]
    for await (const batch of sessions.stream()) for (const { id } of batch) await sessions.update(id, { set: { proofs } })
    t.equal(findError(await tab.open(asked({ prompt: 'none', max_age: '3600' }).url)), 'login_required')
    const { url, verifier } = asked({ prompt: 'none', max_age: '86400' })
    const { auth_time } = await redeem(harness, app, await tab.open(url), verifier)
    t.ok(Number(auth_time) * 1000 < kit.clock.now() - 1.9 * HOUR)
  })

  await t.test('acr_values: the least of the known values, or unmet_authentication_requirements', async (t) => {
    const reply = await signIn(harness, asked({ acr_values: 'mfa phr' }).url)
    t.equal(findError(reply), 'unmet_authentication_requirements', 'nobody can prove what they do not have')
    t.equal(reply.left?.searchParams.get('state'), 'abc')
    const tab = browser()
    await signIn(harness, asked().url, tab)
    t.equal(findError(await tab.open(asked({ acr_values: 'mfa' }).url)), 'unmet_authentication_requirements', 'with a session')
    for (const acr_values of ['mfa 1', 'urn:other', 'urn:other 1']) t.equal(findError(await tab.open(asked({ acr_values, prompt: 'none' }).url)), null, acr_values)
    await enter(async (tab) => {
      t.equal(findError(await tab.open(asked({ acr_values: 'phr' }).url)), 'unmet_authentication_requirements')
    })
  })

  await t.test('with prompt=none, an app that the person has not allowed gets one answer whatever factors there are', async (t) => {
    const third = await register({ first_party: false, name: 'Third' })
    const native = await register({ first_party: false, public: true, redirectUris: ['com.example.app:/cb'] })
    const tab = browser()
    await signIn(harness, asked().url, tab)
    const RULES = [{}, { acr_values: '1' }, { acr_values: 'mfa' }, { acr_values: 'phr' }, { max_age: '0' }, { max_age: '1', acr_values: 'mfa' }, { acr_values: 'mfa', scope: 'openid read' }] as Record<string, string>[]
    const ask = async (app: App) => {
      const found = []
      for (const rule of RULES) found.push(findError(await tab.open(askCode(app, { scope: 'openid', prompt: 'none', ...rule }).url)))
      return found
    }
    kit.clock.advance(HOUR)
    const same = (error: string) => RULES.map(() => error)
    const compare = async (name: string) => {
      t.strictSame(await ask(third), same('consent_required'), name)
      t.strictSame(await ask(native), same('consent_required'), `${name}, of a native app`)
    }
    await compare('a password alone')
    const totp = await add()
    await compare('a code since')
    const page = await tab.open(asked({ acr_values: 'mfa' }).url)
    t.ok((await page.submit(await second())).left, 'signed in with both')
    await compare('both')
    await ways.remove(await actor(), totp, { isEnd: false })
    await compare('a factor that is gone')
    t.strictSame([await ask(app)].map((all) => all[2]), ['unmet_authentication_requirements'], 'a first-party app gets it')
    const consent = await tab.open(askCode(third, { scope: 'openid' }).url)
    t.ok((await consent.submit({ decision: 'allow' })).left?.searchParams.has('code'))
    t.match((await ask(third)).slice(0, 5), [undefined, undefined, 'unmet_authentication_requirements', 'unmet_authentication_requirements', 'login_required'].map((error) => error ?? null), 'and so does one that the person has allowed')
    t.equal(findError(await browser().open(askCode(third, { scope: 'openid', prompt: 'none', acr_values: 'mfa' }).url)), 'login_required', 'nobody is signed in')
  })

  await t.test('a session that an earlier release has stored counts as one by the password', async (t) => {
    await enter(async (tab) => {
      for await (const batch of store.collection<{ id: string, proofs?: Proof[] }>('sign_in_sessions').stream()) {
        for (const { id } of batch) await store.collection('sign_in_sessions').update(id, { unset: ['proofs'] })
      }
      t.equal(findError(await tab.open(asked({ prompt: 'none' }).url)), 'login_required')
      t.type((await (await tab.open(asked().url)).submit(await second())).left, URL)
    })
  })
})
