import fastify from 'fastify'
import t, { type Test } from 'tap'
import { createAccountLimits } from '../../lib/throttling/account-limits.ts'
import { type Count, type Counter, createCounter } from '../../lib/throttling/counter.ts'
import { handleError } from '../../plugins/errors.ts'
import { createSignInLimits } from '../../plugins/sign-in-limit.ts'

const KNOWN = { browser: 'b', user_id: 'u', epoch: 3 }

/** An app that counts an attempt for each request: at the account of the path, at a code, or the beginning of a sign-in. */
async function open (t: Test, counter: Counter, perMinute: number | false = 3) {
  const app = fastify()
  t.teardown(() => app.close())
  app.setErrorHandler(handleError)
  const limits = createSignInLimits(perMinute, counter)
  app.get<{ Params: { account: string } }>('/guess/:account', async (request) => { await limits.guess(request, request.params.account) })
  app.get<{ Params: { account: string } }>('/known/:account', async (request) => { await limits.guess(request, request.params.account, KNOWN) })
  app.get('/code', async (request) => { await limits.guess(request) })
  app.get('/begin', async (request) => { await limits.begin(request) })
  return async (url: string, remoteAddress = '203.0.113.7') => {
    const { statusCode, headers, body } = await app.inject({ url, remoteAddress })
    return { status: statusCode, retryAfter: headers['retry-after'], body }
  }
}

/** A counter with these counts so far. Its calls are recorded in `asked`. */
function createFake (counts: Record<string, number> = {}, ttl = 60_000): { counter: Counter, asked: [kind: string, key: string][] } {
  const asked: [string, string][] = []
  const count = async (kind: string, key: string, window: number): Promise<Count> => {
    asked.push([kind, key])
    return { current: (counts[kind] ?? 0) + 1, ttl: Math.min(ttl, window) }
  }
  return { counter: { count }, asked }
}

t.test('IPv6 addresses are counted by their first 64 bits, as assigned to one connection', async (t) => {
  const { counter, asked } = createFake()
  const send = await open(t, counter)
  for (const ip of ['2001:db8:1:2::1', '2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:3::1']) {
    for (const url of ['/guess/ann', '/code', '/begin']) t.equal((await send(url, ip)).status, 200)
  }
  const keys = (kind: string) => new Set(asked.filter(([name]) => name === kind).map(([, key]) => key.split(' ')[0]))
  for (const kind of ['address', 'guess', 'begin']) t.strictSame([...keys(kind)], ['2001:db8:1:2::/64', '2001:db8:1:3::/64'], kind)
})

t.test('the addresses of a /48 have ten times the limits of one together', async (t) => {
  for (const [kind, most, url] of [['network', 300, '/guess/ann'], ['network', 300, '/code'], ['network-begin', 3000, '/begin']] as const) {
    const { counter, asked } = createFake({ [kind]: most - 1 })
    const send = await open(t, counter)
    for (const ip of ['2001:db8:1:2::1', '2001:db8:1:3::1']) t.equal((await send(url, ip)).status, 200)
    t.strictSame(new Set(asked.filter(([name]) => name === kind).map(([, key]) => key)), new Set(['2001:db8:1::/48']))
    t.equal((await (await open(t, createFake({ [kind]: most }).counter))(url, '2001:db8:1:4::1')).status, 429)
    t.equal((await (await open(t, createFake({ [kind]: most }).counter))(url)).status, 200, 'IPv4 is counted by the address alone')
  }
})

t.test('an account is counted by its hash, in any case', async (t) => {
  const { counter, asked } = createFake()
  const send = await open(t, counter)
  for (const account of ['ann', 'ANN', 'bob']) await send(`/guess/${account}`)
  const keys = asked.filter(([name]) => name === 'guess').map(([, key]) => key)
  t.equal(keys.length, 3)
  t.equal(new Set(keys).size, 2)
  t.notMatch(keys.join(' '), /ann|bob/i)
})

t.test('a known browser is counted with those of its user, at any address', async (t) => {
  const { counter, asked } = createFake()
  const send = await open(t, counter)
  for (const ip of ['203.0.113.7', '2001:db8::1']) t.equal((await send('/known/ann', ip)).status, 200)
  t.strictSame(asked, [['known', 'u 3'], ['known', 'u 3']])
})

t.test('how many of each kind are allowed', async (t) => {
  for (const [kind, most, urls] of [
    ['guess', 3, ['/guess/ann']],
    ['known', 3, ['/known/ann']],
    ['address', 30, ['/guess/ann', '/code']],
    ['begin', 300, ['/begin']]
  ] as const) {
    const all = ['/guess/ann', '/known/ann', '/code', '/begin']
    const allowed = await open(t, createFake({ [kind]: most - 1 }).counter)
    for (const url of all) t.equal((await allowed(url)).status, 200, `${most} of ${kind}, ${url}`)
    const refused = await open(t, createFake({ [kind]: most }, 1_001).counter)
    for (const url of all) t.equal((await refused(url)).status, (urls as readonly string[]).includes(url) ? 429 : 200, `one more of ${kind}, ${url}`)
    t.match(await refused(urls[0]), { retryAfter: '2', body: /too many attempts, try again in 2 s/ })
  }
})

t.test('the limits of an account are opened by its name and by its user, and those of an address stay', async (t) => {
  const counter = createCounter(() => 0)
  const send = await open(t, counter)
  const limits = createAccountLimits({ counter, now: () => 0, isAlone: true })
  const ann = { names: ['Ann'], user_id: 'u' }
  const exhaust = async (url: string): Promise<void> => {
    for (let i = 0; i < 3; i++) t.equal((await send(url)).status, 200)
    t.equal((await send(url)).status, 429)
  }
  for (const url of ['/guess/ann', '/guess/%20user%20u', '/known/ann']) {
    await exhaust(url)
    t.match(await limits.read(ann), { until: String }, url)
    t.match(await limits.open(ann), { until: String }, url)
    t.strictSame(await limits.read(ann), {})
    await exhaust(url)
    await limits.open(ann)
  }
  for (let i = 0; i < 30; i++) await send('/code')
  t.equal((await send('/guess/ann')).status, 429, 'the address')
  await limits.open(ann)
  t.equal((await send('/guess/ann')).status, 429)
})

t.test('without a limit nothing is counted', async (t) => {
  const { counter, asked } = createFake()
  const send = await open(t, counter, false)
  for (const url of ['/guess/ann', '/known/ann', '/code', '/begin']) t.equal((await send(url)).status, 200)
  t.strictSame(asked, [])
})
