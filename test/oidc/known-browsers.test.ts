import { readdir, readFile } from 'node:fs/promises'
import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Authenticator } from '../../testing/authenticator.ts'
import { enrol, enrolInSignIn, nextCode } from '../pages/factors.ts'
import { answer, enrolPasskey } from '../pages/passkeys.ts'
import { addUser, enter, post } from '../pages/visits.ts'
import { answerOf, through } from '../upstreams/through.ts'
import type { Browser, Page } from './browser.ts'
import { type Harness, askCode, atLocalhost, eachStore, signIn } from './harness.ts'

const OPERATOR = { user_id: 'operator', isAdmin: true }
const HOUR = 60 * 60_000
const START = '/api/v1/auth/upstream/test'

interface Person { user_id: string, account: string, password: string }

/** A service with all ways to sign in, and people who have them. */
async function open (start: (options?: object) => Promise<Harness>) {
  const harness = await start({ signUp: true, upstream: {}, factors: { roles: ['ops'] }, ...await atLocalhost() })
  const { kit, browser } = harness
  const { store, users: people, knownBrowsers } = kit.app.identity
  const users = store.collection<UserRecord>('users')
  const app = await harness.register()
  let count = 0

  const addPerson = async (): Promise<Person> => await addUser(harness, `person${++count}@example.com`)
  /** A browser of somebody that has never signed in with their password. */
  async function addKey (person: Person): Promise<Authenticator> {
    const { key } = await enrolPasskey(await enter(harness, '/account', browser(), person), { current_password: person.password })
    return key
  }

  return {
    harness,
    users,
    app,
    addPerson,
    addKey,
    ask: async (tab: Browser, params: Record<string, string> = {}) => await tab.open(askCode(app, params).url),
    /** Signs in with an authenticator app, in two steps. */
    async addTotp (person: Person) {
      return await enrol(kit.clock, await enter(harness, '/account', browser(), person), person.password)
    },
    async demandFactor ({ user_id }: Person) {
      await people.patch(user_id, { data: { roles: { ops: true } } }, OPERATOR)
    },
    /** A person who is not here yet, at the provider. */
    addStranger (fields = {}) {
      const sub = `stranger${++count}`
      kit.upstream({ sub, email: `${sub}@example.org`, email_verified: true, ...fields })
      return `${sub}@example.org`
    },
    /** What the browser is known for: the entry of this name in its cookie. */
    findKnown: (tab: Browser, name: string) => tab.cookies().map((value) => {
      try {
        return knownBrowsers.find(value, name)
      } catch {
        return undefined
      }
    }).find((entry) => entry !== undefined)
  }
}

type Opened = Awaited<ReturnType<typeof open>>

const submitKey = async (page: Page, key: Authenticator) => await post(page, page.response.url, { way: 'passkey', ...answer(page, key) })

/** Every road by which a browser signs in, each to its end. @returns the account */
const ROADS: Record<string, (opened: Opened, tab: Browser) => Promise<string>> = {
  async 'a password, at an app' ({ harness, app, addPerson }, tab) {
    const user = await addPerson()
    await signIn({ ...harness, user }, askCode(app).url, tab)
    return user.account
  },
  async 'a password, at the account' ({ harness, addPerson }, tab) {
    const user = await addPerson()
    await enter(harness, '/account', tab, user)
    return user.account
  },
  async 'a passkey, at an app' ({ ask, addPerson, addKey }, tab) {
    const user = await addPerson()
    const key = await addKey(user)
    await submitKey(await ask(tab), key)
    return user.account
  },
  async 'a passkey, at the account' ({ addPerson, addKey }, tab) {
    const user = await addPerson()
    const key = await addKey(user)
    await submitKey(await tab.open('/account'), key)
    return user.account
  },
  async 'a password and a passkey' ({ harness, app, addPerson, addKey }, tab) {
    const user = await addPerson()
    const key = await addKey(user)
    await submitKey(await signIn({ ...harness, user }, askCode(app).url, tab), key)
    return user.account
  },
  async 'a password and a code, at an app' ({ harness, app, addPerson, addTotp }, tab) {
    const user = await addPerson()
    const { seed } = await addTotp(user)
    await (await signIn({ ...harness, user }, askCode(app).url, tab)).submit({ code: await nextCode(harness.kit.clock, seed) })
    return user.account
  },
  async 'a password and a recovery code, at the account' ({ harness, addPerson, addTotp }, tab) {
    const user = await addPerson()
    const { codes: [code = ''] } = await addTotp(user)
    const page = await enter(harness, '/account', tab, user)
    const link = /<a href="([^"]*way=recovery)"/.exec(page.text)?.[1] ?? ''
    await (await tab.open(link.replaceAll('&amp;', '&'))).submit({ code })
    return user.account
  },
  async 'a password and a factor that is added within the sign-in' ({ harness, app, addPerson, demandFactor }, tab) {
    const user = await addPerson()
    await demandFactor(user)
    await enrolInSignIn(harness.kit.clock, await signIn({ ...harness, user }, askCode(app).url, tab))
    return user.account
  },
  async 'another provider, at an app' ({ addStranger, ask, harness }, tab) {
    const account = addStranger()
    await through(harness.browser(), START)
    await through(tab, await ask(tab))
    return account
  },
  async 'another provider, at the account' ({ addStranger, harness }, tab) {
    const account = addStranger()
    await through(harness.browser(), START)
    await through(tab, START)
    return account
  },
  async 'another provider, for a new account' ({ addStranger }, tab) {
    const account = addStranger()
    await through(tab, START)
    return account
  },
  async 'another provider, for a new account with a chosen name' ({ addStranger }, tab) {
    addStranger({ email: undefined })
    const page = await through(tab, START)
    const [, account = ''] = /name="account"[^>]*value="([^"]*)"/.exec(page.text) ?? /value="(test-[0-9a-z]{8})"/.exec(page.text) ?? []
    await page.submit({ account })
    return account
  },
  async 'another provider, which a password joins to the account' ({ addPerson, addStranger, ask }, tab) {
    const user = await addPerson()
    addStranger({ email: user.account })
    const page = await through(tab, await ask(tab))
    await page.submit({ account: user.account, password: user.password })
    return user.account
  },
  async 'a mailed link within the sign-in of an app' ({ harness, ask, addStranger }, tab) {
    const account = addStranger()
    await (await ask(tab, { prompt: 'create' })).submit({ typed: account })
    const { link } = await harness.kit.mails.next({ to: account })
    await (await tab.open(link!)).submit({ password: 'correct horse battery' })
    return account
  },
  async 'a mailed link that another provider completes' ({ harness, ask, addStranger }, tab) {
    const account = addStranger()
    await (await ask(tab, { prompt: 'create' })).submit({ typed: account })
    const { link } = await harness.kit.mails.next({ to: account })
    const { pathname, searchParams } = new URL((await tab.open(link!)).response.url)
    const { left } = await tab.open(pathname, { method: 'POST', body: new URLSearchParams({ token: searchParams.get('token') ?? '', upstream: 'test' }), headers: { origin: tab.origin } })
    await tab.open(await answerOf(left))
    return account
  },
  async 'a new password on the account pages' ({ harness, addPerson }, tab) {
    const user = await addPerson()
    await post(await enter(harness, '/account/password', tab, user), '/account/password', { current_password: user.password, password: 'another horse' })
    return user.account
  },
  async 'a factor that is added on the account pages' ({ harness, addPerson }, tab) {
    const user = await addPerson()
    await enrol(harness.kit.clock, await enter(harness, '/account', tab, user), user.password)
    return user.account
  },
  async 'a step-up of a session' ({ harness, app, addPerson, addTotp, ask }, tab) {
    const user = await addPerson()
    await signIn({ ...harness, user }, askCode(app).url, tab)
    const { seed } = await addTotp(user)
    await (await ask(tab)).submit({ code: await nextCode(harness.kit.clock, seed) })
    return user.account
  }
}

eachStore(t, 'a browser is known for an account by every road of a sign-in', async (t, start) => {
  const opened = await open(start)
  const { harness, users, findKnown } = opened
  for (const [road, walk] of Object.entries(ROADS)) {
    await t.test(road, async (t) => {
      const tab = harness.browser()
      const account = await walk(opened, tab)
      const { id: user_id, epoch } = (await users.getBy('account', account))!
      t.match(await tab.open('/account'), { title: /Profile|Sign in/ })
      t.match(findKnown(tab, account.toUpperCase()), { user_id, epoch })
      t.equal(findKnown(tab, 'nobody@example.com'), undefined)
    })
  }

  await t.test('what is not finished makes no browser known', async (t) => {
    const { addPerson, addTotp, addStranger, app } = opened
    const user = await addPerson()
    const { seed } = await addTotp(user)
    const tab = harness.browser()
    const second = await signIn({ ...harness, user }, askCode(app).url, tab)
    t.equal(findKnown(tab, user.account), undefined, 'the password alone')
    await second.submit({ code: '000000' })
    t.equal(findKnown(tab, user.account), undefined)
    await second.submit({ code: await nextCode(harness.kit.clock, seed) })
    t.match(findKnown(tab, user.account), { user_id: user.user_id })
    const other = harness.browser()
    addStranger({ email: user.account })
    await through(other, START)
    t.equal(findKnown(other, user.account), undefined, 'a provider whose identity waits for a sign-in')
    const { link } = await (async () => {
      await (await other.open('/account/forgot')).submit({ typed: user.account })
      return await harness.kit.mails.next({ to: user.account, subject: /password/i } as never)
    })()
    await (await other.open(link!)).submit({ password: 'a third horse' })
    t.equal(findKnown(other, user.account), undefined, 'a link for a new password, which signs nobody in')
  })
})

eachStore(t, 'strangers lock nobody out of a browser that a passkey has made known', async (t, start) => {
  const opened = await open(start)
  const { harness, users, addPerson, addKey, findKnown, ask } = opened
  const { kit } = harness
  const user = await addPerson()
  await users.update(user.user_id, { set: { email: 'second@example.com', email_verified_at: '2026-01-01T00:00:00.000Z', addresses: [user.account, 'second@example.com'] } })
  const key = await addKey(user)
  const [tab, other] = [harness.browser(), harness.browser()]
  await submitKey(await ask(tab), key)
  for (let made = 0; made < 20; made++) await kit.app.identity.users.verify(user.account, 'wrong')
  const send = async (browser: Browser, fields: { account?: string, password: string }) => await (await ask(browser, { prompt: 'login' })).submit({ ...user, ...fields })
  const type = async (browser: Browser, fields: { account?: string, password: string }) => {
    const { left, response } = await send(browser, fields)
    return left === undefined ? response.status : 303
  }
  t.equal(await type(other, user), 429)
  t.strictSame([await type(tab, { password: 'wrong' }), await type(tab, { account: 'Second@example.com', password: 'wrong' })], [400, 400], 'by either name')

  const { browser } = findKnown(tab, user.account)!
  for (let made = 0; made < 8; made++) t.equal(await type(tab, { password: 'wrong' }), 400)
  t.equal(await type(tab, user), 429, 'ten in a row')
  await submitKey(await ask(tab, { prompt: 'login' }), key)
  t.equal(findKnown(tab, user.account)?.browser, browser)
  t.equal(await type(tab, user), 429, 'a passkey gives no further guesses at the password')
  kit.clock.advance(HOUR)
  t.match((await submitKey(await send(tab, user), key)).left, URL, 'the right password opens its own count, and that of all others')
  for (let made = 0; made < 20; made++) await kit.app.identity.users.verify(user.account, 'wrong')
  t.equal(await type(tab, { password: 'wrong' }), 400)
  t.equal(await type(other, user), 429)
})

t.test('no other file signs a browser in', async (t) => {
  const root = new URL('../../', import.meta.url)
  const found: string[] = []
  for (const room of ['plugins', 'routes']) {
    for (const file of await readdir(new URL(`${room}/`, root), { recursive: true })) {
      if (file.endsWith('.ts') && /\bbrowsers\.signIn\(|\bserver\.decide\(/.test(await readFile(new URL(`${room}/${file}`, root), 'utf8'))) found.push(`${room}/${file}`)
    }
  }
  t.strictSame(found.sort(), ['plugins/account.ts', 'routes/interaction.ts'])
})
