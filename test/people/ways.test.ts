import t from 'tap'
import type { Page } from '../oidc/browser.ts'
import { anotherForm, withoutIds } from '../oidc/browser.ts'
import { askCode, eachStore } from '../oidc/harness.ts'
import { en } from '../../lib/pages/texts/en.ts'

const PASSWORD = 'correct horse battery'

/** The links that lead on from a page: their texts and paths. */
const readWays = ({ text }: Page) => [...text.matchAll(/<p class="(?:actions|next)"><a[^>]* href="([^"]*)">(.*?)<\/a>/g)].map(([, href = '', label = '']) => [label, href])

eachStore(t, 'no page for a link is a dead end', async (t, start) => {
  const harness = await start({ signUp: true, signUpDomains: ['example.com'] })
  const { kit, browser, user } = harness
  const { accounts } = kit.app.identity

  for (const [path, known, unknown] of [['forgot', user.account, 'nobody@example.com'], ['sign-up', 'new@example.com', user.account]] as const) {
    await t.test(`${path}: the page shows what was typed, and sends the link again or lets it be corrected, in the same way for every address`, async (t) => {
      const pages = []
      for (const typed of [known, unknown]) {
        const ask = await browser().open(`/account/${path}`)
        const sent = await ask.submit({ typed })
        t.match(sent.text, `<strong><bdi>${typed}</bdi></strong>`)
        const again = await sent.submit({ again: 'yes' })
        t.equal(again.title, en.links.sent.title)
        t.match(again.text, en.links.sent.again)
        const correct = await sent.submit({ correct: 'yes' })
        t.equal(correct.title, ask.title)
        t.match(correct.text, `value="${typed}"`)
        t.match(await correct.submit({ typed: '<b>' }), { response: { status: 400 } })
        pages.push([sent, again, correct].map(({ text, response: { status } }) => `${status} ${withoutIds(text).replaceAll(typed, 'X')}`))
      }
      t.strictSame(pages[0], pages[1], 'the answers tell nobody which address has an account')
      const mails = (await kit.mails.all()).filter(({ to }) => to === known)
      t.equal(mails.length, 2, 'the first request and its repetition, and none for a correction')
      t.ok(mails.every(({ link }) => link !== undefined))
    })
  }

  await t.test('asking again counts as asking', async (t) => {
    const sent = await (await browser().open('/account/forgot')).submit({ typed: 'eve@example.com' })
    let refused = 0
    for (let count = 0; count < 40; count++) refused += (await sent.submit({ again: 'yes' })).response.status === 429 ? 1 : 0
    const first = (await (await browser().open('/account/forgot')).submit({ typed: 'eve@example.com' })).response.status
    t.equal(refused > 0, first === 429, 'the limit of the first request is that of its repetition')
    t.equal((await sent.submit({ correct: 'yes' })).title, en.links.forgot.title, 'a correction is not counted')
    await kit.mails.all()
    kit.clock.advance(60 * 60 * 1000)
  })

  await t.test('a used or unknown link leads to another one of its kind', async (t) => {
    for (const [path, ways] of [
      ['reset', [['Request a new link', '/account/forgot']]],
      ['sign-up', [['Request a new link', '/account/sign-up'], ['Sign in', '/account']]],
      ['invitation', [['Sign in', '/account'], ['Forgot password?', '/account/forgot']]],
      ['verify', [['Go to your email address', '/account/email']]],
      ['undo', [['Forgot password?', '/account/forgot']]]
    ] as const) {
      const gone = await browser().open(`/account/${path}?token=unknown`)
      t.equal(gone.response.status, 410, path)
      t.strictSame(readWays(gone), ways, path)
      t.not((await gone.browser.open(ways[0][1])).response.status, 404, 'and the way is there')
    }
    await accounts.forgotPassword(user.account, { ip: '127.0.0.1' })
    const form = await browser().open((await kit.mails.next({ to: user.account })).link!)
    const done = await form.submit({ password: PASSWORD })
    t.strictSame(readWays(done), [['Go to your account', '/account']], 'a new password leads to the account')
    t.match(done.text, '<a class="button primary" href="/account">Go to your account</a>')
    t.strictSame(readWays(await form.submit({ password: PASSWORD, ...anotherForm() })), [['Request a new link', '/account/forgot']])
  })

  await t.test('after a sign-up that no app has begun, one button leads to the account', async (t) => {
    await accounts.signUp('carl@example.com', { ip: '127.0.0.1' })
    const form = await browser().open((await kit.mails.next({ to: 'carl@example.com' })).link!)
    t.strictSame(readWays(await form.submit({ password: PASSWORD, ...anotherForm() })), [['Go to your account', '/account']])
  })
})

eachStore(t, 'the way back to the app', async (t, start) => {
  const harness = await start({ signUp: true })
  const { kit, browser, register } = harness

  /** Opens a sign-in, ends it by a refusal, and goes back to its page. */
  async function goBack (app: Awaited<ReturnType<typeof register>>): Promise<[back: Page, elsewhere: Page]> {
    const ann = browser()
    const page = await ann.open(askCode(app).url)
    const { pathname } = new URL(page.response.url)
    t.ok((await page.submit({ cancel: 'yes' })).left)
    return [await ann.open(pathname), await browser().open(pathname)]
  }

  await t.test('a sign-in that is over has a link to its app, in its browser', async (t) => {
    const [back, elsewhere] = await goBack(await register({ name: 'Harbour <b>' }))
    t.equal(back.response.status, 400)
    t.match(back.text, en.errors.signInOver)
    t.strictSame(readWays(back), [['Go back to <bdi>Harbour &lt;b&gt;</bdi>', 'https://app.example/']])
    t.strictSame(readWays(elsewhere), [['Go to your account', '/account']], 'another browser knows of no app')
  })

  await t.test('a link to an app that the operator does not vouch for warns; there is none to one that is gone', async (t) => {
    const [open] = await goBack(await register({ first_party: false, name: 'Mallory' }))
    t.match(open.text, 'leads to <bdi>app.example</bdi>. This service hasn’t verified that app.')
    t.strictSame(readWays(open), [['Go to your account', '/account'], ['Go back to <bdi>Mallory</bdi>', 'https://app.example/']])
    const app = await register()
    const ann = browser()
    const { response: { url } } = await ann.open(askCode(app).url)
    await kit.app.identity.clients.remove(app.client_id, { user_id: harness.user.user_id, isAdmin: true })
    const gone = await ann.open(url)
    t.equal(gone.response.status, 400)
    t.notMatch(gone.text, 'app.example')
    t.match((await browser().open(url, { headers: { cookie: 'identity_app=../../x' } })).response.status, 400)
  })

  await t.test('an expired sign-in has it too, and a used link of a sign-up asks for another in its sign-in while that lasts', async (t) => {
    const app = await register()
    const ann = browser()
    const sent = await (await ann.open(askCode(app, { prompt: 'create' }).url)).submit({ typed: 'dora@example.com' })
    const { pathname } = new URL(sent.response.url)
    const link = new URL((await kit.mails.next({ to: 'dora@example.com' })).link!)
    link.searchParams.set('token', 'used')
    t.strictSame(readWays(await ann.open(link.href))[0], ['Request a new link', pathname])
    t.strictSame(readWays(await browser().open(link.href))[0], ['Request a new link', '/account/sign-up'])
    kit.clock.advance(2 * 60 * 60 * 1000)
    t.strictSame(readWays(await ann.open(pathname)), [['Go back to <bdi>The App</bdi>', 'https://app.example/']])
  })
})
