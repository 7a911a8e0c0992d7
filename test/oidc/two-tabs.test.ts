import t from 'tap'
import { askCode, startHarness } from './harness.ts'

t.test('a form of one tab cannot decide the interaction of another tab', async (t) => {
  const { url, user, browser, register } = await startHarness(t)
  const form = { account: user.account, password: user.password }
  const page = await browser().open(askCode(await register({ name: 'Here' })).url)
  const [, here = ''] = /<form[^>]* action="([^"]*)"/.exec(page.text) ?? []
  const asked = await browser().fetch(askCode(await register({ name: 'There' })).url)
  const there = asked.headers.get('location') ?? ''
  t.match([here, there], [/\/interaction\//, /\/interaction\//])
  const cookie = asked.headers.getSetCookie().filter((line) => line.startsWith('identity_interaction')).map((line) => line.split(';')[0]).join('; ')

  /** Sends a request with the cookie of the second tab. */
  async function send (path: string, options: RequestInit = {}) {
    const response = await fetch(new URL(path, url), { redirect: 'manual', ...options, headers: { cookie, origin: url } })
    return { status: response.status, text: await response.text() }
  }
  const post = { method: 'POST', body: new URLSearchParams(form) }
  t.match(await send(there), { status: 200, text: /There/ }, 'the page of its own interaction')
  t.match(await send(here), { status: 400, text: /This sign-in has expired/ }, 'the page of another')
  t.match(await send(here, post), { status: 400, text: /This sign-in has expired/ }, 'the form of another')
  t.match(await send(there, post), { status: 303 }, 'its own form')
  t.equal((await page.submit(form)).left?.origin, 'https://app.example', 'the first tab can continue')
})
