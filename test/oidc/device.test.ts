import t, { type Test } from 'tap'
import type { SignInSessionRecord } from '../../lib/browsers/record.ts'
import type { Proof } from '../../lib/proofs.ts'
import { HOUR } from '../helpers/lives.ts'
import type { Browser, Page } from './browser.ts'
import { askCode, eachStore, signIn, startHarness, type App, type Harness } from './harness.ts'

const GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

async function begin ({ post }: Harness, app: App, scope = 'openid', headers: Record<string, string> = {}): Promise<Record<string, string>> {
  return (await post('device_authorization', { scope }, app, headers)).body as Record<string, string>
}

/** Enters the code. */
const enter = async (tab: Browser, { user_code = '' }: Record<string, string>): Promise<Page> => (
  await (await tab.open('/api/v1/auth/device')).submit({ user_code }))

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
    const consent = await enter(tab, code)
    t.equal((await consent.submit({ decision: 'allow' })).title, 'Device connected')
    t.equal(await poll(code), undefined)
    const refused = await begin(harness, app)
    t.equal(await poll(refused), 'authorization_pending')
    await (await enter(tab, refused)).submit({ decision: 'deny' })
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
  const form = await page.browser.open(/<a href="([^"]*)">Enter another code/.exec(page.text)?.[1] ?? '')
  t.match(form.text, 'Code on your device')
  t.notMatch(form.text, user_code)
  page = await (await page.browser.open(verification_uri_complete)).submit()
  t.equal(page.title, 'Sign in')

  // Any other text of a link stays off the page.
  for (const text of ['Call 555-0100', 'AAAA-AAAA', `${user_code}x`, '<b>', '']) {
    const shown = await harness.browser().open(`/api/v1/auth/device?${new URLSearchParams({ user_code: text })}`)
    t.match(shown.text, 'Code on your device', text)
    // The links to the page in other languages repeat its query.
    if (text !== '') t.notOk(shown.text.replaceAll(/href="[^"]*"/g, '').includes(text), text)
  }
  const plain = await harness.browser().open(`/api/v1/auth/device?user_code=${user_code.replace('-', '').toLowerCase()}`)
  t.match(plain.text, `<code>${user_code}</code>`, 'as a person may type it')
})

eachStore(t, 'three screens', async (t, start) => {
  const harness = await start({ oidc: { signInLimit: 1000 } })
  const { kit, post, register, browser, user } = harness
  const app = await register({ public: true })
  const poll = async ({ device_code = '' }: Record<string, string>) => {
    kit.clock.advance(5_000)
    return (await post('token', { grant_type: GRANT, device_code }, app)).body
  }
  const isPending = async (t: Test, code: Record<string, string>, message: string) => t.equal((await poll(code)).error, 'authorization_pending', message)
  const arrive = async () => {
    const tab = browser()
    await signIn(harness, askCode(app).url, tab)
    return tab
  }

  await t.test('the code, the sign-in, and one consent with the code, the account, what the app gets, and where the request came from', async (t) => {
    const code = await begin(harness, app, 'openid offline_access read', { 'user-agent': 'your own television' })
    const form = await enter(browser(), code)
    t.equal(form.title, 'Sign in')
    const consent = await form.submit({ account: user.account, password: user.password })
    const again = await enter(await arrive(), code)
    for (const page of [consent, again]) {
      t.equal(page.title, 'Continue to The App')
      t.match(page.text, `You are signed in as <strong><bdi>${user.account}</bdi></strong>`)
      t.match(page.text, 'Allow it only if that’s you, and the device shows this code:')
      t.match(page.text, `<code>${code.user_code}</code>`)
      t.match(page.text, 'The request came from the IP address <bdi>127.0.0.1</bdi>')
      t.match(page.text, /<li>Confirm your identity<\/li>.*<li>Keep its access .*<\/li>.*<li>Other access: <code>read<\/code><\/li>/s)
      t.notMatch(page.text, 'television', 'no text of the device')
    }
    await isPending(t, code, 'before')
    const done = await consent.submit({ decision: 'allow' })
    t.equal(done.title, 'Device connected')
    t.type((await poll(code)).access_token, 'string')
  })

  await t.test('the person is asked each time, also for a first-party app', async (t) => {
    const tab = await arrive()
    for (const first_party of [true, false]) {
      const other = await register({ public: true, first_party })
      for (let turn = 0; turn < 2; turn++) {
        const page = await enter(tab, await begin(harness, other))
        t.equal(page.title, 'Continue to The App', `first-party: ${first_party}`)
        t.equal((await page.submit({ decision: 'allow' })).title, 'Device connected')
      }
    }
  })

  await t.test('a link of a stranger leads to a page with his code and the warning; only the form there gives anything', async (t) => {
    const tab = await arrive()
    const code = await begin(harness, app)
    const compare = await tab.open(code.verification_uri_complete ?? '')
    t.match(compare.text, 'If somebody sent you this link or code, cancel.')
    const action = /action="([^"]+)"/.exec(compare.text)?.[1] ?? ''
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(compare.text)?.[1] ?? ''
    const send = async (url: string, fields: Record<string, string>, origin = tab.origin) => await tab.open(url, { method: 'POST', body: new URLSearchParams(fields), headers: { origin } })
    const all = { user_code: code.user_code ?? '', confirm: 'yes', decision: 'allow' }
    t.equal((await send(action, all)).response.status, 400, 'no token')
    t.equal((await (await tab.open(code.verification_uri_complete ?? '')).submit({ xsrf: 'guessed' })).response.status, 400, 'another token')
    t.equal((await browser().open(action, { method: 'POST', body: new URLSearchParams({ ...all, xsrf }) })).response.status, 400, 'the token of another browser')
    t.equal((await (await tab.open(code.verification_uri_complete ?? '')).submit({}, { origin: 'https://evil.example' })).response.status, 403, 'a form of another site')
    await isPending(t, code, 'forged forms of the code')

    const consent = await (await tab.open(code.verification_uri_complete ?? '')).submit({ decision: 'allow' })
    t.equal(consent.title, 'Continue to The App', 'the form of the code decides nothing')
    t.match(consent.text, `<code>${code.user_code}</code>`)
    t.match(consent.text, 'Allow it only if that’s you')
    const path = new URL(consent.response.url).pathname
    t.equal((await tab.open(`${path}?decision=allow`)).title, 'Continue to The App', 'a GET decides nothing')
    t.equal((await send(path, { decision: 'allow' }, 'https://evil.example')).response.status, 403, 'a form of another site')
    t.equal((await browser().open(path, { method: 'POST', body: new URLSearchParams({ decision: 'allow' }), headers: { origin: tab.origin } })).response.status, 400, 'another browser')
    await isPending(t, code, 'forged decisions')
    const uid = path.split('/').at(-1) ?? ''
    t.equal((await tab.open(`/api/v1/auth/device/${uid}`)).title, 'Continue to The App', 'to go on without a decision is to be asked again')
    await isPending(t, code, 'no decision')
    t.match((await consent.submit({ decision: 'allow' })).response.status, 400, 'the page from before')
    await isPending(t, code, 'the page from before')
  })

  await t.test('who signs in as somebody else is asked as that person', async (t) => {
    await kit.app.identity.users.create({ data: { account: 'bob@example.com', password: 'correct horse', name: 'Bob' } })
    const code = await begin(harness, app)
    const consent = await enter(await arrive(), code)
    const form = await consent.browser.open(/<a href="([^"]*account=other)"/.exec(consent.text)?.[1] ?? '')
    t.equal(form.title, 'Sign in')
    const page = await form.submit({ account: 'bob@example.com', password: 'correct horse' })
    t.match(page.text, 'You are signed in as <strong><bdi>bob@example.com</bdi></strong>')
    t.match(page.text, `<code>${code.user_code}</code>`)
    t.match((await consent.submit({ decision: 'allow' })).response.status, 400, 'the page of the first account')
    await isPending(t, code, 'not yet')
    t.equal((await page.submit({ decision: 'allow' })).title, 'Device connected')
    t.match((await harness.get('tokeninfo', String((await poll(code)).access_token))).body, { data: { account: 'bob@example.com' } })
  })

  await t.test('each step can be cancelled, and the device is told', async (t) => {
    const steps: Record<string, (code: Record<string, string>) => Promise<Page>> = {
      'the code of a link': async ({ verification_uri_complete = '' }) => await (await browser().open(verification_uri_complete)).submit({ abort: 'yes' }),
      'the sign-in': async (code) => await (await enter(browser(), code)).submit({ cancel: 'yes' }),
      'the consent': async (code) => await (await enter(await arrive(), code)).submit({ decision: 'deny' })
    }
    for (const [step, cancel] of Object.entries(steps)) {
      const code = await begin(harness, app)
      t.match((await cancel(code)).text, 'The device wasn’t connected. You can close this page.', step)
      t.equal((await poll(code)).error, 'access_denied', step)
      t.match((await enter(browser(), code)).text, 'This code was already used.', step)
    }
  })

  await t.test('a code that was used, refused or has expired meanwhile: the next page says so', async (t) => {
    const ways: Record<string, [end: (code: Record<string, string>) => Promise<unknown>, text: string]> = {
      used: [async (code) => await (await enter(await arrive(), code)).submit({ decision: 'allow' }), 'This code was already used.'],
      refused: [async (code) => await (await enter(await arrive(), code)).submit({ decision: 'deny' }), 'This code was already used.'],
      expired: [async () => kit.clock.advance(601_000), 'This code has expired.'],
      'long gone': [async () => kit.clock.advance(1201_000), 'We don’t know that code.']
    }
    for (const [name, [end, text]] of Object.entries(ways)) {
      const code = await begin(harness, app)
      const [form, reloaded, sent, refused] = [
        await enter(browser(), code), await enter(await arrive(), code), await enter(await arrive(), code), await enter(await arrive(), code)
      ]
      await end(code)
      t.match((await form.submit({ account: user.account, password: user.password })).text, text, `${name}: the sign-in`)
      t.match((await reloaded.browser.open(reloaded.response.url)).text, text, `${name}: the consent, opened again`)
      t.match((await sent.submit({ decision: 'allow' })).text, text, `${name}: the consent`)
      t.match((await refused.submit({ decision: 'deny' })).text, text, `${name}: the consent, refused`)
    }
  })

  await t.test('a code can be entered again until somebody has decided', async (t) => {
    const code = await begin(harness, app)
    t.equal((await enter(browser(), code)).title, 'Sign in')
    const consent = await enter(await arrive(), code)
    const later = await enter(await arrive(), code)
    t.equal((await later.submit({ decision: 'allow' })).title, 'Device connected')
    t.match((await consent.submit({ decision: 'deny' })).text, 'This code was already used.')
    t.type((await poll(code)).access_token, 'string')
    t.match((await enter(browser(), code)).text, 'This code was already used.')
  })

  await t.test('a form that does not go on by itself, as one of an earlier release, is answered with the code to compare', async (t) => {
    const code = await begin(harness, app)
    const form = await (await browser().open('/api/v1/auth/device')).submit({ user_code: code.user_code ?? '', confirm: '' })
    t.match(form.text, 'Does your device show this code?')
    t.match(form.text, `<code>${code.user_code}</code>`)
    t.equal((await form.submit()).title, 'Sign in')
  })

  await t.test('`max_age` and `acr_values` of the device decide who has to sign in; `prompt` is no parameter of such a request, and spares nobody the question', async (t) => {
    const ask = async (params: Record<string, string>) => (await post('device_authorization', { scope: 'openid', ...params }, app)).body as Record<string, string>
    const tab = await arrive()
    for (const params of [{ max_age: '3600' }, { prompt: 'none' }, { acr_values: '1' }] as Record<string, string>[]) {
      t.equal((await enter(tab, await ask(params))).title, 'Continue to The App', JSON.stringify(params))
    }
    const sessions = kit.app.identity.store.collection<SignInSessionRecord>('sign_in_sessions')
    const toTime = (ago: number) => new Date(kit.clock.now() - ago).toISOString()
    const proofs: Proof[] = [{ way: 'password', kind: 'password', at: toTime(2 * HOUR) }, { way: 'removed', kind: 'upstream', at: toTime(0) }]
    for await (const batch of sessions.stream()) for (const { id } of batch) await sessions.update(id, { set: { proofs } })
    const code = await ask({ max_age: '3600' })
    const form = await enter(tab, code)
    t.equal(form.title, 'Sign in')
    const consent = await form.submit({ account: user.account, password: user.password })
    t.equal((await consent.submit({ decision: 'allow' })).title, 'Device connected')
    t.type((await poll(code)).access_token, 'string')
    const strong = await ask({ acr_values: 'mfa' })
    t.match((await enter(tab, strong)).text, 'Something went wrong.')
    t.equal((await poll(strong)).error, 'unmet_authentication_requirements')
    const totp = await kit.totp(user.user_id)
    const stronger = await ask({ acr_values: 'mfa' })
    const step = await enter(tab, stronger)
    t.equal(step.title, 'Enter your verification code')
    await isPending(t, stronger, 'before the second step')
    kit.clock.advance(30_000)
    const last = await step.submit({ code: await totp.code() })
    t.equal((await last.submit({ decision: 'allow' })).title, 'Device connected')
    t.type((await poll(stronger)).access_token, 'string')
  })
})
