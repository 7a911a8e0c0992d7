import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { addUser, enter, isSignedOut, post } from '../pages/visits.ts'
import { enrolInSignIn, nextCode, passCodeUsed, readCodes, readSeed } from '../pages/factors.ts'
import { through } from '../upstreams/through.ts'
import type { Page } from './browser.ts'
import { anotherForm } from './browser.ts'
import { type App, type Harness, askCode, eachStore, signIn } from './harness.ts'

const WHY = en.enrol.title
const MINUTE = 60_000
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const OPERATOR = { user_id: 'operator', isAdmin: true }
const ASKER = { ip: '192.0.2.1' }

/** What a page says about a refused form. */
const readError = ({ text }: Page): string | undefined => /role="alert"[^>]*>(?:<[^>]+>)*([^<]+)/.exec(text)?.[1]

/** A service that demands a factor of everybody. Each person is another one, without a factor. */
async function open (start: (options?: object) => Promise<Harness>) {
  const harness = await start({ factors: 'required', signUp: true })
  const { kit } = harness
  const { store } = kit.app.identity
  const users = store.collection<UserRecord>('users')
  const app = await harness.register()
  let count = 0
  const create = async () => {
    const person = await addUser(harness, `person${++count}@example.com`)
    return { ...person, as: { ...harness, user: person } }
  }
  return {
    ...harness,
    app,
    users,
    create,
    read: async (user_id: string) => (await users.get(user_id))!,
    /** The claims of the ID token of an authorization that has ended. */
    async redeem (page: Page, verifier: string, client: App = app): Promise<Record<string, unknown>> {
      const code = page.left?.searchParams.get('code')
      if (typeof code !== 'string') throw new Error(`no code: ${page.left?.search ?? page.title}`)
      const { body } = await harness.post('token', { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: client.redirect_uri }, client)
      return JSON.parse(Buffer.from(String(body.id_token).split('.')[1] ?? '', 'base64url').toString())
    },
    /** The sessions of browsers and the codes that exist. */
    async count (): Promise<number> {
      let found = await store.collection('authorization_codes').count()
      for await (const batch of store.collection<{ id: string, user_id?: string }>('sign_in_sessions').stream()) found += batch.filter(({ user_id }) => user_id !== undefined).length
      return found
    }
  }
}

eachStore(t, 'a person without a demanded factor adds one within the sign-in', async (t, start) => {
  const world = await open(start)
  const { kit, app, browser, create, read, redeem, count } = world
  const asked = (params: Record<string, string> = {}) => askCode(app, { acr_values: '1', ...params })

  await t.test('of an app: why, the app, the codes; before the last form there is no code, no session and no factor', async (t) => {
    const { as, user_id, account } = await create()
    const { url, verifier } = asked()
    const before = await count()
    const why = await signIn(as, url)
    t.equal(why.title, WHY)
    t.match(why.text, 'The App')
    t.match(why.text, 'After that, you continue to')
    const begun = await why.submit()
    const seed = readSeed(begun)
    t.match(seed, /^[A-Z2-7]{32}$/)
    t.match(begun.text, account.replace('@', '%40'), 'the app shows the account')
    t.match(begun.text, '<svg class="qr" role="img"')
    const refused = await begun.submit({ code: '000000' })
    t.match([refused.response.status, readError(refused), readSeed(refused)], [400, en.errors.wrongCode, seed])
    const shown = await begun.submit({ code: await nextCode(kit.clock, seed) })
    t.equal(readCodes(shown).length, 10)
    t.match(decodeURIComponent(/href="data:text\/plain;charset=utf-8,([^"]*)" download/.exec(shown.text)?.[1] ?? ''), account)
    const unkept = await shown.submit()
    t.equal(readCodes(unkept).length, 10, 'who does not confirm gets no further')
    t.notSame(readCodes(unkept), readCodes(shown))
    t.equal(await count(), before)
    t.equal((await read(user_id)).ways, undefined)
    const done = await unkept.submit({ kept: 'yes' })
    t.match(await redeem(done, verifier), { sub: user_id, acr: 'mfa', amr: ['pwd', 'otp', 'mfa'] })
    t.strictSame(Object.values((await read(user_id)).ways ?? {}).map(({ kind }) => kind).sort(), ['recovery', 'totp'])
    t.match(await kit.mails.next({ to: account }), { link: /\/undo\?token=/ }, 'the mail says so, and undoes it')
    t.match(await signIn(as, asked().url, done.browser), { left: URL }, 'single sign-on')
    const later = await signIn(as, asked().url)
    t.equal(later.title, en.secondStep.title.totp)
    t.type((await later.submit({ code: await nextCode(kit.clock, seed) })).left, URL)
    const recovered = await signIn(as, asked().url)
    const link = /<a href="([^"]*way=recovery)"/.exec(recovered.text)?.[1] ?? ''
    t.type((await passCodeUsed(await (await recovered.browser.open(link.replaceAll('&amp;', '&'))).submit({ code: readCodes(unkept)[0]! }))).left, URL, 'the codes that were kept count')
  })

  await t.test('who comes back to the page goes on where they were', async (t) => {
    const { as } = await create()
    const why = await signIn(as, asked().url)
    const seed = readSeed(await why.submit())
    const again = await why.browser.open(why.response.url)
    t.equal(readSeed(again), seed, 'the same key')
    await again.submit({ code: await nextCode(kit.clock, seed) })
    const proved = await why.browser.open(why.response.url)
    t.match(proved.text, en.account.proved)
    const shown = await proved.submit()
    t.equal(readCodes(shown).length, 10, 'with other codes')
    t.type((await shown.submit({ kept: 'yes' })).left, URL)
  })

  await t.test('of the account pages', async (t) => {
    const { as, account } = await create()
    const why = await enter(as, '/account/sessions')
    t.equal(why.title, WHY)
    t.match(why.text, en.enrol.nextAccount)
    t.ok(isSignedOut(await why.browser.open('/account/methods')) || (await why.browser.open('/account/methods')).title === WHY, 'no page of the account before')
    const { page } = await enrolInSignIn(kit.clock, why)
    t.match(page.text, account)
    t.match(page.response.url, /\/account\/sessions$/)
  })

  await t.test('of a sign-up within a sign-in, of a sign-up alone, of an invitation and of a reset', async (t) => {
    const { accounts } = kit.app.identity
    await kit.mails.all()
    const page = await browser().open(asked({ prompt: 'create' }).url)
    await page.submit({ typed: 'eve@example.com' })
    const { link } = await kit.mails.next({ to: 'eve@example.com' })
    const why = await (await page.browser.open(link!)).submit({ password: 'a new horse' })
    t.equal(why.title, WHY)
    t.type((await enrolInSignIn(kit.clock, why)).page.left, URL, 'and the app goes on')

    await accounts.signUp('fred@example.com', ASKER)
    await accounts.inviteUser({ account: 'gina@example.com' }, OPERATOR)
    const { account: ann } = await create()
    await accounts.forgotPassword(ann, ASKER)
    for (const account of ['fred@example.com', 'gina@example.com', ann]) {
      const { link } = await kit.mails.next({ to: account })
      const tab = browser()
      const set = await (await tab.open(link!)).submit({ password: 'a new horse' })
      t.equal(set.response.status, 200)
      const before = await count()
      const why = await tab.open('/account')
      t.equal(why.title, WHY, `${account}: the new password is not asked for`)
      t.equal(await count(), before)
      t.match((await enrolInSignIn(kit.clock, why)).page.text, account)
    }
  })

  await t.test('of a device', async (t) => {
    const { as } = await create()
    const device = await world.register({ public: true })
    const { body } = await world.post('device_authorization', { scope: 'openid' }, device)
    const poll = async () => (await world.post('token', { grant_type: DEVICE, device_code: String(body.device_code) }, device)).body
    const form = await (await browser().open('/api/v1/auth/device')).submit({ user_code: String(body.user_code) })
    const why = await form.submit({ account: as.user.account, password: as.user.password })
    t.equal(why.title, WHY)
    t.equal((await poll()).error, 'authorization_pending')
    let { page } = await enrolInSignIn(kit.clock, why)
    page = await page.submit({ decision: 'allow' })
    t.equal(page.title, 'Device connected')
    t.type((await poll()).access_token, 'string')
  })

  await t.test('with a session from before it was demanded; prompt=none says that a sign-in is needed', async (t) => {
    const { as, user_id } = await create()
    const tab = browser()
    const { seed } = await enrolInSignIn(kit.clock, await signIn(as, asked().url, tab))
    const remove = async () => {
      const { ways } = kit.app.identity
      for (const [id, { kind }] of Object.entries((await read(user_id)).ways ?? {})) {
        if (kind === 'totp') await ways.change(user_id, () => ({ remove: [id] }))
      }
    }
    await remove()
    t.equal((await tab.open(asked({ prompt: 'none' }).url)).left?.searchParams.get('error'), 'login_required')
    const { url, verifier } = asked()
    const why = await tab.open(url)
    t.equal(why.title, WHY, 'the password was typed a minute ago')
    const added = await enrolInSignIn(kit.clock, why)
    t.not(added.seed, seed)
    t.match(await redeem(added.page, verifier), { acr: 'mfa' })

    await remove()
    kit.clock.advance(11 * MINUTE)
    const page = await tab.open(asked().url)
    t.ok(isSignedOut(page), 'an older session is not enough to add a factor: whoever has stolen it does not know the password')
    t.match((await tab.open('/account')).text, 'name="password"')
    t.equal((await page.submit({ account: as.user.account, password: as.user.password })).title, WHY)
  })

  await t.test('a consent that was asked for before is not enough', async (t) => {
    const stranger = await world.register({ first_party: false })
    const { as, user_id } = await create()
    const tab = browser()
    await enrolInSignIn(kit.clock, await signIn(as, asked().url, tab))
    const consent = await tab.open(askCode(stranger).url)
    t.match(consent.title, /^Continue to/)
    const { ways } = kit.app.identity
    await ways.change(user_id, ({ ways = {} }) => ({ remove: Object.keys(ways) }))
    const why = await consent.submit({ decision: 'allow' })
    t.equal(why.title, WHY)
    t.equal(why.left, undefined)
    t.type((await enrolInSignIn(kit.clock, why)).page.left, URL)
  })
})

eachStore(t, 'an enrolment within a sign-in, attacked', async (t, start) => {
  const { kit, app, users, browser, create, read } = await open(start)
  const asked = () => askCode(app).url

  await t.test('a password set anew between the steps, another browser that is faster, ten minutes', async (t) => {
    for (const [name, between, expected] of [
      ['a new password', async (user_id: string) => await users.update(user_id, { increment: { epoch: 1, revision: 1 } }), 'Sign in'],
      ['disabled', async (user_id: string) => await users.update(user_id, { set: { disabled_at: '2020-01-01T00:00:00.000Z' }, increment: { revision: 1 } }), 'Sign in'],
      ['deleted', async (user_id: string) => await users.delete(user_id), 'Sign in'],
      ['another factor', async (user_id: string) => { await kit.totp(user_id) }, en.secondStep.title.totp],
      ['ten minutes', async () => { kit.clock.advance(10 * MINUTE) }, 'Sign in']
    ] as const) {
      for (const at of ['why', 'app', 'codes'] as const) {
        const { as, user_id } = await create()
        let page = await signIn(as, asked())
        let fields = {}
        if (at !== 'why') {
          page = await page.submit()
          fields = { code: await nextCode(kit.clock, readSeed(page)) }
        }
        if (at === 'codes') {
          page = await page.submit(fields)
          fields = { kept: 'yes' }
        }
        await between(user_id)
        const named = Object.keys((await users.get(user_id))?.ways ?? {})
        const refused = await page.submit(fields)
        t.equal(refused.left, undefined, `${name}, ${at}`)
        t.equal(refused.title.replace(/^.*?: /, ''), expected, `${name}, ${at}`)
        t.strictSame(Object.keys((await users.get(user_id))?.ways ?? {}), named, `${name}, ${at}: nothing is named`)
        t.equal((await page.submit(fields)).left, undefined)
      }
    }
  })

  await t.test('no form may be left out, and no other sign-in goes on with it', async (t) => {
    const { as, user_id } = await create()
    const why = await signIn(as, asked())
    t.equal((await why.submit({ kept: 'yes' })).left, undefined)
    const begun = await why.browser.open(why.response.url)
    t.equal((await begun.submit({ kept: 'yes' })).left, undefined, 'the codes before the app')
    t.equal((await read(user_id)).ways, undefined)
    const stranger = browser()
    t.equal((await stranger.open(why.response.url)).response.status, 400, 'the sign-in of another browser')
    const shown = await begun.submit({ code: await nextCode(kit.clock, readSeed(begun)) })
    const other = await create()
    const theirs = await signIn(other.as, asked())
    t.equal((await theirs.submit({ kept: 'yes' })).left, undefined)
    t.equal((await read(other.user_id)).ways, undefined, 'the codes of somebody else')
    t.type((await shown.submit({ kept: 'yes' })).left, URL)
    t.equal((await shown.submit({ kept: 'yes', ...anotherForm() })).left, undefined, 'once')
  })

  await t.test('what one person has begun does not go on with the old session of another one', async (t) => {
    const [ann, eve] = [await create(), await create()]
    const { signIns } = kit.app.identity
    const at = (ago: number) => new Date(kit.clock.now() - ago).toISOString()
    const toBase = (user_id: string, ago: number) => ({ user_id, user_epoch: 0, account: '', proofs: [{ way: 'password', kind: 'password' as const, at: at(ago) }] })
    const attempt = { form: new URLSearchParams(), turn: {}, limit: async () => undefined }
    t.match(await signIns.submit('shared', attempt, { base: toBase(ann.user_id, 0), choice: 'totp' }), { next: { view: { at: 'app' } } })
    t.match(await signIns.find('shared', { base: toBase(ann.user_id, 9 * MINUTE) }), { view: { at: 'app' } })
    t.match(await signIns.find('shared', { base: toBase(eve.user_id, 60 * MINUTE) }), { step: { kind: 'password' } })
    t.match(await signIns.find('shared'), { step: { kind: 'password' } }, 'nor without a session')
  })

  await t.test('five wrong codes lead back to the password', async (t) => {
    const { as, user_id } = await create()
    let page = await (await signIn(as, asked())).submit()
    for (let count = 0; count < 5; count++) page = await page.submit({ code: '000000' })
    t.match([page.title, readError(page)], [/Sign in$/, en.errors.tooManyCodes])
    t.equal((await read(user_id)).ways, undefined)
    const why = await page.submit({ account: as.user.account, password: as.user.password })
    t.equal(why.title, WHY)
    t.equal((await why.submit({ cancel: 'yes' })).left?.searchParams.get('error'), 'access_denied')
  })

  await t.test('a session whose sign-in ended meanwhile, and the account pages', async (t) => {
    const { as, user_id } = await create()
    const why = await enter(as)
    const begun = await post(why, '/account/sign-in', { way: 'totp' })
    await users.update(user_id, { increment: { epoch: 1, revision: 1 } })
    const refused = await post(begun, '/account/sign-in', { way: 'totp', code: await nextCode(kit.clock, readSeed(begun)) })
    t.ok(refused.title.includes('Sign in'))
    t.equal((await read(user_id)).ways, undefined)
  })
})

eachStore(t, 'a person who has signed in with another provider adds a second factor within the sign-in', async (t, start) => {
  const { kit, register, browser } = await start({ factors: 'required', signUp: true, upstream: {} })
  const app = await register()
  kit.upstream({ sub: 'bob', email: 'bob@example.com', email_verified: true })
  const [first, later, own] = [browser(), browser(), browser()]
  const why = await through(first, await first.open(askCode(app).url))
  t.equal(why.title, WHY)
  const { page, seed } = await enrolInSignIn(kit.clock, why)
  t.match(page.left?.searchParams.get('code'), /./)
  const second = await through(later, await later.open(askCode(app).url))
  t.equal(second.title, en.secondStep.title.totp)
  t.match((await second.submit({ code: await nextCode(kit.clock, seed) })).left?.searchParams.get('code'), /./)
  t.equal((await through(own, await own.open('/account/sign-in'))).title, en.secondStep.title.totp)
})
