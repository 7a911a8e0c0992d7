import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import { askCode, eachStore } from '../oidc/harness.ts'
import { agree, answerOf, leave, readError, through } from './through.ts'

const START = '/api/v1/auth/upstream/test'
const HOUR = 60 * 60_000

eachStore(t, 'a person without a password, who is asked again', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {} })
  const { kit } = harness
  const app = await harness.register()
  kit.upstream({ sub: 'ann', email: 'a@example.org', email_verified: true })
  const browser = harness.browser()
  t.match((await through(browser, START)).title, /Profile/)
  const sensitive = '/account/factors/add'
  const isAsked = (page: { title: string }) => /Confirm it’s you/.test(page.title)

  await t.test('proves it with a form, and not with a link that any site may open', async (t) => {
    kit.clock.advance(HOUR)
    const page = await browser.open('/account/email')
    const again = isAsked(page) ? page : await browser.open('/account/sign-in')
    t.ok(isAsked(again))
    t.match(again.text, /<button type="submit" name="upstream" value="test">/)
    t.notMatch(again.text, /<a class="button" href/)
    t.match(again.response.headers.get('content-security-policy'), /form-action 'self' http:;/, 'the form may lead to the provider')
    const before = (await kit.events.list({ type: 'sign_in.succeeded' })).length
    t.ok(isAsked(await through(browser, START)), 'a link changes nothing')
    t.equal((await kit.events.list({ type: 'sign_in.succeeded' })).length, before)
    const { left } = await again.submit({ upstream: 'test' })
    t.equal(left?.searchParams.get('prompt'), 'login')
    t.match((await browser.open(await answerOf(left))).title, /Profile|Email address/)
    t.notOk(isAsked(await browser.open(sensitive)))
  })

  await t.test('and the provider has asked them', async (t) => {
    kit.clock.advance(HOUR)
    const page = await browser.open('/account/sign-in')
    kit.upstream({ sub: 'ann', auth_time: Math.floor(kit.clock.now() / 1000) - 3000 })
    const { left } = await page.submit({ upstream: 'test' })
    t.match(readError(await browser.open(await answerOf(left))), /didn’t ask you to sign in again/)
    kit.upstream({ sub: 'ann' })
  })

  await t.test('the same for an app that asks', async (t) => {
    const page = await browser.open(askCode(app, { prompt: 'login' }).url)
    t.match(page.text, /<button type="submit" name="upstream" value="test">/)
    const uid = new URL(page.response.url).pathname.split('/').at(-1)!
    const linked = await through(browser, `${START}?uid=${uid}`)
    t.equal(linked.left, undefined, 'a link does not answer it')
    const { left } = await page.submit({ upstream: 'test' })
    t.match((await browser.open(await answerOf(left))).left?.searchParams.get('code'), /./)
  })

  await t.test('the time of the sign-in is that of the provider', async (t) => {
    const other = harness.browser()
    const time = Math.floor(kit.clock.now() / 1000) - 5000
    kit.upstream({ sub: 'ann', auth_time: time })
    const page = await through(other, await other.open(askCode(app).url))
    t.match(page.left?.searchParams.get('code'), /./)
    const record = (await kit.app.identity.store.collection<UserRecord>('users').getBy('account', 'a@example.org'))!
    const { entries } = await kit.app.identity.ownSessions.listBrowsers(record.id)
    t.ok(entries.some(({ signed_in_at }) => Date.parse(signed_in_at) === time * 1000))
    kit.upstream({ sub: 'ann', auth_time: time - 400 * 24 * 3600 })
    const old = harness.browser()
    t.match((await through(old, START)).title, /Profile/, 'a session that began with an old one is not over at once')
  })
})

eachStore(t, 'upstream= in an authorization request', async (t, start) => {
  const harness = await start({ signUp: true, upstream: {} })
  const app = await harness.register()
  harness.kit.upstream({ sub: 'bob', email: 'b@example.org', email_verified: true })
  const browser = harness.browser()
  const { left } = await browser.open(askCode(app, { upstream: 'test' }).url)
  t.match(left?.origin, harness.kit.upstream.issuer, 'leads straight to the provider')
  t.match((await agree(await browser.open(await answerOf(left)))).left?.searchParams.get('code'), /./)
  const page = await harness.browser().open(askCode(app, { upstream: 'none' }).url)
  t.equal(page.title, 'Sign in', 'an unknown one is ignored')
  const other = harness.browser()
  const refused = new URL(await answerOf((await other.open(askCode(app, { upstream: 'test' }).url)).left))
  const error = await other.open(`${START}/callback?${new URLSearchParams({ error: 'access_denied', state: refused.searchParams.get('state')! })}`)
  const back = /<a class="button primary" href="([^"]*)"/.exec(error.text)?.[1] ?? ''
  t.equal((await other.open(back.replaceAll('&amp;', '&'))).title, 'Sign in', 'whoever comes back from there is not sent there again')
})

eachStore(t, 'a link that a signed-in person has asked for', async (t, start) => {
  const harness = await start({ upstream: {} })
  const { kit, user } = harness
  const { upstreams } = kit.app.identity
  const actor = { user_id: user.user_id, epoch: 0 }
  const redirectUri = `${harness.url}${START}/callback`
  const [secret, session] = ['a secret of the browser', 'the uid of its session']
  kit.upstream({ sub: 'mine', email: 'elsewhere@example.org', email_verified: false })

  async function ask () {
    const to = await upstreams!.begin('test', { secret, redirectUri, intent: { kind: 'link', place: { session }, ...actor } })
    const { searchParams } = new URL(await answerOf(new URL(to)))
    const { upstream, claimed, intent } = await upstreams!.complete('test', searchParams, secret)
    await upstreams!.found.put({ secret, place: intent.place }, { upstream: upstream.id, claimed, intent })
  }

  await ask()
  t.equal(await upstreams!.found.takeLink('another', session, actor), null, 'another browser')
  t.equal(await upstreams!.found.takeLink(secret, 'another', actor), null, 'another session')
  t.equal(await upstreams!.found.takeLink(secret, session, { ...actor, user_id: 'somebody else' }), null)
  t.equal(await upstreams!.found.takeLink(secret, session, actor), null, 'which has spent it')
  await ask()
  t.equal(await upstreams!.found.takeLink(secret, session, { ...actor, epoch: 1 }), null, 'other sessions have ended since')
  await ask()
  const asked = (await upstreams!.found.find({ secret, place: { session } }))!
  await upstreams!.found.put({ secret, place: { session } }, { ...asked, intent: { kind: 'sign_in', place: { session } as never } })
  t.equal(await upstreams!.found.takeLink(secret, session, actor), null, 'a sign-in is no link')
  await ask()
  const found = (await upstreams!.found.takeLink(secret, session, actor))!
  const proven = { upstream: upstreams!.require(found.upstream), claimed: found.claimed }
  await t.rejects(upstreams!.identities.linkOwn(proven, { ...actor, epoch: 7 }), { code: 'ErrUnknown' }, 'a session that has ended')
  await upstreams!.identities.linkOwn(proven, actor)
  t.match((await through(harness.browser(), START)).title, /Profile/, 'then it signs in, though its address is not proved')
  const other = await kit.app.identity.users.create({ data: { account: 'other', password: 'x' } })
  await t.rejects(upstreams!.identities.linkOwn(proven, { user_id: other.user_id, epoch: 0 }), { name: 'UpstreamError', refusal: 'taken' }, 'an identity has one account')
  const ways = (await kit.app.identity.store.collection<UserRecord>('users').get(user.user_id))!.ways!
  await kit.app.identity.accounts.unlinkIdentity(actor, Object.keys(ways)[0]!, { isEnd: false })
  t.match(readError(await through(harness.browser(), START)), /find an account for this sign-in/, 'unlinked')
  await leave(harness.browser(), START)
})
