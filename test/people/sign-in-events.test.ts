import t, { type Test } from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Json } from '../../lib/store/port.ts'
import { toWayKey } from '../../lib/way.ts'
import { generateCode } from '../../lib/ways/totp.ts'
import type { Event } from '../../schemas/event.ts'
import type { IdentityOptions } from '../../index.ts'
import type { StartOptions } from '../../testing/index.ts'
import type { Page } from '../oidc/browser.ts'
import { type Harness, askCode, atLocalhost, eachStore } from '../oidc/harness.ts'
import { enrol, nextCode } from '../pages/factors.ts'
import { enrolPasskey, enterByPasskey } from '../pages/passkeys.ts'
import { addUser, enter, post } from '../pages/visits.ts'
import { leave, readError, through } from '../upstreams/through.ts'

t.setTimeout(600_000)

const START = '/api/v1/auth/upstream/test'
const MINUTE = 60_000
const PASSWORD_METHOD = { kind: 'password', id: 'password' }

type Start = (options?: StartOptions) => Promise<Harness>

function openScene (harness: Harness) {
  const { kit, browser } = harness
  const users = kit.app.identity.store.collection<UserRecord>('users')
  return {
    ...harness,
    users,
    now: () => new Date(kit.clock.now()).toISOString(),
    async add (account: string, fields: Record<string, Json> = {}, unset: string[] = []) {
      const user = await addUser(harness, account)
      await users.update(user.user_id, { set: fields, unset: unset as never[] })
      return user
    },
    attempt: async (account: string, password: string, tab = browser()) => await (await tab.open('/account/sign-in')).submit({ account, password, direct: 'yes' }),
    enterAs: async (claims: Record<string, unknown> & { sub: string }, from: string = START) => {
      kit.upstream(claims)
      return await through(browser(), from)
    },
    /** The last attempt of a person, or of nobody. */
    async last (user_id?: string): Promise<Event | undefined> {
      const events = await kit.events.list(user_id === undefined ? { type: 'sign_in.failed' } : {})
      if (user_id === undefined) return events.filter(({ target }) => target.kind === 'unknown').at(-1)
      await kit.flush()
      return (await kit.app.identity.events.listSignIns(user_id, 20)).attempts[0]
    }
  }
}

type Scene = ReturnType<typeof openScene>

/** A person with an identity at the provider, which an invitation has linked. */
async function addLinked ({ kit, add }: Scene): Promise<{ user_id: string, way: string, claims: { sub: string, email: string, email_verified: boolean } }> {
  const { user_id } = await add('linked@example.com')
  const issuer = kit.upstream.issuer
  const { id: way } = await kit.app.identity.ways.add({ user_id, epoch: null }, {
    kind: 'upstream', upstream: 'test', issuer, key: toWayKey('upstream', issuer, 'linked'), material: { issuer, subject: 'linked' }
  })
  return { user_id, way, claims: { sub: 'linked', email: 'linked@example.com', email_verified: true } }
}

async function checkPasswords (t: Test, { kit, users, attempt, last, add, now, user }: Scene): Promise<void> {
  const wrong = readError(await attempt(user.account, 'wrong'))
  t.match(await last(user.user_id), { type: 'sign_in.failed', reason: 'wrong_password', method: PASSWORD_METHOD, outcome: 'failure' })
  t.equal(readError(await attempt('nobody', 'x')), wrong)
  t.match(await last(), { reason: 'no_account', method: PASSWORD_METHOD, target: { id: /^[\w-]{22}$/ } })
  for (const [reason, set, unset] of [
    ['disabled', { disabled_at: now() }, []],
    ['expired', { expired_at: now() }, []],
    ['invitation_open', { invited_at: now() }, ['password']],
    ['no_method', {}, ['password']],
    ['former_unavailable', { imported_lazy: true }, ['password']]
  ] as [string, Record<string, Json>, string[]][]) {
    const person = await add(`${reason}@example.com`, set, unset)
    t.equal(readError(await attempt(person.account, person.password)), wrong, `${reason}: the page says the same`)
    t.match(await last(person.user_id), { type: 'sign_in.failed', reason, user_id: person.user_id, method: PASSWORD_METHOD }, reason)
  }
  const locked = await add('locked@example.com')
  for (let count = 0; count < 20; count++) await kit.app.identity.users.verify(locked.account, 'wrong')
  await attempt(locked.account, locked.password)
  t.match(await last(locked.user_id), { reason: 'paused' })
  for (let count = 20; count < 100; count++) {
    kit.clock.advance(16 * MINUTE)
    await kit.app.identity.users.verify(locked.account, 'wrong')
  }
  await attempt(locked.account, locked.password)
  t.match(await last(locked.user_id), { reason: 'password_locked' })
  t.not((await users.get(locked.user_id))?.password, undefined)
}

eachStore(t, 'a refused password says why in its event, and nothing of it to a stranger', async (t, start: Start) => {
  await checkPasswords(t, openScene(await start()))
})

eachStore(t, 'the old system cannot be asked', async (t, start: Start) => {
  const migrate = { create: true, verify: () => { throw new Error('down') }, find: () => null } as unknown as NonNullable<IdentityOptions['migrate']>
  const { attempt, last } = openScene(await start({ migrate }))
  await attempt('moved', 'x')
  t.match(await last(), { reason: 'former_unavailable' })
})

eachStore(t, 'second factors: a wrong code, one of another time, a locked app, and one that is missing', async (t, start: Start) => {
  const scene = openScene(await start({ time: '2126-11-20T09:30:00Z' }))
  const { kit, user, attempt, last } = scene
  const { seed } = await enrol(kit.clock, await enter(scene), user.password)
  const [{ method }] = await kit.events.list({ type: 'factor.added' }) as [Event]
  t.match(method, { kind: 'totp', id: /./ })
  kit.clock.advance(MINUTE)
  const code = await attempt(user.account, user.password)
  t.equal((await post(code, '/account/sign-in', { code: '000000' })).response.status, 400)
  t.match(await last(user.user_id), { type: 'factor.failed', reason: 'wrong_code', method })
  await post(code, '/account/sign-in', { code: await generateCode(seed, kit.clock.now() - 10 * MINUTE) })
  t.match(await last(user.user_id), { type: 'factor.failed', reason: 'clock', method })
  await post(code, '/account/sign-in', { code: await generateCode(seed, kit.clock.now() - 20 * MINUTE) })
  t.match(await last(user.user_id), { reason: 'wrong_code' }, 'of a time too far away')
  await post(code, '/account/sign-in', { code: await nextCode(kit.clock, seed) })
  t.match(await last(user.user_id), { type: 'sign_in.succeeded', amr: ['pwd', 'otp', 'mfa'], acr: 'mfa', method: PASSWORD_METHOD })
  for (let count = 0; count < 20; count++) await kit.app.identity.factors.verifyTotp(user.user_id, '000000').catch(() => {})
  const next = await attempt(user.account, user.password)
  await post(next, '/account/sign-in', { code: '000000' })
  t.match(await last(user.user_id), { reason: 'paused', method })
  for (let count = 20; count < 100; count++) {
    kit.clock.advance(16 * MINUTE)
    await kit.app.identity.factors.verifyTotp(user.user_id, '000000')
  }
  await post(await attempt(user.account, user.password), '/account/sign-in', { code: '000000' })
  t.match(await last(user.user_id), { reason: 'factor_locked', method })
  t.match((await kit.events.list({ type: 'factor.closed' })).at(-1), { method })
  await kit.app.identity.heldFactors.reset(user.user_id, { user_id: 'operator', isAdmin: true })
  t.match((await kit.events.list({ type: 'factor.reset' })).at(-1), { methods: [method, { kind: 'recovery' }] })
})

eachStore(t, 'what is judged after the last step', async (t, start: Start) => {
  const scene = openScene(await start({ factors: 'required', signUp: true, upstream: { domains: ['corp.example'], only: true, create: true } }))
  const { kit, user, add, attempt, last } = scene
  const only = await add('otto@corp.example')
  await attempt(only.account, only.password)
  t.match(await last(only.user_id), { type: 'sign_in.failed', reason: 'only_upstream', method: PASSWORD_METHOD })
  await kit.app.identity.heldFactors.reset(user.user_id, { user_id: 'operator', isAdmin: true })
  await attempt(user.account, user.password)
  t.match(await last(user.user_id), { reason: 'factor_missing' })
})

eachStore(t, 'an app asks for more than the person can prove', async (t, start: Start) => {
  const { register, browser, user, last } = openScene(await start())
  const app = await register()
  const ask = async (acr?: string) => await (await browser().open(askCode(app, { acr_values: acr }).url)).submit({ account: user.account, password: user.password })
  await ask('mfa')
  t.match(await last(user.user_id), { type: 'sign_in.failed', reason: 'acr_unmet', client_id: app.client_id, method: PASSWORD_METHOD })
  await ask()
  t.match(await last(user.user_id), { type: 'sign_in.succeeded', acr: '1', amr: ['pwd'], client_id: app.client_id, method: PASSWORD_METHOD })
})

eachStore(t, 'other providers: each refusal has its reason', async (t, start: Start) => {
  const scene = openScene(await start({ upstream: {} }))
  const { kit, browser, add, last, enterAs, users, now } = scene
  await enterAs({ sub: 'new', email: 'new@example.com', email_verified: true })
  t.match(await last(), { reason: 'no_account', method: { kind: 'upstream' }, via: { upstream: 'test', subject: /./ } })
  const tab = browser()
  const away = await leave(tab, START)
  const back = new URL(away.searchParams.get('redirect_uri') ?? '')
  back.search = new URLSearchParams({ state: away.searchParams.get('state') ?? '', error: 'access_denied' }).toString()
  await tab.open(back.href)
  t.match(await last(), { reason: 'upstream_refused', via: { upstream: 'test', subject: undefined } })
  const other = browser()
  const away2 = await leave(other, START)
  back.search = new URLSearchParams({ state: away2.searchParams.get('state') ?? '', error: 'server_error' }).toString()
  await other.open(back.href)
  t.match(await last(), { reason: 'upstream_down' })

  kit.upstream({ sub: 'linked', email: 'linked@example.com', email_verified: true })
  const linked = await addLinked(scene)
  const method = { kind: 'upstream', id: linked.way }
  await enterAs(linked.claims)
  t.match(await last(linked.user_id), { type: 'sign_in.succeeded', amr: [], acr: '1', method, via: { upstream: 'test' } })
  await users.update(linked.user_id, { set: { disabled_at: now() } })
  await enterAs(linked.claims)
  t.match(await last(linked.user_id), { type: 'sign_in.failed', reason: 'disabled', method, via: { upstream: 'test' } })
  await users.update(linked.user_id, { unset: ['disabled_at'] })
  await users.update((await add('taken', {})).user_id, { set: { account: 'taken@example.com' }, unset: ['addresses'] })
  await add('somebody', { email: 'taken@example.com', email_verified_at: now(), addresses: ['taken@example.com'] })
  await enterAs({ sub: 'third', email: 'taken@example.com', email_verified: true })
  t.match(await last(), { reason: 'taken', via: { upstream: 'test', subject: /./ } })
})

eachStore(t, 'what a sign-in began with does not stand any more at its second step', async (t, start: Start) => {
  const shop = { id: 'shop', kind: 'oidc' as const, name: 'Shop', issuer: 'https://shop.example', clientId: 'a', clientSecret: 'b', clients: ['shop'] }
  const scene = openScene(await start({ upstream: {}, upstreams: [shop] }))
  const { kit, user, url, users, browser, register, attempt, enterAs, last } = scene
  const own = await kit.totp(user.user_id)
  const linked = await addLinked(scene)
  const totp = await kit.totp(linked.user_id)
  const method = { kind: 'upstream', id: linked.way }
  const finish = async (page: Page, app = totp) => {
    kit.clock.advance(30_000)
    return await page.submit({ code: await app.code() })
  }
  const count = async () => (await kit.events.list({ type: 'sign_in.failed' })).length
  const setUpstream = async (upstream: string) => {
    const { ways = {} } = (await users.get(linked.user_id))!
    await users.update(linked.user_id, { set: { ways: { ...ways, [linked.way]: { ...ways[linked.way]!, upstream } } } })
  }

  const { password } = (await users.get(user.user_id))!
  const lost = await attempt(user.account, user.password)
  await users.update(user.user_id, { unset: ['password'] })
  const answered = await finish(lost, own)
  t.match(await last(user.user_id), { type: 'sign_in.failed', reason: 'method_lost', method: PASSWORD_METHOD }, 'the password is gone')
  t.equal(await count(), 1)
  await finish(answered, own)
  t.equal((await kit.events.list({ type: 'sign_in.failed', user: user.user_id })).length, 1, 'once')
  await users.update(user.user_id, { set: { password: password! } })
  const stale = await attempt(user.account, user.password)
  await kit.app.identity.tokenSessions.end(user.user_id)
  await finish(stale, own)
  t.match(await last(user.user_id), { type: 'sign_in.failed', reason: 'stale', method: PASSWORD_METHOD }, 'all sessions were ended')

  const ended = await enterAs(linked.claims)
  const body = new URLSearchParams({ logout_token: kit.upstream.logoutToken({ sub: linked.claims.sub }) })
  t.equal((await fetch(`${url}${START}/backchannel-logout`, { method: 'POST', body })).status, 200)
  await finish(ended)
  t.match(await last(linked.user_id), { type: 'sign_in.failed', reason: 'upstream_ended', method, via: { upstream: 'test' } })
  const off = await enterAs(linked.claims)
  await setUpstream('gone')
  await finish(off)
  t.match(await last(linked.user_id), { type: 'sign_in.failed', reason: 'upstream_off', method, via: { upstream: 'gone' } }, 'the provider is configured no more')
  await setUpstream('test')
  const app = await register()
  kit.upstream(linked.claims)
  const form = await browser().open(askCode(app).url)
  const elsewhere = await through(form.browser, form)
  await setUpstream('shop')
  await finish(elsewhere)
  t.match(await last(linked.user_id), { type: 'sign_in.failed', reason: 'wrong_app', client_id: app.client_id, method, via: { upstream: 'shop' } }, 'it is for other apps')
})

eachStore(t, 'other providers: an address without a proof, roles that are not said, and a sign-in of long ago', async (t, start: Start) => {
  const scene = openScene(await start({ signUp: true, signUpDomains: ['example.com'], upstream: { roles: { claim: 'groups', map: { clerks: 'clerk' } } } }))
  const { kit, browser, register, last, enterAs } = scene
  const via = { upstream: 'test', subject: /./ }
  await enterAs({ sub: 'nobody', groups: [], email: 'nobody@example.com', email_verified: false })
  t.match(await last(), { type: 'sign_in.failed', reason: 'unproved_address', via, method: { kind: 'upstream' } })
  const linked = await addLinked(scene)
  const method = { kind: 'upstream', id: linked.way }
  await enterAs(linked.claims)
  t.match(await last(linked.user_id), { type: 'sign_in.failed', reason: 'roles_absent', method, via })
  const app = await register()
  kit.upstream({ ...linked.claims, groups: [], auth_time: Math.floor(kit.clock.now() / 1000) - 3600 })
  const form = await browser().open(askCode(app, { max_age: '60' }).url)
  await through(form.browser, form)
  t.match(await last(linked.user_id), { type: 'sign_in.failed', reason: 'stale', method, via, client_id: app.client_id })
})

eachStore(t, 'a passkey of another site, and one that is gone', async (t, start: Start) => {
  const scene = openScene(await start(await atLocalhost()))
  const { user, users, browser, kit, last } = scene
  const { key } = await enrolPasskey(await enter(scene), { current_password: user.password })
  await enterByPasskey(browser(), key)
  t.match(await last(user.user_id), { type: 'sign_in.succeeded', method: { kind: 'passkey' } })
  const { ways = {} } = (await users.get(user.user_id))!
  const [id] = Object.entries(ways).find(([, { kind }]) => kind === 'passkey')!
  await users.update(user.user_id, { set: { ways: { ...ways, [id]: { ...ways[id]!, rp: 'old.example' } } } })
  await enterByPasskey(browser(), key)
  t.match(await last(user.user_id), { type: 'factor.failed', reason: 'method_off', method: { kind: 'passkey', id } })
  await users.update(user.user_id, { set: { ways } })
  await kit.app.identity.store.collection('credentials').delete(id)
  await enterByPasskey(browser(), key)
  t.match(await last(), { type: 'sign_in.failed', reason: 'method_lost', method: { kind: 'passkey' } })
})

eachStore(t, 'a refusal by a limit a minute is an event of whose name was typed', async (t, start: Start) => {
  const { user, attempt, last } = openScene(await start({ rateLimit: 60 }))
  for (let count = 0; count < 12; count++) await attempt(user.account, 'wrong')
  t.match(await last(user.user_id), { type: 'sign_in.failed', reason: 'limited', method: PASSWORD_METHOD })
  for (let count = 0; count < 11; count++) await attempt('nobody', 'wrong')
  t.match(await last(), { reason: 'limited' })
})

eachStore(t, "a stranger's flood hides neither the attempt of a known browser nor one with another reason", async (t, start: Start) => {
  const { kit, user, attempt, browser, users, now } = openScene(await start())
  const { identity } = kit.app
  const home = browser()
  await attempt(user.account, user.password, home)
  await post(await home.open('/account'), '/account/sign-out')
  for (let count = 0; count < 19; count++) await attempt(user.account, 'guess')
  await identity.failures.flush()
  const own = browser()
  await attempt(user.account, 'mistyped', home)
  await users.update(user.user_id, { set: { expired_at: now() } })
  await attempt(user.account, user.password, own)
  await identity.failures.flush()
  await kit.flush()
  const { attempts: events } = await identity.events.listSignIns(user.user_id, 20)
  const summary = events.find(({ count }) => count !== undefined)
  t.match(summary, { reason: 'wrong_password', count: 9, addresses: 1, address: '127.0.0.1' })
  t.match(events[0], { reason: 'expired' })
  t.equal(events.filter(({ reason, count }) => reason === 'wrong_password' && count === undefined).length, 11)
})
