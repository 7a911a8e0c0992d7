import { askCode, eachStore } from '../oidc/harness.ts'
import t from 'tap'
import { post } from '../pages/visits.ts'
import { answerOf, leave, readError, through } from './through.ts'

const START = '/api/v1/auth/upstream/test'
const ASKED = 'Create your account'

// Any site may open the link of a sign-in, and a provider that knows the browser answers without a click.
eachStore(t, 'a link on a site of strangers makes no account', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {} })
  const { kit } = harness
  const app = await harness.register()
  const count = async () => await kit.app.identity.users.count({})
  const events = async () => (await kit.events.list({})).filter(({ type }) => /^user\.signed_up|^identity\.linked|^sign_in\.succeeded/.test(type)).length
  const before = { users: await count(), events: await events() }
  const unchanged = async (what: string) => t.strictSame({ users: await count(), events: await events() }, before, what)
  const arrive = async (from: string) => {
    const browser = harness.browser()
    const page = await browser.open(await answerOf(await leave(browser, from)))
    return { browser, page }
  }
  kit.upstream({ sub: 'uma', email: 'uma@example.org', email_verified: true })

  await t.test('by whatever road it leads here', async (t) => {
    for (const from of [START, `${START}?next=sessions`, askCode(app, { upstream: 'test' }).url, `${START}?login_hint=uma@example.org`]) {
      const { browser, page } = await arrive(from)
      t.equal(page.title, ASKED, from)
      t.match(page.text, /uma@example\.org/)
      t.notMatch(page.text, /name="account"/, 'there is nothing to choose')
      t.match((await browser.open('/account')).title, /^Sign in/, 'nobody is signed in')
      await unchanged(from)
    }
  })

  await t.test('nor by a form that is not of this page', async (t) => {
    const { browser, page } = await arrive(START)
    t.equal((await page.submit({}, { origin: 'https://evil.example' })).response.status, 403)
    t.match(readError(await post(page, '/account/sign-in/upstream', { xsrf: 'x' })), /page has expired/)
    const other = await arrive(START)
    t.match(readError(await other.browser.open('/account/sign-in/upstream', { method: 'POST', body: new URLSearchParams({ xsrf: /name="xsrf" value="([^"]*)"/.exec(page.text)![1]! }), headers: { origin: browser.origin } })), /page has expired/, 'the secret of another browser')
    await unchanged('no form')
    t.match((await page.submit({ cancel: 'yes' })).title, /^Sign in/)
    t.match(readError(await page.submit()), /This sign-in has expired/, 'cancelled')
    await unchanged('cancelled')
  })

  await t.test('nor after ten minutes, and a second visit asks again', async (t) => {
    const { browser, page } = await arrive(START)
    kit.clock.advance(10 * 60_000)
    t.match(readError(await page.submit()), /This sign-in has expired/)
    t.equal((await browser.open(await answerOf(await leave(browser, START)))).title, ASKED)
    await unchanged('late')
  })

  await t.test('the person is asked once, and never again', async (t) => {
    const { page } = await arrive(askCode(app, { upstream: 'test' }).url)
    t.match((await page.submit()).left?.searchParams.get('code'), /./, 'and goes on to the app')
    t.equal(await count(), before.users + 1)
    const { page: again } = await arrive(START)
    t.match(again.title, /Profile/)
  })

  await t.test('who agrees to change the account has been asked', async (t) => {
    const browser = harness.browser()
    t.match((await through(browser, START)).title, /Profile/)
    kit.upstream({ sub: 'vic', email: 'vic@example.org', email_verified: true })
    const page = await through(browser, START)
    t.match(page.title, /Switch accounts/)
    t.equal(await kit.app.identity.users.getByAccount('vic@example.org'), null)
    t.match((await page.submit()).text, /vic@example\.org/)
  })
})
