import t, { type Test } from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { PASSWORD, type Way } from '../../lib/way.ts'
import { startIdentity, type TestPasskey } from '../../testing/index.ts'
import { nextCode, passCodeUsed, readSeed } from '../pages/factors.ts'
import { addUser, enter, post } from '../pages/visits.ts'
import { answerOf, leave } from '../upstreams/through.ts'
import { Browser, type Page } from './browser.ts'
import { type Harness, askCode, atLocalhost, eachStore } from './harness.ts'

t.setTimeout(600_000)

/**
 * The roads to a session, a code or a token (there are no personal tokens), and to an identity that signs in, and what may happen to the user, or to the way that was used, before the last form. `in`: they
 * get in; `out`: they do not; `-`: it cannot happen. The role demands a second factor.
 */
const TABLE = `
road               nothing disabled expired deleted invited epoch role removed forbidden
password           in      out      out     out     out     in    out  out     -
passkey first      in      out      out     out     in      in    in   out     out
passkey second     in      out      out     out     out     out   in   out     out
TOTP               in      out      out     out     out     out   in   out     -
recovery code      in      out      out     out     out     out   in   out     -
recovery code used in      out      out     out     out     out   in   out     -
upstream sign-in   in      out      out     out     in      in    out  out     out
sign-up link       in      out      out     out     out     out   in   out     -
upstream sign-up   in      out      out     out     in      out   in   out     -
upstream invite    in      out      out     out     in      out   out  -       out
invitation         in      out      out     out     out     out   in   out     -
reset              in      out      out     out     out     out   in   out     -
upstream link      in      out      out     out     out     in    out  out     in
account page link  in      out      out     out     out     out   out  out     out
single sign-on     in      out      out     out     out     out   out  out     -
prompt=none        in      out      out     out     out     out   out  out     -
device             in      out      out     out     out     out   in   out     -
`

const OPERATOR = { user_id: 'operator', isAdmin: true }
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const [[, ...states] = [], ...rows] = TABLE.trim().split('\n').map((line): [name: string, ...cells: string[]] => [line.slice(0, 18).trim(), ...line.slice(18).trim().split(/ +/)])

type State = 'nothing' | 'disabled' | 'expired' | 'deleted' | 'invited' | 'epoch' | 'role' | 'removed' | 'forbidden'

/** A road, up to its last form. */
interface Begun {
  user_id: string
  /** The way that was used last. */
  way: string
  /** The last form. Resolves to whether the person is in. */
  finish: () => Promise<boolean>
}

type Road = (state: State) => Promise<Begun>

/** Changes what the road rests on. */
async function change ({ kit }: Pick<Harness, 'kit'>, state: State, { user_id, way }: Begun): Promise<void> {
  const { users: people, store } = kit.app.identity
  const users = store.collection<UserRecord>('users')
  const past = '2020-01-01T00:00:00.000Z'
  if (state === 'disabled') await users.update(user_id, { set: { disabled_at: past }, increment: { revision: 1 } })
  if (state === 'expired') await users.update(user_id, { set: { expired_at: past }, increment: { revision: 1 } })
  if (state === 'deleted') await users.delete(user_id)
  if (state === 'invited') await users.update(user_id, { set: { invited_at: past, password: '' }, increment: { revision: 1 } })
  if (state === 'epoch') await users.update(user_id, { increment: { epoch: 1, revision: 1 } })
  if (state === 'role') await people.patch(user_id, { data: { roles: { ops: true } } }, OPERATOR)
  if (state !== 'removed') return
  if (way === PASSWORD) await users.update(user_id, { unset: ['password'], increment: { revision: 1 } })
  else await store.collection('credentials').delete(way)
}

/** Runs a road with each state. */
async function walk (t: Test, harness: Pick<Harness, 'kit'>, name: string, road: Road): Promise<void> {
  const [, ...cells] = rows.find(([road]) => road === name)!
  for (const [index, expected] of cells.entries()) {
    if (expected === '-') continue
    const state = states[index] as State
    const begun = await road(state)
    await change(harness, state, begun)
    t.equal(await begun.finish() ? 'in' : 'out', expected, `${name}: ${state}`)
  }
}

const isIn = ({ left }: Page): boolean => left?.searchParams.has('code') === true

/** Adds an app within the sign-in, up to the form that confirms that the codes were kept. */
async function enrol ({ kit }: Pick<Harness, 'kit'>, account: string, why: Page): Promise<Begun> {
  const { store } = kit.app.identity
  const users = store.collection<UserRecord>('users')
  if (why.title !== en.enrol.title) throw new Error(`not the enrolment: ${why.title}`)
  const { id: user_id } = (await users.getBy('account', account))!
  const app = await why.submit()
  const codes = await app.submit({ code: await nextCode(kit.clock, readSeed(app)) })
  const [{ id: way = '' } = {}] = (await Array.fromAsync(store.collection<{ id: string, user_id: string, way: Way }>('credentials').stream())).flat()
    .filter((credential) => credential.user_id === user_id && credential.way.kind === 'totp')
  return { user_id, way, finish: async () => isIn(await codes.submit({ kept: 'yes' })) }
}

eachStore(t, 'roads over HTTP', async (t, start) => {
  const harness = await start({ factors: { roles: ['ops'] } })
  const { kit, browser, register, post } = harness
  const { accounts, store } = kit.app.identity
  const users = store.collection<UserRecord>('users')
  const app = await register()
  const device = await register({ public: true })
  const asked = (params: Record<string, string> = {}) => askCode(app, { acr_values: '1', ...params }).url
  let count = 0
  const create = async () => await addUser(harness, `walker${++count}@example.com`)
  const type = async (page: Page, { account, password }: { account: string, password: string }) => await page.submit({ account, password })
  const find = async (user_id: string, kind: Way['kind']) => Object.entries((await users.get(user_id))?.ways ?? {}).find(([, way]) => way.kind === kind)![0]

  /** A person with an authenticator app, who has typed their password. */
  async function arrive (url = asked(), tab: Browser = browser()) {
    const person = await create()
    const totp = await kit.totp(person.user_id)
    const page = await type(await tab.open(url), person)
    const code = async () => {
      kit.clock.advance(30_000)
      return { code: await totp.code() }
    }
    return { ...person, totp, page, code }
  }

  /** The same with the form for a recovery code. */
  async function chooseRecovery () {
    const { user_id, page, totp } = await arrive()
    const link = /<a href="([^"]*way=recovery)"/.exec(page.text)?.[1] ?? ''
    const form = await page.browser.open(link.replaceAll('&amp;', '&'))
    return { user_id, form, submit: async (on: Page) => await on.submit({ code: totp.recoveryCodes[0]! }) }
  }

  const ROADS: Record<string, Road> = {
    async password () {
      const person = await create()
      const page = await browser().open(asked())
      return { ...person, way: PASSWORD, finish: async () => isIn(await type(page, person)) }
    },
    async TOTP () {
      const { user_id, page, code, totp } = await arrive()
      return { user_id, way: totp.id, finish: async () => isIn(await page.submit(await code())) }
    },
    async 'recovery code' () {
      const { user_id, form, submit } = await chooseRecovery()
      const finish = async () => {
        const page = await submit(form)
        return isIn(page.title === en.codeUsed.title ? await passCodeUsed(page) : page)
      }
      return { user_id, way: await find(user_id, 'recovery'), finish }
    },
    // The page that says how many codes are left.
    async 'recovery code used' () {
      const { user_id, form, submit } = await chooseRecovery()
      const way = await find(user_id, 'recovery')
      const page = await submit(form)
      return { user_id, way, finish: async () => isIn(await passCodeUsed(page)) }
    },
    async invitation () {
      const account = `guest${++count}@example.com`
      await accounts.inviteUser({ account, roles: { ops: true } }, OPERATOR)
      const tab = browser()
      await (await tab.open((await kit.mails.next({ to: account })).link!)).submit({ password: 'a horse too' })
      return await enrol(harness, account, await type(await tab.open(asked()), { account, password: 'a horse too' }))
    },
    async reset () {
      const person = await create()
      const totp = await kit.totp(person.user_id)
      await kit.mails.all()
      const tab = browser()
      const page = await tab.open(asked())
      await accounts.forgotPassword(person.account, { ip: '192.0.2.1' })
      await (await tab.open((await kit.mails.next({ to: person.account })).link!)).submit({ password: 'another horse' })
      const second = await type(page, { ...person, password: 'another horse' })
      kit.clock.advance(30_000)
      return { ...person, way: totp.id, finish: async () => isIn(await second.submit({ code: await totp.code() })) }
    },
    async 'single sign-on' () {
      const person = await create()
      const { browser: tab } = await type(await browser().open(asked()), person)
      return { ...person, way: PASSWORD, finish: async () => isIn(await tab.open(asked())) }
    },
    async 'prompt=none' () {
      const person = await create()
      const { browser: tab } = await type(await browser().open(asked()), person)
      return { ...person, way: PASSWORD, finish: async () => isIn(await tab.open(asked({ prompt: 'none' }))) }
    },
    async device () {
      const { body } = await post('device_authorization', { scope: 'openid' }, device)
      const tab = browser()
      const person = await create()
      const totp = await kit.totp(person.user_id)
      const second = await type(await (await tab.open('/api/v1/auth/device')).submit({ user_code: String(body.user_code) }), person)
      return {
        ...person,
        way: totp.id,
        async finish () {
          kit.clock.advance(30_000)
          const page = await second.submit({ code: await totp.code() })
          if (page.title.startsWith('Continue to')) await page.submit({ decision: 'allow' })
          return 'access_token' in (await post('token', { grant_type: DEVICE, device_code: String(body.device_code) }, device)).body
        }
      }
    }
  }

  for (const [name, road] of Object.entries(ROADS)) await walk(t, harness, name, road)
})

eachStore(t, 'the road of a sign-up, where everybody needs a factor', async (t, start) => {
  const harness = await start({ factors: 'required', signUp: true })
  const { kit, browser, register } = harness
  const app = await register()
  let count = 0
  await walk(t, harness, 'sign-up link', async () => {
    const account = `new${++count}@example.com`
    const page = await browser().open(askCode(app, { prompt: 'create' }).url)
    await page.submit({ typed: account })
    const form = await page.browser.open((await kit.mails.next({ to: account })).link!)
    return await enrol(harness, account, await form.submit({ password: 'a horse too' }))
  })
})

eachStore(t, 'the road of a sign-up that a provider completes, where everybody needs a factor', async (t, start) => {
  const harness = await start({ factors: 'required', signUp: true, upstream: {} })
  const { kit, browser, register } = harness
  const app = await register()
  let count = 0
  await walk(t, harness, 'upstream sign-up', async () => {
    const account = `new${++count}@example.com`
    const page = await browser().open(askCode(app, { prompt: 'create' }).url)
    await page.submit({ typed: account })
    const form = await page.browser.open((await kit.mails.next({ to: account })).link!)
    kit.upstream({ sub: account })
    return await enrol(harness, account, await form.browser.open(await completeBy(form)))
  })
})

/** The provider's answer to the form of a link. */
async function completeBy (page: Page): Promise<string> {
  const { pathname, searchParams } = new URL(page.response.url)
  return await answerOf((await post(page, pathname, { token: searchParams.get('token')!, upstream: 'test' })).left)
}

/** A browser whose requests reach another instance from now on: one that was started again with other options. */
class Visitor extends Browser {
  #port: string | undefined

  moveTo (url: string): void {
    this.#port = new URL(url).port
  }

  override async fetch (url: string, options?: RequestInit): Promise<Response> {
    const target = new URL(url, this.origin)
    target.port = this.#port ?? target.port
    return await super.fetch(target.href, options)
  }
}

eachStore(t, 'roads by passkeys and upstreams over HTTP', async (t, start) => {
  const options = { factors: { roles: ['ops'] }, ...await atLocalhost() }
  const harness = await start({ ...options, upstream: {} })
  const { kit, url } = harness
  const { store } = kit.app.identity
  const users = store.collection<UserRecord>('users')
  const app = await harness.register()
  const strict = await startIdentity({ t, ...options, store, rateLimit: false, time: kit.clock.now(), passkeys: false })
  const { url: strictUrl } = await strict.listen()
  const asked = () => askCode(app, { acr_values: '1' }).url
  /** Either instance publishes the change, and sends the mail about it. */
  const findLink = async (to: string) => (await kit.mails.next({ to }).catch(async () => await strict.mails.next({ to }))).link!
  let count = 0

  /** A person, and their browser, which goes to the instance without passkeys and upstreams before the last form if they are forbidden. */
  async function arrive (state: State) {
    const person = await addUser(harness, `rider${++count}@example.com`)
    const tab = new Visitor(url)
    const last = <T>(finish: () => Promise<T>) => async () => {
      if (state === 'forbidden') tab.moveTo(strictUrl)
      return await finish()
    }
    return { person, tab, last }
  }

  /** Sends a page's form as the script does: with the answer of the passkey. */
  async function send (page: Page, passkey: TestPasskey): Promise<Page> {
    const { pathname, search } = new URL(page.response.url)
    return await post(page, pathname + search, { way: 'passkey', assertion: passkey.answer(page.text) })
  }

  const isLinked = async (user_id: string) => Object.values((await users.get(user_id))?.ways ?? {}).some(({ kind }) => kind === 'upstream')

  /** The provider's answer about a person, whose address it has proved. */
  async function meet (account: string, from: Page): Promise<string> {
    kit.upstream({ sub: account, email: account, email_verified: true })
    return await answerOf(await leave(from.browser, from))
  }

  /** A person whose address has an account joins it when they have signed in to it. */
  const join = async (account: string, password: string, tab: Browser) => (
    await (await tab.open(await meet(account, await tab.open(asked())))).submit({ account, password }))

  const ROADS: Record<string, Road> = {
    async 'passkey first' (state) {
      const { person, tab, last } = await arrive(state)
      const passkey = await kit.passkey(person.user_id)
      const page = await tab.open(asked())
      return { ...person, way: passkey.id, finish: last(async () => isIn(await send(page, passkey))) }
    },
    async 'passkey second' (state) {
      const { person, tab, last } = await arrive(state)
      const passkey = await kit.passkey(person.user_id)
      const page = await (await tab.open(asked())).submit({ account: person.account, password: person.password })
      t.equal(page.title, en.secondStep.title.passkey)
      return {
        ...person,
        way: passkey.id,
        finish: last(async () => {
          const done = await send(page, passkey)
          const { account, password } = person
          if (state === 'removed' || state === 'forbidden') t.ok(isIn(await done.submit({ account, password })), 'who has no passkey any more needs none')
          return isIn(done)
        })
      }
    },
    async 'upstream sign-in' (state) {
      const { person, tab, last } = await arrive(state)
      t.ok(isIn(await join(person.account, person.password, new Visitor(url))), 'they have joined')
      const [way = ''] = Object.entries((await users.get(person.user_id))?.ways ?? {}).find(([, { kind }]) => kind === 'upstream')!
      const answer = await meet(person.account, await tab.open(asked()))
      return { ...person, way, finish: last(async () => isIn(await tab.open(answer))) }
    },
    async 'upstream link' (state) {
      const { person, tab, last } = await arrive(state)
      const page = await tab.open(await meet(person.account, await tab.open(asked())))
      return {
        ...person,
        way: PASSWORD,
        finish: last(async () => {
          const done = isIn(await page.submit({ account: person.account, password: person.password }))
          t.equal(await isLinked(person.user_id), done && state !== 'forbidden', `${state}: joined only by who gets in`)
          return done
        })
      }
    },
    async 'upstream invite' (state) {
      const { tab, last } = await arrive(state)
      const account = `invited${count}@example.com`
      const { user_id } = await kit.app.identity.accounts.inviteUser({ account }, OPERATOR)
      const page = await tab.open(await findLink(account))
      kit.upstream({ sub: account })
      const answer = await completeBy(page)
      return {
        user_id,
        way: PASSWORD,
        finish: last(async () => {
          await tab.open(answer)
          return await isLinked(user_id)
        })
      }
    },
    async 'account page link' (state) {
      const { person, tab, last } = await arrive(state)
      await enter(harness, '/account', tab, person)
      const page = await tab.open('/account/methods')
      kit.upstream({ sub: person.account })
      const answer = await answerOf((await post(page, '/account/identities/add?upstream=test', { current_password: person.password })).left)
      return {
        ...person,
        way: PASSWORD,
        finish: last(async () => {
          await tab.open(answer)
          return await isLinked(person.user_id)
        })
      }
    }
  }

  for (const [name, road] of Object.entries(ROADS)) await walk(t, harness, name, road)
})

eachStore(t, 'from the second step on, attempts count for the user, whichever name is typed', async (t, start) => {
  const harness = await start({ rateLimit: 60, oidc: { signInLimit: 5 } })
  const { kit, browser, register } = harness
  const app = await register()
  const person = await addUser(harness, 'ann-with-two-names')
  const users = kit.app.identity.store.collection<UserRecord>('users')
  await users.update(person.user_id, { set: { email: 'ann@two.example', email_verified_at: '2026-01-01T00:00:00.000Z', addresses: ['ann@two.example'] }, increment: { revision: 1 } })
  await kit.totp(person.user_id)
  const statuses: number[] = []
  for (const account of [person.account, 'ann@two.example', person.account, 'ANN@two.example']) {
    const page = await browser().open(askCode(app).url)
    const second = await page.submit({ account, password: person.password })
    t.equal(second.title, en.secondStep.title.totp)
    for (let number = 0; number < 2; number++) statuses.push((await second.submit({ code: '000000' })).response.status)
  }
  t.strictSame(statuses, [400, 400, 400, 400, 400, 429, 429, 429])
  const other = await addUser(harness, 'somebody-else')
  await kit.totp(other.user_id)
  const second = await (await browser().open(askCode(app).url)).submit({ account: other.account, password: other.password })
  t.equal((await second.submit({ code: '000000' })).response.status, 400, 'not for another user')
})
