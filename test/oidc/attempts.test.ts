import t from 'tap'
import { createApp } from '../../testing/kit.ts'
import { signIn as mintPerson } from '../helpers/people.ts'
import { Browser, withoutIds, type Page } from './browser.ts'
import { type App, type Harness, askCode, createFile, eachStore, startHarness } from './harness.ts'

// Hundreds of sign-ins through the pages.
t.setTimeout(600_000)

const HOUR = 60 * 60_000
const WRONG = 'Wrong email, username or password.'
const CLOSED = 'Too many wrong attempts.'

/** A service behind a proxy, so that a test can send from many addresses. */
const manyAddresses = () => ({ app: createApp({ trustProxy: true }), rateLimit: 60 })

interface Answered { status: number, page: Page, retryAfter: number, text: string }

/** Sends the sign-in form from this address. */
async function attempt (app: App, browser: Browser, fields: { account: string, password: string }, address = '203.0.113.1'): Promise<Answered> {
  const page = await (await browser.open(askCode(app, { prompt: 'login' }).url, { headers: { 'x-forwarded-for': address } })).submit(fields, { 'x-forwarded-for': address })
  const { status, headers } = page.response
  const text = [WRONG, CLOSED, 'Try again'].find((text) => page.text.includes(text)) ?? ''
  return { status: page.left === undefined ? status : 303, page, retryAfter: Number(headers.get('retry-after')), text }
}

/**
 * Guesses until `times` passwords were compared or the account is closed. Each guess comes from another address, and pauses are
 * waited out. Resolves to the number of compared passwords.
 */
async function attack ({ kit, url }: Harness, app: App, account: string, times: number): Promise<{ compared: number, last: Answered, time: number }> {
  const start = kit.clock.now()
  let compared = 0
  let last: Answered
  for (let made = 0; ; made++) {
    last = await attempt(app, new Browser(url), { account, password: `guess ${made}` }, `198.51.${made >> 8}.${made & 255}`)
    if (last.status === 400) compared++
    if (last.text === CLOSED || compared === times) break
    if (last.status === 429) kit.clock.advance(1000 * last.retryAfter)
  }
  return { compared, last, time: kit.clock.now() - start }
}

t.test('guesses from many addresses: an account takes 100, and known browsers stay in', async (t) => {
  const harness = await startHarness(t, manyAddresses())
  const { kit, url, user } = harness
  const app = await harness.register()
  const known = new Browser(url)
  t.equal((await attempt(app, known, user)).status, 303)

  const paused = await attack(harness, app, user.account, 20)
  t.equal(paused.time, 0)
  const right = await attempt(app, new Browser(url), user, '192.0.2.1')
  t.match(right, { status: 429, retryAfter: 1, text: 'Try again' }, 'in a pause the right password is not compared either')
  t.equal((await attempt(app, known, user)).status, 303, 'a browser that signed in before has no pause')

  const { compared, last, time } = await attack(harness, app, user.account, 1000)
  t.equal(20 + compared, 100, 'the sign-in in the known browser began no new count')
  t.ok(time > 17 * HOUR, `${time / HOUR} hours`)
  t.match(last, { status: 429, text: CLOSED })
  kit.clock.advance(200 * 24 * HOUR)
  t.match(await attempt(app, new Browser(url), user, '192.0.2.2'), { status: 429, text: CLOSED })
  t.equal((await attempt(app, known, user)).status, 303, 'a closed password is not closed in a known browser')

  await kit.app.identity.users.patch(user.user_id, { data: { password: 'another horse' } }, { user_id: 'operator', isAdmin: true })
  t.match(await attempt(app, known, { ...user, password: 'wrong' }), { status: 400 })
  t.equal((await attempt(app, new Browser(url), { ...user, password: 'another horse' }, '192.0.2.3')).status, 303, 'a new password opens it')
})

t.test('an account with two names takes 100 guesses in all', async (t) => {
  await eachStore(t, 'two names', async (t, start) => {
    const harness = await start(manyAddresses())
    const { kit, url } = harness
    const { users, store } = kit.app.identity
    const app = await harness.register()
    const names = ['carl', 'carl@example.com']
    const { user_id } = await users.create({ data: { account: 'carl', password: 'staple battery' } })
    await store.collection('users').update(user_id, { set: { email: 'carl@example.com', email_verified_at: '2026-01-01T00:00:00.000Z', addresses: ['carl@example.com'] } })
    let compared = 0
    let closed = 0
    for (let made = 0; closed < 2; made++) {
      const { status, text, retryAfter } = await attempt(app, new Browser(url), { account: names[made % 2]!, password: `guess ${made}` }, `198.51.${made >> 8}.${made & 255}`)
      if (status === 400) compared++
      if (text === CLOSED) closed++
      else if (status === 429) kit.clock.advance(1000 * retryAfter)
    }
    t.equal(compared, 100)
    await users.unlock(user_id)
    t.equal((await attempt(app, new Browser(url), { account: 'carl', password: 'wrong' }, '192.0.2.8')).status, 400)
    for (const account of names) t.equal((await attempt(app, new Browser(url), { account, password: 'staple battery' }, '192.0.2.9')).status, 303)
    t.equal(await store.collection('attempts').count(), 0, 'a success under one name ends the count of both')
  })
})

t.test('an unknown account answers like a known one, from the first attempt to the closing', async (t) => {
  const harness = await startHarness(t, manyAddresses())
  const app = await harness.register()
  const counts = harness.kit.app.identity.store.collection('attempts')
  const listCounts = async () => (await Array.fromAsync(counts.stream())).flat()
  const rest = async (account: string) => {
    const answers: unknown[] = []
    for (let made = 0; made < 29; made++) {
      // The skipped attempts would only add pauses.
      if (made === 24) for (const { id } of await listCounts()) await counts.update(id, { set: { failures: 98 } })
      const { status, retryAfter, page } = await attempt(app, new Browser(harness.url), { account, password: 'wrong' }, `198.51.100.${made}`)
      answers.push([status, retryAfter, withoutIds(page.text).replaceAll(account, 'ACCOUNT').replace(/interaction\/[\w-]+/g, '')])
      harness.kit.clock.advance(1000 * retryAfter)
    }
    for (const { id } of await listCounts()) await counts.delete(id)
    return answers
  }
  const known = await rest(harness.user.account)
  t.match(known.at(-1), [429, 0, new RegExp(CLOSED)])
  t.strictSame(await rest('nobody@example.com'), known)
})

t.test('ten failures or a new password make a cookie worthless, and no forged cookie is accepted', async (t) => {
  await eachStore(t, 'cookies', async (t, start) => {
    const harness = await start(manyAddresses())
    const { kit, url, user } = harness
    const app = await harness.register()
    const { users } = kit.app.identity
    const bob = { account: 'bob@example.com', password: 'staple battery' }
    await users.create({ data: bob })
    const [first, second, bobs] = [new Browser(url), new Browser(url), new Browser(url)]
    for (const browser of [first, second]) t.equal((await attempt(app, browser, user)).status, 303)
    t.equal((await attempt(app, bobs, bob)).status, 303)
    await attack(harness, app, user.account, 20)

    for (let made = 0; made < 9; made++) t.equal((await attempt(app, first, { ...user, password: 'wrong' })).status, 400)
    t.equal((await attempt(app, first, user)).status, 303, 'nine failures and a success')
    kit.clock.advance(61_000)
    await attack(harness, app, user.account, 1)
    for (let made = 0; made < 10; made++) t.equal((await attempt(app, first, { ...user, password: 'wrong' })).status, 400)
    kit.clock.advance(61_000)
    await attack(harness, app, user.account, 1)
    t.equal((await attempt(app, first, user)).status, 429, 'after ten failures it counts like any other')
    t.equal((await attempt(app, second, user)).status, 303, 'another browser has its own count')
    t.equal((await attempt(app, bobs, user)).status, 429, 'the cookie of another account')

    await users.patch(user.user_id, { data: { password: 'another horse' } }, { user_id: 'operator', isAdmin: true })
    await attack(harness, app, user.account, 20)
    t.equal((await attempt(app, second, { ...user, password: 'another horse' })).status, 429, 'a cookie from before the new password')
  })
})

t.test('the cookie: signed, for a year, and its attributes', async (t) => {
  const harness = await startHarness(t, { rateLimit: false })
  const { kit, user } = harness
  const app = await harness.register()
  const browser = harness.browser()
  const page = await browser.open(askCode(app).url)
  const action = /<form[^>]* action="([^"]*)"/.exec(page.text)?.[1] ?? ''
  const reply = await browser.fetch(action, { method: 'POST', headers: { origin: harness.url }, body: new URLSearchParams(user) })
  const [line = ''] = reply.headers.getSetCookie().filter((text) => text.startsWith('identity_known='))
  t.match(line, /^identity_known=[\w-]+\.[\w-]+; Path=\/; Max-Age=31536000; HttpOnly; SameSite=Lax$/)
  const value = line.slice('identity_known='.length, line.indexOf(';'))
  t.notMatch(Buffer.from(value, 'base64url').toString(), /ann/, 'it does not tell the account')

  const { knownBrowsers } = kit.app.identity
  t.match(knownBrowsers.find(value, 'ANN@example.com'), { user_id: user.user_id, epoch: 0 })
  for (const other of [undefined, '', '.', 'x.y', value.slice(0, -2), `${value}.x`, `A${value}`, value.split('.')[0]]) t.equal(knownBrowsers.find(other, user.account), undefined, String(other))
  t.equal(knownBrowsers.find(value, 'bob@example.com'), undefined)
  let both = value
  for (const account of ['b', 'c', 'd', 'e']) both = knownBrowsers.add(both, [account], { user_id: account, epoch: 0 })
  t.strictSame([user.account, 'b', 'c', 'd', 'e'].map((account) => knownBrowsers.find(both, account)?.user_id), [undefined, 'b', 'c', 'd', 'e'], 'four accounts, the latest ones')
  kit.clock.advance(365 * 24 * HOUR)
  t.equal(knownBrowsers.find(value, user.account), undefined, 'a year later')
})

t.test('the current password in the API: its failures are counted, and tokens keep working', async (t) => {
  await eachStore(t, 'current password', async (t, start) => {
    const harness = await start()
    const { kit, user } = harness
    const app = await harness.register()
    const ann = await mintPerson(kit, { user: user.user_id, scopes: ['account:write', 'account:read'] })
    const admin = await mintPerson(kit, { roles: ['admin'] })
    const change = (current_password: string) => ann.patch('/user', { data: { password: 'a new one', current_password } })
    for (let made = 0; made < 20; made++) t.match(await change('wrong'), { status: 400, body: { message: 'current_password: is wrong' } })
    t.match(await change(user.password), { status: 429, headers: { 'retry-after': '1' }, body: { code: 'ErrLimit', reason: 'paused' } })
    t.match(await ann.get('/user'), { status: 200 }, 'the token is as good as before')
    t.equal((await attempt(app, harness.browser(), user)).status, 303, 'the holder of a token cannot keep the user from signing in')

    const records = kit.app.identity.store.collection('attempts')
    for await (const [{ id } = { id: '' }] of records.stream()) await records.update(id, { set: { failures: 99 } })
    kit.clock.advance(15 * 60_000)
    t.match(await change('wrong'), { status: 400 })
    kit.clock.advance(15 * 60_000)
    t.match(await change(user.password), { status: 429, body: { code: 'ErrLimit', reason: 'closed' } })
    t.match(await admin.patch(`/user/${user.user_id}`, { disable: false }), { status: 204 })
    t.match(await change(user.password), { status: 204 }, 'an administrator opened it')
  })
})

t.test('services over one database count together, and a restart forgets nothing', async (t) => {
  const database = createFile(t)
  const one = await startHarness(t, { database })
  const { startIdentity } = await import('../../testing/index.ts')
  const other = await startIdentity({ t, database, rateLimit: false, time: one.kit.clock.now() })
  const { user } = one
  for (let made = 0; made < 10; made++) {
    for (const { app } of [one.kit, other]) t.equal(await app.identity.users.verify(user.account, 'wrong'), null)
  }
  for (const { app } of [one.kit, other]) await t.rejects(app.identity.users.verify(user.account, user.password), { code: 'ErrLimit', reason: 'paused' })
  await other.close()
  const again = await startIdentity({ t, database, rateLimit: false, time: one.kit.clock.now() })
  await t.rejects(again.app.identity.users.verify(user.account, user.password), { code: 'ErrLimit', reason: 'paused' })
  await again.app.identity.users.unlock(user.user_id)
  t.ok(await one.kit.app.identity.users.verify(user.account, user.password))
  await t.rejects(again.app.identity.users.unlock('nobody'), { code: 'ErrNotFound' })
})

t.test('one address is limited before anything is written', async (t) => {
  const harness = await startHarness(t, manyAddresses())
  const app = await harness.register()
  const count = () => harness.kit.app.identity.store.collection('attempts').count()
  let refused = 0
  for (let made = 0; made < 110; made++) {
    const { status } = await attempt(app, new Browser(harness.url), { account: `account-${made}`, password: 'x' })
    if (status === 429) refused++
  }
  t.equal(refused, 10)
  t.equal(await count(), 100)
  t.equal((await attempt(app, new Browser(harness.url), { account: 'x'.repeat(300), password: 'x' }, '192.0.2.9')).status, 400)
  t.equal(await count(), 100, 'what can be no account is not counted')
})
