import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import { dropLink } from '../../lib/pages/texts/template.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { type Authenticator, createAuthenticator } from '../../testing/authenticator.ts'
import { readPasskeyOptions } from '../../testing/passkey.ts'
import { enrolInSignIn, readCodes, readHidden } from '../pages/factors.ts'
import { asksPasskey, enterByPasskey } from '../pages/passkeys.ts'
import { addUser, enter, post } from '../pages/visits.ts'
import type { Page } from './browser.ts'
import { askCode, atLocalhost, eachStore, signIn } from './harness.ts'

const OPERATOR = { user_id: 'operator', isAdmin: true }
const WHY = en.enrol.title

const readError = ({ text }: Page): string | undefined => /role="alert"[^>]*>(?:<[^>]+>)*([^<]+)/.exec(text)?.[1]

/** The page with the passkey, from the page that says why. */
async function choose (why: Page): Promise<Page> {
  const link = /<a href="([^"]*way=passkey)"/.exec(why.text)?.[1] ?? ''
  return await why.browser.open(link.replaceAll('&amp;', '&'))
}

/** Sends the form as the script does: with the passkey in its field. */
async function send (page: Page, fields: Record<string, string>): Promise<Page> {
  const body = new URLSearchParams({ xsrf: readHidden(page, 'xsrf'), way: 'passkey', ...fields })
  return await page.browser.open(page.response.url, { method: 'POST', headers: { origin: page.browser.origin }, body })
}

const create = (page: Page, key: Authenticator, changes = {}) => ({ attestation: key.create(readPasskeyOptions(page.text).options, changes) })

eachStore(t, 'a person without a demanded factor adds a passkey within the sign-in', async (t, start) => {
  const harness = await start({ factors: { roles: ['ops'] }, ...await atLocalhost() })
  const { kit, browser } = harness
  const { heldFactors, store, users: people } = kit.app.identity
  const users = store.collection<UserRecord>('users')
  const app = await harness.register()
  const url = () => askCode(app).url
  const createKey = (settings = {}) => createAuthenticator(browser().origin, settings)
  let count = 0
  async function createPerson () {
    const person = await addUser(harness, `ops${++count}@example.com`)
    await people.patch(person.user_id, { data: { roles: { ops: true } } }, OPERATOR)
    return { ...person, as: { ...harness, user: person } }
  }
  const kindsOf = async (user_id: string) => Object.values((await users.get(user_id))?.ways ?? {}).map(({ kind }) => kind).sort()

  await t.test('of an app: the passkey, the codes; before the last form there is no code and no factor', async (t) => {
    const { as, user_id, account } = await createPerson()
    const why = await signIn(as, url())
    t.equal(why.title, WHY)
    t.notOk(asksPasskey(why), 'the page of the app has no script')
    t.match(why.text, en.enrol.add.totp)
    const page = await choose(why)
    t.ok(asksPasskey(page))
    t.match(page.response.headers.get('content-security-policy'), "connect-src 'self'")
    t.match(page.text, en.enrol.other.totp)
    const key = createKey()
    const shown = await send(page, create(page, key))
    t.equal(readCodes(shown).length, 10)
    t.strictSame([shown.left, await kindsOf(user_id)], [undefined, []])
    const again = await shown.submit({})
    t.equal(readCodes(again).length, 10, 'without the confirmation, others are shown')
    t.strictSame(await kindsOf(user_id), [])
    const done = await again.submit({ kept: 'yes' })
    t.ok(done.left?.searchParams.has('code'))
    t.strictSame(await kindsOf(user_id), ['passkey', 'recovery'])
    t.match(await kit.mails.next({ to: account }), { link: /\/undo\?/ }, 'the mail says so at once')
    t.match((await enterByPasskey(browser(), key)).text, account)
    const codes = readCodes(again)
    t.notSame(codes, readCodes(shown))
  })

  await t.test('to the account, with a passkey that does not verify the person: both steps from then on', async (t) => {
    const { as, user_id } = await createPerson()
    const page = await choose(await enter(as))
    const key = createKey()
    const shown = await send(page, create(page, key, { uv: false }))
    await shown.submit({ kept: 'yes' })
    t.match(Object.values((await users.get(user_id))?.ways ?? {}).find(({ kind }) => kind === 'passkey'), { uv: false })
    t.equal((await enter(as)).title, en.secondStep.title.passkey)
  })

  await t.test('what was not made for this page is refused, and the page asks again', async (t) => {
    const { as, user_id } = await createPerson()
    const page = await choose(await enter(as))
    const [one, other] = [createKey(), createKey()]
    const made = create(page, one)
    for (const [name, wrong] of Object.entries({
      origin: create(page, other, { origin: 'http://evil.example' }),
      // The challenge of another browser, whose user it would belong to.
      browser: create(await choose(await enter((await createPerson()).as)), other),
      nonsense: { attestation: '{"id":1}' },
      long: { attestation: 'x'.repeat(10_000) }
    })) {
      const refused = await send(page, wrong)
      t.match([refused.response.status, readError(refused), asksPasskey(refused)], [400, en.errors.wrongPasskey, true], name)
    }
    t.strictSame(await kindsOf(user_id), [])
    const empty = await send(page, { kept: 'yes' })
    t.notOk(readCodes(empty).length, 'nothing is confirmed that was not made')
    kit.clock.advance(6 * 60_000)
    t.equal(readError(await send(page, made)), en.errors.wrongPasskey, 'too late')
  })

  await t.test('with the link after a reset, and not without it', async (t) => {
    const { as, account, password, user_id } = await createPerson()
    await kit.totp(user_id)
    await kit.flush()
    await kit.mails.all()
    await heldFactors.reset(user_id, OPERATOR)
    const { link } = await kit.mails.next({ to: account })
    const thief = await enter(as)
    t.equal(readError(thief), dropLink(en.errors.factorMissing))
    t.notOk(readError(await send(thief, { attestation: 'x' })) === undefined)
    const form = await (await browser().open(link!)).submit()
    const page = await choose(await post(form, form.response.url, { account, password }))
    const shown = await send(page, create(page, createKey()))
    const done = await shown.submit({ kept: 'yes' })
    t.equal(done.title, en.links.done.enrolled.title)
    t.strictSame(await kindsOf(user_id), ['passkey', 'recovery'])
  })

  await t.test('an app is still added after the passkey was chosen and made', async (t) => {
    const { as, user_id } = await createPerson()
    const why = await signIn(as, url())
    const page = await choose(why)
    await send(page, create(page, createKey()))
    t.ok((await enrolInSignIn(kit.clock, why)).page.left?.searchParams.has('code'))
    t.strictSame(await kindsOf(user_id), ['recovery', 'totp'])
  })
})
