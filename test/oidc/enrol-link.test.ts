import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import { dropLink } from '../../lib/pages/texts/template.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { enrolInSignIn, nextCode, readSeed } from '../pages/factors.ts'
import { addUser, enter, post } from '../pages/visits.ts'
import type { Browser, Page } from './browser.ts'
import { askCode, eachStore, signIn } from './harness.ts'

const WHY = en.enrol.title
const HOUR = 60 * 60_000
const OPERATOR = { user_id: 'operator', isAdmin: true }

const readError = ({ text }: Page): string | undefined => /role="alert"[^>]*>(?:<[^>]+>)*([^<]+)/.exec(text)?.[1]

eachStore(t, 'after an administrator has reset the factors of a person of whom one is demanded', async (t, start) => {
  const harness = await start({ factors: { roles: ['ops'] } })
  const { kit, browser } = harness
  const { heldFactors, store, users: people } = kit.app.identity
  const users = store.collection<UserRecord>('users')
  const app = await harness.register()
  const asked = () => askCode(app).url
  let count = 0

  /** A person of whom a factor is demanded, after a reset, with the link. */
  async function createReset ({ account = `ops${++count}@example.com`, roles = { ops: true } }: { account?: string, roles?: UserRecord['roles'] } = {}) {
    const person = await addUser(harness, account)
    await people.patch(person.user_id, { data: { roles } }, OPERATOR)
    await kit.totp(person.user_id)
    await kit.flush()
    await kit.mails.all()
    const reset = async () => {
      const done = await heldFactors.reset(person.user_id, OPERATOR)
      return { done, link: done.sent === true ? (await kit.mails.next({ to: account })).link : done.link }
    }
    return { ...person, as: { ...harness, user: person }, reset, ...await reset(), read: async () => (await users.get(person.user_id))! }
  }

  /** Opens the link, and goes on to the form for the password. */
  const open = async (link: string | undefined, tab: Browser = browser()): Promise<Page> => await (await tab.open(link!)).submit()
  const type = async (page: Page, { account, password }: { account: string, password: string }) => await post(page, page.response.url, { account, password })

  await t.test('a thief with the password adds none, on no road', async (t) => {
    const { as, done, read } = await createReset()
    t.strictSame(done, { removed: 1, sent: true })
    const refused = await signIn(as, asked())
    t.match([refused.response.status, readError(refused)], [400, dropLink(en.errors.factorMissing)])
    t.equal((await refused.submit({ way: 'totp' })).left, undefined)
    t.equal(readError(await enter(as)), dropLink(en.errors.factorMissing))
    const { body } = await harness.post('device_authorization', { scope: 'openid' }, app)
    const device = await (await browser().open('/api/v1/auth/device')).submit({ user_code: String(body.user_code) })
    t.equal(readError(await device.submit({ account: as.user.account, password: as.user.password })), dropLink(en.errors.factorMissing))
    t.equal((await read()).ways, undefined)
  })

  await t.test('the owner adds one with the link and the password', async (t) => {
    const { as, account, password, link, read } = await createReset()
    const confirm = await browser().open(link!)
    t.match(confirm.text, en.links.enrol.text)
    t.equal((await confirm.browser.open(link!)).response.status, 200, 'opening it spends nothing')
    const form = await confirm.submit()
    t.match(form.text, 'name="password"', 'the link alone is not enough')
    t.equal(readError(await type(form, { account, password: 'wrong' })), en.errors.wrongPassword)
    const why = await type(form, { account, password })
    t.equal(why.title, WHY)
    kit.clock.advance(9 * 60_000)
    const begun = await why.submit()
    kit.clock.advance(9 * 60_000)
    const shown = await begun.submit({ code: await nextCode(kit.clock, readSeed(begun)) })
    t.match((await read()).enrol_ticket, /./)
    kit.clock.advance(9 * 60_000)
    const done = await shown.submit({ kept: 'yes' })
    t.equal(done.title, en.links.done.enrolled.title)
    t.equal((await read()).enrol_ticket, undefined)
    t.match(await kit.mails.next({ to: account }), { link: /\/undo\?/ })
    t.equal((await browser().open(link!)).response.status, 410, 'once')
    t.match((await done.browser.open('/account')).text, account)
    t.equal((await signIn(as, asked())).title, en.secondStep.title.totp)
  })

  await t.test('the link is good in the browser that opened it, for its own user, for 72 hours, until the next one', async (t) => {
    const ann = await createReset()
    const eve = await createReset()
    const form = await open(eve.link)
    t.equal(readError(await type(form, ann)), dropLink(en.errors.factorMissing), "somebody else's link")
    t.equal(readError(await enter(ann.as)), dropLink(en.errors.factorMissing), 'another browser')
    t.equal((await type(await open(ann.link), ann)).title, WHY)
    const { link } = await ann.reset()
    t.equal((await browser().open(ann.link!)).response.status, 410, 'a further reset replaces it')
    const late = await browser().open(link!)
    kit.clock.advance(72 * HOUR)
    t.equal((await late.submit()).response.status, 410)
    t.equal(readError(await enter(ann.as)), dropLink(en.errors.factorMissing), 'and the account stays closed')
    t.equal((await type(await open((await ann.reset()).link), ann)).title, WHY, 'an administrator sends another one')
  })

  await t.test('a link that ends while the browser carries it', async (t) => {
    const ann = await createReset()
    const why = await type(await open(ann.link), ann)
    const begun = await why.submit()
    await ann.reset()
    const refused = await begun.submit({ code: await nextCode(kit.clock, readSeed(begun)) })
    t.ok(refused.title.includes('Sign in'))
    t.equal((await ann.read()).ways, undefined)
  })

  await t.test('a link that expires on the way', async (t) => {
    const ann = await createReset()
    kit.clock.advance(72 * HOUR - 5 * 60_000)
    const begun = await (await type(await open(ann.link), ann)).submit()
    kit.clock.advance(6 * 60_000)
    const shown = await begun.submit({ code: await nextCode(kit.clock, readSeed(begun)) })
    t.equal(readError(await shown.submit({ kept: 'yes' })), dropLink(en.errors.factorMissing))
    t.equal((await ann.read()).ways, undefined)
  })

  await t.test('a new password by mail does not replace it, nor does it end it', async (t) => {
    const ann = await createReset()
    const { accounts } = kit.app.identity
    await accounts.forgotPassword(ann.account, { ip: '192.0.2.1' })
    await (await browser().open((await kit.mails.next({ to: ann.account })).link!)).submit({ password: 'another horse' })
    const who = { ...ann, password: 'another horse' }
    t.equal(readError(await enter({ ...harness, user: who })), dropLink(en.errors.factorMissing))
    t.match((await enrolInSignIn(kit.clock, await type(await open(ann.link), who))).page.title, en.links.done.enrolled.title)
  })

  await t.test('without a mailbox the administrator gets the link', async (t) => {
    const { done, link, ...ann } = await createReset({ account: 'operator-of-the-night' })
    t.match(done, { removed: 1, sent: false, link: /\/account\/enrol\?token=/ })
    t.equal((await type(await open(link), ann)).title, WHY)
    t.match(await heldFactors.reset(ann.user_id, OPERATOR), { removed: 0, link: /token=/ }, 'again, for one that was lost')
  })

  await t.test('where none is demanded nothing changes', async (t) => {
    const { as, done, read } = await createReset({ roles: {}, account: 'free' })
    t.strictSame(done, { removed: 1 })
    t.equal((await read()).enrol_ticket, undefined)
    t.type((await signIn(as, asked())).left, URL)
    const ann = await createReset()
    await people.patch(ann.user_id, { data: { roles: {} } }, OPERATOR)
    const page = await enter(ann.as)
    t.match(page.text, ann.account)
    const begun = await post(await page.browser.open('/account/methods'), '/account/factors', { current_password: ann.password })
    t.ok(readSeed(begun), 'and on the account page one is added as by everybody')
  })

  await t.test('the write itself asks for the link', async (t) => {
    const ann = await createReset()
    const { epoch } = await ann.read()
    const { factors, ways } = kit.app.identity
    const actor = { user_id: ann.user_id, epoch, proofs: [{ way: 'password', kind: 'password' as const, at: new Date(kit.clock.now()).toISOString() }] }
    const ids = await ways.prepare(actor, [{ kind: 'totp', material: { step: 0 } }])
    await t.rejects(factors.addFactor(actor, ids), { code: 'ErrTicket' })
    await t.rejects(factors.addFactor({ ...actor, link: 'unknown' }, ids), { code: 'ErrTicket' })
    t.equal((await ann.read()).ways, undefined)
  })
})
