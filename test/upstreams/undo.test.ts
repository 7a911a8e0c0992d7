import t from 'tap'
import { de } from '../../lib/pages/texts/de.ts'
import { en } from '../../lib/pages/texts/en.ts'
import { dropLink } from '../../lib/pages/texts/template.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { type TestKit, createTestUpstream, startIdentity } from '../../testing/index.ts'
import { TEST_CLIENT } from '../../testing/upstream.ts'
import { Browser, type Page } from '../oidc/browser.ts'
import { type Harness, askCode, createFile, eachStore, getCode, signIn } from '../oidc/harness.ts'
import { enrol, enrolInSignIn, nextCode, pathOf } from '../pages/factors.ts'
import { addUser, enter, isSignedOut, post } from '../pages/visits.ts'
import { answerOf, leave, readError, through } from './through.ts'

const START = '/api/v1/auth/upstream/test'
const HOUR = 60 * 60_000
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const GERMAN = { headers: { 'accept-language': 'de' } }

t.setTimeout(180_000)

/** What is connected, by a person or by a thief in a browser that is signed in. */
const connect = async (kit: TestKit, tab: Browser, sub: string, proof: Record<string, string>): Promise<Page> => {
  kit.upstream({ sub })
  const form = await tab.open('/account/identities/add?upstream=test')
  const asked = await post(form, pathOf(form), proof)
  return asked.left === undefined ? asked : await tab.open(await answerOf(asked.left))
}

const openPeople = (harness: Pick<Harness, 'kit' | 'browser'>) => ({
  async readMail (to: string, path: string) {
    const found = (await harness.kit.mails.all()).filter((mail) => mail.to === to && mail.link?.includes(`/${path}?`)).at(-1)
    if (found === undefined) throw new Error(`no mail to ${to} leads to ${path}`)
    return found.link!
  },
  enterAs: async (sub: string, claims = {}) => {
    harness.kit.upstream({ sub, ...claims })
    return await through(harness.browser(), START)
  }
})

const plain = (text: string): string => text.replaceAll(/<[^>]+>/g, '').replaceAll('&#39;', '\'')

eachStore(t, 'a thief who knows the password', async (t, start) => {
  const harness = await start({ signUp: true, upstream: { link: 'confirm' } })
  const { kit, browser } = harness
  const { readMail, enterAs } = openPeople(harness)

  // S1 of the attack on the subsystems: the identity came through the undo of the factor, and through the new password.
  await t.test('connects an identity and adds a factor; the newest mail takes both away', async (t) => {
    const user = await addUser(harness, 'vi@example.com')
    const thief = browser()
    await enter(harness, '/account', thief, user)
    t.equal((await connect(kit, thief, 'the thief', {})).response.status, 400, 'the page asks for a proof')
    t.match((await connect(kit, thief, 'the thief', { current_password: user.password })).text, /The account is connected/)
    await enrol(kit.clock, await thief.open('/account'), user.password)
    t.match((await enterAs('the thief')).title, new RegExp(`Profile|${en.secondStep.title.totp}`), 'the thief has two ways in')
    const link = await readMail(user.account, 'undo')
    const german = plain((await browser().open(link, GERMAN)).text)
    for (const text of [de.links.undo.title, de.links.undo.goes, de.links.undo.ends, de.links.undo.own, de.links.ways.totp, 'Test, hinzugefügt am']) t.match(german, text)
    const page = await browser().open(link)
    for (const text of [en.links.undo.title, en.links.undo.goes, en.links.undo.ends, en.links.undo.own]) t.ok(plain(page.text).includes(text), text)
    t.match(plain(page.text), /Test, added .*Authenticator app, added .*Backup codes, added /s)
    const done = await page.submit()
    t.equal(done.title, en.links.done.undone.title)
    t.notMatch(done.text, en.links.undo.stays, 'nothing stays')
    const mails = (await kit.mails.all()).filter(({ to }) => to === user.account)
    t.strictSame(mails.map(({ link }) => link?.includes('/reset?')), [true], 'and no link for a factor, which nobody demands')
    const set = await (await browser().open(mails[0]!.link!)).submit({ password: 'a new horse' })
    t.equal(set.title, en.links.done.password.title)
    t.notMatch(set.text, en.links.review.stays)
    t.match((await enterAs('the thief')).title, /Create your account/, 'it is an identity of nobody')
    t.ok(isSignedOut(await thief.open('/account')))
    t.equal(readError(await enter(harness, '/account', browser(), user)), en.errors.wrongPassword)
    t.match((await enter(harness, '/account', browser(), { ...user, password: 'a new horse' })).title, /Profile/)
  })

  await t.test('what began before the undo: sessions, tokens, codes, devices, answers of the provider, and half a sign-in', async (t) => {
    const user = await addUser(harness, 'wim@example.com')
    const as = { ...harness, user }
    const app = await harness.register()
    const thief = browser()
    await enter(harness, '/account', thief, user)
    await connect(kit, thief, 'of wim', { current_password: user.password })
    const link = await readMail(user.account, 'undo')
    const redeem = async (fields: Record<string, string>) => await harness.post('token', fields, app)
    const { body: tokens } = await redeem({ ...await getCode(as, app) })
    t.type(tokens.refresh_token, 'string')
    const code = await getCode(as, app)
    const { body: device } = await harness.post('device_authorization', { scope: 'openid' }, app)
    await signIn(as, askCode(app).url, thief)
    const asked = await (await thief.open('/api/v1/auth/device')).submit({ user_code: String(device.user_code) })
    const connected = await asked.submit({ decision: 'allow' })
    t.equal(connected.title, 'Device connected')
    const { body: waiting } = await harness.post('device_authorization', { scope: 'openid' }, app)
    const question = await (await thief.open('/api/v1/auth/device')).submit({ user_code: String(waiting.user_code) })
    kit.upstream({ sub: 'of wim' })
    const late = browser()
    const answer = await answerOf(await leave(late, START))
    kit.upstream({ sub: 'another of the thief' })
    const form = await thief.open('/account/identities/add?upstream=test')
    const linking = await answerOf((await post(form, pathOf(form), { current_password: user.password })).left)
    const half = browser()
    const { seed } = await enrol(kit.clock, await thief.open('/account'), user.password)
    const step = await enter(harness, '/account', half, user)
    t.equal(step.title, en.secondStep.title.totp)

    t.equal((await (await browser().open(link)).submit()).title, en.links.done.undone.title)

    t.ok(isSignedOut(await thief.open('/account')))
    t.match((await redeem({ grant_type: 'refresh_token', refresh_token: String(tokens.refresh_token) })).body, { error: 'invalid_grant' })
    t.equal((await harness.get('userinfo', String(tokens.access_token))).status, 401)
    t.match((await redeem(code)).body, { error: 'invalid_grant' })
    t.match((await redeem({ grant_type: DEVICE, device_code: String(device.device_code) })).body.error, /./, 'a device that was connected')
    await question.submit({ decision: 'allow' })
    t.match((await redeem({ grant_type: DEVICE, device_code: String(waiting.device_code) })).body.error, /./, 'one that was not yet')
    t.notMatch((await late.open(answer)).text, user.account)
    t.notMatch((await thief.open(linking)).text, /The account is connected/)
    t.notMatch((await step.submit({ code: await nextCode(kit.clock, seed) })).title, /Profile/)
    t.ok(isSignedOut(await half.open('/account')))
    t.equal((await kit.app.identity.store.collection<UserRecord>('users').get(user.user_id))?.ways, undefined)
  })

  // S8: one click at a provider that says no time was fresh enough, and linking asked for nothing else.
  await t.test('at an open browser: neither a click at the provider nor the session links an identity', async (t) => {
    const user = await addUser(harness, 'xia@example.com')
    const tab = browser()
    await enter(harness, '/account', tab, user)
    await connect(kit, tab, 'xia', { current_password: user.password })
    t.equal((await connect(kit, tab, 'the thief at the browser', {})).response.status, 400, 'within the ten minutes')
    kit.clock.advance(3 * HOUR)
    kit.upstream({ sub: 'xia' })
    const { left } = await post(await tab.open('/account/methods'), '/account/sign-in?next=identities', { upstream: 'test' })
    t.match(readError(await tab.open(await answerOf(left))), /doesn’t tell us when you last signed in/)
    t.notMatch((await tab.open('/account/identities/add?upstream=test')).text, /current_password/)
    t.match((await enterAs('the thief at the browser')).title, /Create your account/)
  })

  await t.test('an entry that ends while the person reads: the last page names what stays', async (t) => {
    const user = await addUser(harness, 'yan@example.com')
    const thief = browser()
    await enter(harness, '/account', thief, user)
    await connect(kit, thief, 'first of yan', { current_password: user.password })
    kit.clock.advance(HOUR)
    const again = browser()
    await enter(harness, '/account', again, user)
    await connect(kit, again, 'second of yan', { current_password: user.password })
    const link = await readMail(user.account, 'undo')
    kit.clock.advance(71 * HOUR - 60_000)
    const page = await browser().open(link)
    t.notMatch(page.text, en.links.undo.stays)
    kit.clock.advance(2 * 60_000)
    t.match(plain((await page.submit()).text), new RegExp(`${en.links.undo.stays}\\s*Test, added`))
  })
})

eachStore(t, 'where a second factor is demanded', async (t, start) => {
  const harness = await start({ factors: 'required', upstream: {} })
  const { kit, browser } = harness
  const { readMail } = openPeople(harness)

  await t.test('the next one needs a mailed link, as after a reset', async (t) => {
    const user = await addUser(harness, 'zoe@example.com')
    const { page } = await enrolInSignIn(kit.clock, await enter(harness, '/account', browser(), user))
    t.match((await page.browser.open('/account')).text, user.account, 'the thief is in')
    const undo = await browser().open(await readMail(user.account, 'undo'))
    await undo.submit()
    const mails = await kit.mails.all()
    t.strictSame(mails.map(({ to }) => to), [user.account, user.account])
    const linkTo = (path: string) => mails.find(({ link }) => link?.includes(`/account/${path}?token=`))!.link!
    const [reset, enrolment] = [linkTo('reset'), linkTo('enrol')]
    const who = { ...user, password: 'a new horse' }
    await (await browser().open(reset)).submit({ password: who.password })
    t.equal(readError(await enter(harness, '/account', browser(), who)), dropLink(en.errors.factorMissing), 'the password alone adds none')
    const asked = await browser().open(enrolment)
    t.match(asked.text, en.links.enrol.text)
    t.notMatch(asked.text, /administrator/i)
    const form = await asked.submit()
    const why = await post(form, form.response.url, { account: who.account, password: who.password })
    t.equal((await enrolInSignIn(kit.clock, why)).page.title, en.links.done.enrolled.title)
    t.equal((await browser().open(enrolment)).response.status, 410)
  })

  await t.test('where one from before stays, there is no such link', async (t) => {
    const user = await addUser(harness, 'abe@example.com')
    const { seed } = await enrolInSignIn(kit.clock, await enter(harness, '/account', browser(), user))
    kit.clock.advance(73 * HOUR)
    await kit.mails.all()
    const tab = browser()
    const step = await enter(harness, '/account', tab, user)
    await step.submit({ code: await nextCode(kit.clock, seed) })
    await connect(kit, tab, 'of abe', { current_password: user.password, code: await nextCode(kit.clock, seed) })
    const undo = await browser().open(await readMail(user.account, 'undo'))
    t.match(plain(undo.text), /Authenticator app, added/)
    const done = await undo.submit()
    t.match(plain(done.text), new RegExp(`${en.links.undo.stays}\\s*(Authenticator app|Backup codes), added`))
    t.strictSame((await kit.mails.all()).map(({ link }) => link?.includes('/reset?')), [true])
  })
})

t.test('where a second factor is demanded and there was none, an undo asks for none either', async (t) => {
  const kit = await startIdentity({ t, factors: 'required' })
  const { accounts, users } = kit.app.identity
  const { user_id } = await users.create({ data: { account: 'kay@example.com', password: 'a horse too' } })
  await accounts.linkIdentity({ user_id, epoch: null }, { kind: 'upstream', upstream: 'another', key: 'of kay', material: {} }, 'Another')
  await accounts.undo((await kit.mails.next({ to: 'kay@example.com' })).token!)
  t.strictSame((await kit.mails.all()).map(({ link }) => link?.includes('/reset?')), [true])
  await accounts.linkIdentity({ user_id, epoch: null }, { kind: 'upstream', upstream: 'another', key: 'of kay again', material: {} }, 'Another')
  const records = kit.app.identity.store.collection<UserRecord>('users')
  await records.update(user_id, { set: { enrol_ticket: 'of a reset' }, increment: { revision: 1 } })
  await accounts.undo((await kit.mails.next({ to: 'kay@example.com' })).token!)
  t.not((await records.get(user_id))?.enrol_ticket, 'of a reset')
  t.strictSame((await kit.mails.all()).map(({ link }) => link?.includes('/enrol?')).sort(), [false, true], 'unless a reset has asked for one: that link may be in the wrong hands')
})

eachStore(t, 'somebody whom one provider holds', async (t, start) => {
  const harness = await start({ signUp: true, upstream: { domains: ['corp.example'], only: true, create: true } })
  const { kit, browser } = harness
  const { readMail, enterAs } = openPeople(harness)
  const users = kit.app.identity.store.collection<UserRecord>('users')

  await t.test('the page names the remedy where it takes away that identity, and the mail leads to the sign-in', async (t) => {
    const user = await addUser(harness, 'cy@corp.example')
    await users.update(user.user_id, { set: { email: user.account, email_verified_at: new Date(kit.clock.now()).toISOString(), email_verified_by: 'mail', addresses: [user.account] } })
    const tab = (await enterAs('the wrong cy', { email: user.account, email_verified: true })).browser
    t.match((await tab.open('/account')).text, user.account)
    const link = await readMail(user.account, 'undo')
    for (const [texts, options] of [[en, {}], [de, GERMAN]] as const) {
      const text = plain((await browser().open(link, options)).text)
      t.ok(text.includes(texts.links.undo.endsOnly.replace('{upstream}', 'Test')))
      t.ok(text.includes(dropLink(texts.links.undo.losesOnly).replace('{upstream}', 'Test')))
      t.notOk(text.includes(texts.links.undo.ends))
    }
    await (await browser().open(link)).submit()
    const [mail, ...others] = await kit.mails.all()
    t.match([mail?.to, mail?.subject, mail?.link, others], [user.account, /recent changes were undone/, /\/account\/sign-in$/, []])
    t.ok(isSignedOut(await tab.open('/account')))
    t.notMatch((await enterAs('the wrong cy', { email: user.account, email_verified: true })).text, new RegExp(`as .*${user.account}`))
  })

  await t.test('where the identity stays, there is nothing to repair', async (t) => {
    const user = await addUser(harness, 'di@corp.example')
    await enterAs('di', { email: user.account, email_verified: true })
    kit.clock.advance(73 * HOUR)
    await kit.mails.all()
    const { accounts } = kit.app.identity
    await accounts.linkIdentity({ user_id: user.user_id, epoch: null }, { kind: 'upstream', upstream: 'another', key: 'of di', issuer: 'https://another.example', material: { issuer: 'https://another.example', subject: 'di' } }, 'Another')
    const text = plain((await browser().open(await readMail(user.account, 'undo'))).text)
    t.ok(text.includes(en.links.undo.endsOnly.replace('{upstream}', 'Test')))
    t.notOk(text.includes(dropLink(en.links.undo.losesOnly).replace('{upstream}', 'Test')))
  })
})

t.test('an upstream that is out of the configuration for a while', async (t) => {
  const provider = await createTestUpstream()
  t.teardown(provider.close)
  const database = createFile(t)
  const shop = { id: 'shop', kind: 'oidc' as const, name: 'Shop', issuer: provider.issuer, link: 'confirm' as const, ...TEST_CLIENT }
  async function open (isIn: boolean) {
    const kit = await startIdentity({ t, rateLimit: false, database, upstreams: isIn ? [shop] : [] })
    const { url } = await kit.listen()
    return { kit, browser: () => new Browser(url) }
  }
  const first = await open(true)
  const [account, password] = ['eli@example.com', 'a horse too']
  const { user_id } = await first.kit.app.identity.users.create({ data: { account, password } })
  const tab = first.browser()
  await enter({ ...first, user: { user_id, account, password } }, '/account', tab)
  provider({ sub: 'of eli' })
  const form = await tab.open('/account/identities/add?upstream=shop')
  t.match((await tab.open(await answerOf((await post(form, pathOf(form), { current_password: password })).left))).text, /The account is connected/)
  const { pathname, search } = new URL(await openPeople(first).readMail(account, 'undo'))
  await first.kit.close()

  const second = await open(false)
  const page = await second.browser().open(pathname + search)
  t.match(plain(page.text), /shop, added/, 'by its id')
  await page.submit()
  await second.kit.close()

  const third = await open(true)
  t.match(await third.kit.app.identity.store.collection<UserRecord>('users').get(user_id), { ways: undefined, lost_identities: [{ upstream: 'shop', undone: true }] })
  t.notMatch((await through(third.browser(), '/api/v1/auth/upstream/shop')).text, account)
})
