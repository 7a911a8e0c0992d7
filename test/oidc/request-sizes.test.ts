import t from 'tap'
import type { Document } from '../../lib/store/port.ts'
import { askCode, eachStore } from './harness.ts'

interface Stored extends Document { expired_at: string }

eachStore(t, 'what an anonymous request may store', async (t, start) => {
  const harness = await start()
  const { kit, post, browser, user } = harness
  const { store } = kit.app.identity
  const app = await harness.register({ first_party: false })
  const count = async (name: string) => await store.collection(name).count()
  /** Milliseconds for which the records of a collection live. */
  async function readLives (name: string): Promise<number[]> {
    const lives: number[] = []
    for await (const batch of store.collection<Stored>(name).stream()) lives.push(...batch.map(({ expired_at }) => Date.parse(expired_at) - kit.clock.now()))
    return lives
  }

  const LONG: [name: string, params: Record<string, string>, state: string | null][] = [
    ['state', { state: 's'.repeat(4097) }, null],
    ['nonce', { nonce: 'n'.repeat(2049) }, 'abc'],
    ['login_hint', { login_hint: 'ä'.repeat(1025) }, 'abc'],
    ['ui_locales', { ui_locales: 'de '.repeat(683) }, 'abc'],
    ['all', { state: 's'.repeat(4096), nonce: 'n'.repeat(2048), login_hint: 'h'.repeat(2048) }, 's'.repeat(4096)]
  ]

  await t.test('long parameters are refused on our page, and with prompt=none by a redirect with the state', async (t) => {
    for (const [name, params, state] of LONG) {
      t.match(await browser().open(askCode(app, params).url), { left: undefined, error: 'invalid_request', response: { status: 400 } }, name)
      const { left } = await browser().open(askCode(app, { ...params, prompt: 'none' }).url)
      t.equal(left?.origin, 'https://app.example', name)
      t.equal(left?.searchParams.get('error'), 'invalid_request', name)
      t.match(left?.searchParams.get('error_description'), /must have at most \d+ bytes/, name)
      t.equal(left?.searchParams.get('state'), state, name)
      const { state: given = 'abc', ...rest } = params
      for (const path of name === 'login_hint' ? ['par', 'device_authorization'] : ['par']) {
        const fields = { ...Object.fromEntries(new URL(askCode(app).url, harness.url).searchParams), state: given, ...rest }
        t.match(await post(path, fields, app), { status: 400, body: { error: 'invalid_request' } }, `${path}: ${name}`)
      }
    }
    t.equal(await count('interactions'), 0)
    t.equal(await count('pushed_requests'), 0)
    t.match(await post('par', { response_type: 'code', unknown: 'x'.repeat(16 * 1024) }, app), { status: 413, body: { error: 'invalid_request' } })
  })

  await t.test('parameters within the limits are stored', async (t) => {
    const params = { state: 's'.repeat(4096), nonce: 'n'.repeat(2048) }
    const page = await browser().open(askCode(app, params).url)
    t.equal(page.title, 'Sign in')
    const fields = { ...Object.fromEntries(new URL(askCode(app, params).url, harness.url).searchParams) }
    t.match(await post('par', fields, app), { status: 201 })
    for await (const batch of store.collection('interactions').stream()) {
      for (const record of batch) {
        t.ok(JSON.stringify(record).length < 16_000, 'sealed, in base64')
        await store.collection('interactions').delete(record.id)
      }
    }
  })

  await t.test('a sign-out too, with a page', async (t) => {
    const before = await count('sign_in_sessions')
    const page = await browser().open(`/api/v1/auth/session/end?${new URLSearchParams({ client_id: app.client_id, state: 's'.repeat(4097) })}`)
    t.equal(page.response.status, 400)
    t.match(page.text, /<code>invalid_request<\/code> state must have at most 4096 bytes/)
    t.equal(await count('sign_in_sessions'), before)
  })

  await t.test('a sign-in lives half an hour until the first form, and each form makes it an hour', async (t) => {
    const page = await browser().open(askCode(app).url)
    t.strictSame(await readLives('interactions'), [1800_000])
    kit.clock.advance(1000_000)
    const second = await page.submit({ account: user.account, password: 'wrong' })
    t.strictSame(await readLives('interactions'), [3600_000])
    kit.clock.advance(3000_000)
    const third = await second.submit({ account: user.account, password: 'wrong' })
    t.strictSame(await readLives('interactions'), [3600_000])
    kit.clock.advance(3000_000)
    const consent = await third.submit({ account: user.account, password: user.password })
    t.match(consent.title, 'Continue to')
    t.ok((await readLives('interactions')).includes(3600_000), 'the consent page is of somebody who is signed in')
    const { left } = await consent.submit({ decision: 'allow' })
    t.ok(left?.searchParams.get('code'))
  })

  await t.test('after half an hour it has expired, and the page leads back to the app', async (t) => {
    const page = await browser().open(askCode(app).url)
    kit.clock.advance(1801_000)
    const late = await page.submit({ account: user.account, password: user.password })
    t.equal(late.response.status, 400)
    t.match(late.text, '<a rel="noreferrer" href="https://app.example/">Go back to')
  })
})
