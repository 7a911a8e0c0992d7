import t from 'tap'
import { askCode, eachStore, signIn, startHarness, type App, type Harness } from './harness.ts'

const GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

async function begin ({ post }: Harness, app: App, scope = 'openid', headers: Record<string, string> = {}): Promise<Record<string, string>> {
  return (await post('device_authorization', { scope }, app, headers)).body as Record<string, string>
}

eachStore(t, 'polling', async (t, start) => {
  const harness = await start()
  const { kit, post, register, browser } = harness
  const app = await register({ public: true })
  const poll = async ({ device_code = '' }: Record<string, string>) =>
    (await post('token', { grant_type: GRANT, device_code }, app)).body.error

  await t.test('a device learns the interval, and is told to slow down when it polls faster (RFC 8628, 3.5)', async (t) => {
    const code = await begin(harness, app)
    t.equal(code.interval, 5)
    const other = await begin(harness, app)
    t.equal(await poll(code), 'authorization_pending', 'the first poll may come at once')
    t.equal(await poll(code), 'slow_down')
    t.equal(await poll(other), 'authorization_pending', 'each code is polled for itself')
    kit.clock.advance(3_000)
    t.equal(await poll(code), 'slow_down')
    kit.clock.advance(2_000)
    t.equal(await poll(code), 'authorization_pending', 'a poll that was too fast does not move the next one')
    kit.clock.advance(5_000)
    const answers = await Promise.all(Array.from({ length: 6 }, () => poll(code)))
    t.strictSame(answers.sort(), ['authorization_pending', ...Array(5).fill('slow_down')], 'one of several at once')
  })

  await t.test('a code that the user has decided about is answered at any time', async (t) => {
    const code = await begin(harness, app)
    t.equal(await poll(code), 'authorization_pending')
    const tab = browser()
    await signIn(harness, askCode(app).url, tab)
    let page = await (await tab.open('/api/v1/auth/device')).submit({ user_code: code.user_code ?? '' })
    page = await page.submit()
    if (page.title.startsWith('Continue to')) page = await page.submit({ decision: 'allow' })
    t.equal(page.title, 'Device connected')
    t.equal(await poll(code), undefined)
    const refused = await begin(harness, app)
    t.equal(await poll(refused), 'authorization_pending')
    await (await (await tab.open('/api/v1/auth/device')).submit({ user_code: refused.user_code ?? '' })).submit({ abort: 'yes' })
    t.equal(await poll(refused), 'access_denied')
  })
})

t.test('the code of a link is shown, and is not filled in', async (t) => {
  const harness = await startHarness(t)
  const app = await harness.register({ public: true })
  const { user_code = '', verification_uri_complete = '' } = await begin(harness, app)
  let page = await harness.browser().open(verification_uri_complete)
  t.match(page.text, 'Does your device show this code?')
  t.match(page.text, `<code>${user_code}</code>`)
  t.notMatch(page.text, '<input class')
  const form = await page.browser.open(/<a href="([^"]*)">Type another code/.exec(page.text)?.[1] ?? '')
  t.match(form.text, 'Code shown on the device')
  t.notMatch(form.text, user_code)
  page = await (await page.browser.open(verification_uri_complete)).submit()
  t.equal(page.title, 'Is this your device?')

  // Any other text of a link stays off the page.
  for (const text of ['Call 555-0100', 'AAAA-AAAA', `${user_code}x`, '<b>', '']) {
    const shown = await harness.browser().open(`/api/v1/auth/device?${new URLSearchParams({ user_code: text })}`)
    t.match(shown.text, 'Code shown on the device', text)
    // The links to the page in other languages repeat its query.
    if (text !== '') t.notOk(shown.text.replaceAll(/href="[^"]*"/g, '').includes(text), text)
  }
  const plain = await harness.browser().open(`/api/v1/auth/device?user_code=${user_code.replace('-', '').toLowerCase()}`)
  t.match(plain.text, `<code>${user_code}</code>`, 'as a person may type it')
})

t.test('the page that asks about a device names the account and what the app gets, and shows no text of the device', async (t) => {
  const harness = await startHarness(t)
  const app = await harness.register({ public: true, name: 'The App' })
  const { user_code = '' } = await begin(harness, app, 'openid offline_access read', { 'user-agent': 'your own television' })
  const confirm = async (browser = harness.browser()) => await (await browser.open('/api/v1/auth/device')).submit({ user_code })
  const before = await confirm()
  t.equal(before.title, 'Is this your device?')
  t.match(before.text, 'You will be asked to sign in.')
  const browser = harness.browser()
  await signIn(harness, askCode(app).url, browser)
  const page = await confirm(browser)
  t.match(page.text, `You are signed in as <strong><bdi>${harness.user.account}</bdi></strong>`)
  for (const { text } of [before, page]) {
    t.match(text, /<li>know who you are<\/li>.*<li>stay signed in .*<\/li>.*<li>use <code>read<\/code><\/li>/s)
    t.notMatch(text, 'television')
    t.match(text, 'The request came from <bdi>127.0.0.1</bdi>')
  }
})
