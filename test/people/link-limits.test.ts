import { Piscina } from 'piscina'
import t, { type Test } from 'tap'
import { createTickets } from '../../lib/tickets/tickets.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { MAX_WAIT, type PasswordJob } from '../../lib/users/passwords.ts'
import type { TestKit } from '../../testing/index.ts'
import { build } from '../helpers/build.ts'
import { parseOpenMetrics } from '../helpers/openmetrics.ts'
import { PLAIN_PASSWORDS, openRules } from '../helpers/services.ts'
import { holdTimers } from '../helpers/timers.ts'
import { waitUntil } from '../helpers/wait.ts'

const FLOOD = '198.51.100.7'
const STRANGER = '203.0.113.9'

type Answer = Awaited<ReturnType<TestKit['inject']>>

/** Users with a mailed link each, and requests from chosen addresses. */
async function start (t: Test, count: number, options: Parameters<typeof build>[1] = {}) {
  const kit = await build(t, { rateLimit: 60, signUp: true, ...options })
  const { users, store } = kit.app.identity
  const tickets = createTickets({ store, now: kit.clock.now })
  const link = async (index: number) => {
    const account = `user-${index}@example.com`
    const { user_id } = await users.create({ data: { account, password: 'the first password' } })
    return await tickets.issue({ purpose: 'reset', user_id, user_epoch: 0, address: account, mailed: true })
  }
  const links = await Promise.all(Array.from({ length: count }, (_, index) => link(index)))
  const form = async (url: string, fields: Record<string, string>, remoteAddress: string, cookie = ''): Promise<Answer> => await kit.inject({
    method: 'POST', url, payload: new URLSearchParams(fields).toString(), remoteAddress, headers: { 'content-type': 'application/x-www-form-urlencoded', cookie }
  })
  const reset = async (token: string, remoteAddress = FLOOD): Promise<Answer> =>
    await kit.inject({ method: 'POST', url: '/api/v1/auth/reset', payload: { data: { token, password: 'the second password' } }, remoteAddress })
  return { kit, tickets, links, form, reset }
}

/** The number of hashes in the queue. */
async function countHashes ({ app }: TestKit): Promise<number> {
  const families = parseOpenMetrics(await (await fetch(app.identity.metrics?.url ?? '')).text())
  return families.get('identity_hash_queue')?.samples[0]?.value ?? 0
}

t.test('while one address uses 56 links at once, a sign-in from another waits for one hash or two', async (t) => {
  const { run } = Piscina.prototype
  holdTimers(t, MAX_WAIT)
  const kinds: string[] = []
  let opened = Promise.withResolvers<void>()
  t.teardown(() => { Piscina.prototype.run = run })
  Piscina.prototype.run = async function (...args) {
    kinds.push('hash' in (args[0] as PasswordJob) ? 'sign-in' : 'link')
    await opened.promise
    return await run.apply(this, args) as unknown
  }
  for (const road of ['by the API', 'by the page'] as const) {
    opened.resolve()
    const { kit, links, form, reset } = await start(t, 57, { metrics: '127.0.0.1:0' })
    const { body, headers } = await kit.inject({ url: '/account/sign-in', remoteAddress: STRANGER })
    const cookie = String(headers['set-cookie']).split(';')[0]
    const xsrf = /name="xsrf" value="([^"]*)"/.exec(body)?.[1] ?? ''
    opened = Promise.withResolvers()
    kinds.length = 0
    const uses = links.slice(1).map(async (token) => road === 'by the API' ? await reset(token) : await form('/account/reset', { token, password: 'the second password' }, FLOOD))
    await waitUntil('every link waits for its hash', async () => kinds.length + await countHashes(kit) >= 56)
    const signIn = form('/account/sign-in', { xsrf, account: 'user-0@example.com', password: 'the first password' }, STRANGER, cookie)
    await waitUntil('the sign-in waits for its hash', async () => kinds.length + await countHashes(kit) >= 57)
    const running = kinds.length
    opened.resolve()
    t.equal((await signIn).statusCode, 303, road)
    t.ok(kinds.indexOf('sign-in') - running <= 1, `${kinds.indexOf('sign-in') - running} links came first, ${road}`)
    t.strictSame(new Set((await Promise.all(uses)).map(({ statusCode }) => statusCode)), new Set([road === 'by the API' ? 204 : 200]), 'every link works')
  }
})

t.test('one address may use 100 links a minute, by whatever road; a refused use spends nothing', async (t) => {
  const { kit, tickets, links, form, reset } = await start(t, 1)
  const roads: Record<string, (token: string, address: string) => Promise<Answer>> = {
    '/auth/reset': reset,
    '/auth/verify': async (token, remoteAddress) => await kit.inject({ method: 'POST', url: '/api/v1/auth/verify', payload: { data: { token } }, remoteAddress }),
    '/auth/undo': async (token, remoteAddress) => await kit.inject({ method: 'POST', url: '/api/v1/auth/undo', payload: { data: { token } }, remoteAddress }),
    ...Object.fromEntries(['/account/reset', '/account/sign-up', '/account/invitation', '/account/verify', '/account/undo', '/api/v1/auth/interaction/unknown/sign-up'].map((path) =>
      [path, async (token: string, address: string) => await form(path, { token, password: 'the second password' }, address)]))
  }
  const names = Object.keys(roads)
  for (let count = 0; count < 100; count++) t.equal((await roads[names[count % names.length]!]!('unknown', FLOOD)).statusCode, 410, `${names[count % names.length]}`)
  // A page shows its form again only for a link of its own purpose.
  const signUp = await tickets.issue({ purpose: 'sign-up', address: 'new@example.com', mailed: true })
  const { user_id } = (await kit.app.identity.users.getByAccount('user-0@example.com'))!
  const invitation = await tickets.issue({ purpose: 'invite', user_id, user_epoch: 0, address: 'user-0@example.com', mailed: true })
  const own: Record<string, string> = { '/account/sign-up': signUp, '/api/v1/auth/interaction/unknown/sign-up': signUp, '/account/invitation': invitation }
  for (const [name, use] of Object.entries(roads)) {
    const refused = await use(own[name] ?? links[0]!, FLOOD)
    t.equal(refused.statusCode, 429, name)
    t.match(refused.headers['retry-after'], /^[1-9]\d*$/, name)
  }
  t.match((await form('/account/reset', { token: links[0]!, password: 'the second password' }, FLOOD)).body, /Too many attempts[^]*name="token"/, 'the form remains')
  t.equal((await reset(links[0]!, STRANGER)).statusCode, 204, 'another address may, and the link was not spent')

  const users = kit.app.identity.store.collection<UserRecord>('users')
  const ann = (await users.getBy('account', 'user-0@example.com'))!
  const verify = await tickets.issue({ purpose: 'verify', user_id: ann.id, user_epoch: ann.epoch, address: ann.account, mailed: true })
  t.equal((await roads['/auth/verify']!(verify, FLOOD)).statusCode, 429)
  kit.clock.advance(60_000)
  const network = (index: number) => `2001:db8:7:${index.toString(16)}::1`
  for (let count = 0; count < 1000; count++) await roads['/auth/undo']!('unknown', network(count % 50))
  t.equal((await roads['/auth/undo']!('unknown', network(99))).statusCode, 429, 'a /48 has ten times as many')
  t.equal((await roads['/auth/undo']!('unknown', FLOOD)).statusCode, 410, 'a minute later it may again')
})

t.test('a second use of a link during the first is refused before it hashes', async (t) => {
  const { users, records, tickets, openAccounts } = await openRules(t)
  const hashes: ((hash: string) => void)[] = []
  const hash = async () => await new Promise<string>((resolve) => hashes.push(resolve))
  const accounts = openAccounts({}, { passwords: { ...PLAIN_PASSWORDS, hash } })
  const { user_id } = await users.create({ data: { account: 'ann@example.com', password: 'p' } })
  const links = {
    reset: await tickets.issue({ purpose: 'reset', user_id, user_epoch: 0, address: 'ann@example.com', mailed: true }),
    'sign-up': await tickets.issue({ purpose: 'sign-up', address: 'new@example.com', mailed: true })
  }
  for (const [purpose, token] of Object.entries(links)) {
    const first = accounts.setPassword(token, 'one')
    await waitUntil('the hash of the first use', () => hashes.length > 0)
    for (let count = 0; count < 3; count++) {
      await t.rejects(accounts.setPassword(token, 'two'), { code: 'ErrBusy', headers: { 'retry-after': '1' } }, purpose)
    }
    t.equal(hashes.length, 1, 'one hash')
    hashes.pop()!(`hash of ${purpose}`)
    t.match(await first, { purpose })
    await t.rejects(accounts.setPassword(token, 'two'), { code: 'ErrTicket' }, 'afterwards it is used')
  }
  t.equal((await records.users.get(user_id))?.password, 'hash of reset')
})
