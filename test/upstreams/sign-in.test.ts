import t from 'tap'
import { eachStore } from '../oidc/harness.ts'
import { askCode } from '../oidc/harness.ts'
import { addUser, enter } from '../pages/visits.ts'
import { readError, through } from './through.ts'

const START = '/api/v1/auth/upstream/test'

eachStore(t, 'a new person', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {} })
  const { kit } = harness
  const app = await harness.register()

  await t.test('whose address is proved gets an account with it, signs in to an app, and comes back', async (t) => {
    kit.upstream({ sub: 'bob', email: 'Bob@Example.com', email_verified: true, name: 'Bob' })
    const browser = harness.browser()
    const page = await through(browser, await browser.open(askCode(app).url))
    t.match(page.left?.searchParams.get('code'), /./, readError(page))
    const user = await kit.app.identity.store.collection('users').getBy('account', 'bob@example.com')
    t.match(user, { email: 'bob@example.com', email_verified_at: String, name: 'Bob', roles: {} })
    const again = harness.browser()
    t.match((await through(again, await again.open(askCode(app).url))).left?.searchParams.get('code'), /./)
    t.equal(await kit.app.identity.users.count({}), 2)
    const events = await kit.events.list({ user: user!.id })
    t.strictSame(events.map(({ type }) => type), ['user.signed_up', 'identity.linked', 'sign_in.succeeded', 'sign_in.succeeded'])
    t.match(events.at(-1), { via: { upstream: 'test', subject: /^[\w-]{22}$/ } })
  })

  await t.test('chooses an account without a proved address, and an address is refused', async (t) => {
    for (const email_verified of [undefined, false, 'true', 'false', 1]) {
      kit.upstream({ sub: `carl ${email_verified}`, email: 'carl@example.com', email_verified })
      const browser = harness.browser()
      const page = await through(browser, await browser.open('/account/sign-in'))
      t.equal(page.title, 'Create your account', String(email_verified))
      t.match(page.text, /value="test-[0-9a-z]{8}"/)
      t.notMatch(page.text, /carl@/)
    }
    const browser = harness.browser()
    let page = await through(browser, START)
    page = await page.submit({ account: 'carl@example.com' })
    t.equal(page.response.status, 400)
    page = await page.submit({ account: harness.user.account })
    t.equal(page.response.status, 400, 'and so is that of somebody else')
    page = await page.submit({ account: 'Carl' })
    t.match(page.title, /Profile/)
    t.same(await kit.app.identity.store.collection('users').getBy('addresses', 'carl@example.com'), null)
    t.match(await kit.app.identity.store.collection('users').getBy('account', 'carl'), { account: 'carl', email: undefined })
  })
})

eachStore(t, 'an account with the same address', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {} })
  const { kit } = harness

  await t.test('is joined after a sign-in to it by all its steps', async (t) => {
    const dora = await addUser(harness, 'dora@example.com')
    kit.upstream({ sub: 'dora', email: 'dora@example.com', email_verified: true })
    const browser = harness.browser()
    let page = await through(browser, START)
    t.match(page.text, /An account with your email address already exists/)
    page = await page.submit({ account: dora.account, password: 'wrong' })
    t.match(page.text, /An account with your email address already exists/, 'also after a mistake')
    page = await page.submit({ account: dora.account, password: dora.password })
    t.match(page.title, /Profile/)
    t.match((await kit.events.list({ type: 'identity.linked' })).at(-1), { user_id: dora.user_id, via: { upstream: 'test' } })
    const other = harness.browser()
    t.match((await through(other, START)).title, /Profile/, 'from then on the provider is enough')
  })

  await t.test('is not joined by somebody who signs in to another account', async (t) => {
    const [erik, fay] = [await addUser(harness, 'erik@example.com'), await addUser(harness, 'fay@example.com')]
    kit.upstream({ sub: 'erik', email: 'erik@example.com', email_verified: true })
    const browser = harness.browser()
    const page = await through(browser, START)
    await page.submit({ account: fay.account, password: fay.password })
    for (const { user_id } of [erik, fay]) t.strictSame(await kit.events.list({ type: 'identity.linked', user: user_id }), [])
    await enter(harness, '/account', browser, erik)
    t.strictSame(await kit.events.list({ type: 'identity.linked', user: erik.user_id }), [], 'nor later')
  })
})
