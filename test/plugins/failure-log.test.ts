import type { FastifyBaseLogger } from 'fastify'
import t, { type Test } from 'tap'
import { busyError, storeError } from '../../lib/errors.ts'
import { BusyLog, OutageLog, logBackgroundFailure, logOutage } from '../../plugins/failure-log.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { StartOptions } from '../../testing/index.ts'
import { createApp } from '../../testing/kit.ts'
import { askCode, startHarness } from '../oidc/harness.ts'
import { leave, through } from '../upstreams/through.ts'
import { build } from '../helpers/build.ts'
import { wrapStore } from '../helpers/wrap-store.ts'
import { createTimers } from '../helpers/timers.ts'

t.test('refusals are one line in a second, with their number', (t) => {
  const timers = createTimers()
  const lines: unknown[] = []
  const log = { error: (fields: object, message: string) => lines.push({ ...fields, message }) } as unknown as FastifyBaseLogger
  const busy = new BusyLog(timers)
  const refuse = (times: number) => { for (let i = 0; i < times; i++) busy.count(log, busyError('hashes')) }
  const line = (refused: number) => ({ code: 'ErrBusy', refused, message: 'too many hashes are waiting' })
  refuse(500)
  t.same(lines, [line(1)], 'the first at once')
  timers.advance(1000)
  t.same(lines.splice(0), [line(1), line(499)])
  refuse(3)
  timers.advance(999)
  t.same(lines, [])
  timers.advance(1)
  t.same(lines.splice(0), [line(3)])
  timers.advance(1000)
  refuse(1)
  t.same(lines, [line(1)], 'after a quiet second at once again')
  timers.advance(1000)
  t.end()
})

/** A log that keeps its lines, and a store that answers a ping when the test says so. */
function startOutage () {
  const timers = createTimers()
  const lines: object[] = []
  const write = (level: string) => (fields: object, msg: string) => lines.push({ level, ...fields, msg })
  const log = { error: write('error'), warn: write('warn'), debug () {} } as unknown as FastifyBaseLogger
  const store = { isUp: false, async ping () { if (!store.isUp) throw storeError(new Error('down')) } }
  const outages = new OutageLog(log, store, timers)
  const fail = (work: string, error: Error = storeError(new Error('refused'))) => logBackgroundFailure(log, { error, work, outages })
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      timers.advance(1000)
      await new Promise(setImmediate)
    }
  }
  return { lines, store, outages, fail, pass }
}

t.test('an outage of the store is two lines, with the work that failed first and the number of failures', async (t) => {
  const { lines, store, fail, pass } = startOutage()
  fail('mail')
  fail('events', new Error('not published', { cause: storeError(new Error('refused')) }))
  await pass(3)
  fail('webhooks')
  t.match(lines, [{ level: 'error', code: 'ErrDb', work: 'mail', msg: 'the store is unavailable', err: { message: 'refused' } }])
  t.equal(lines.length, 1)
  store.isUp = true
  await pass(1)
  t.match(lines.slice(1), [{ level: 'warn', failures: 3, seconds: 4, msg: 'the store is available again' }])
  await pass(10)
  t.equal(lines.length, 2)
  fail('mail')
  t.equal(lines.length, 3, 'the next outage has lines of its own')
})

t.test('another failure in the background names its work', async (t) => {
  const { lines, fail } = startOutage()
  fail('events', new TypeError('a mistake'))
  t.match(lines, [{ level: 'error', work: 'events', err: { message: 'a mistake' }, msg: 'work in the background failed' }])
})

t.test('an outage of the mail server is two lines, without addresses, links and tokens', (t) => {
  const lines: object[] = []
  const write = (level: string) => (fields: object, msg: string) => lines.push({ level, ...fields, msg })
  const log = { error: write('error'), warn: write('warn') } as unknown as FastifyBaseLogger
  const words = `Can't send mail: 451 4.7.1 <ann@example.com>: see https://mail.example/why?id=1\n${'aB3-'.repeat(11)} smtp://user:secret@mail.example`
  logOutage(log, 'mail', { error: Object.assign(new Error(words), { code: 'EENVELOPE', responseCode: 451 }) })
  logOutage(log, 'mail', { failures: 3, seconds: 60 })
  t.strictSame(lines, [
    { level: 'error', failure: 'EENVELOPE 451', answer: "Can't send mail: 451 4.7.1 *** see *** *** ***", msg: 'the mail server accepts no mail' },
    { level: 'warn', failures: 3, seconds: 60, msg: 'the mail server accepts mails again' }
  ])
  t.end()
})

t.test('nothing is looked for after the close', async (t) => {
  const { lines, store, outages, fail, pass } = startOutage()
  fail('mail')
  outages.close()
  store.isUp = true
  await pass(3)
  t.equal(lines.length, 1)
})

t.test('requests that fail during an outage write no further lines', async (t) => {
  const lines: Record<string, unknown>[] = []
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  let isDown = false
  const fail = () => { if (isDown) throw storeError(new Error('refused')) }
  const store = wrapStore(inner, (_call, run) => {
    fail()
    return run()
  })
  const pinged = new Proxy(store, { get: (target, key) => key === 'ping' ? async () => fail() : Reflect.get(target, key) })
  const { app } = await build(t, { app: createApp({ logger: { level: 'warn', stream: { write: (line: string) => lines.push(JSON.parse(line)) } } }), store: pinged })
  isDown = true
  for (let time = 0; time < 5; time++) t.equal((await app.inject({ url: '/api/v1/user', headers: { authorization: 'Bearer x' } })).statusCode, 503)
  const found = lines.filter(({ msg }) => msg === 'the store is unavailable')
  t.match(found, [{ level: 50, reqId: String, code: 'ErrDb', err: { message: 'refused' } }])
  t.equal(found.length, 1)
})

t.test('the line of an event has the time of the line and that of the event', async (t) => {
  const lines: string[] = []
  const { app } = await build(t, { app: createApp({ logger: { level: 'info', stream: { write: (line: string) => lines.push(line) } } }) })
  await app.identity.bootstrap()
  await app.identity.events.flush?.()
  const line = lines.find((one) => one.includes('"event":"user.created"'))!
  t.match(JSON.parse(line), { level: 30, event: 'user.created', event_id: String, event_time: /^\d{4}-.*Z$/, time: Number })
  t.equal(line.split('"time":').length - 1, 1)
})

/** The lines from level 40 on of an app with its pages, and a reading of its metrics. */
async function openPages (t: Test, options: StartOptions = {}) {
  const lines: Record<string, unknown>[] = []
  const harness = await startHarness(t, { app: createApp({ logger: { level: 'warn', stream: { write: (line: string) => lines.push(JSON.parse(line)) } } }), metrics: '127.0.0.1:0', ...options })
  await harness.kit.app.ready()
  lines.length = 0
  const read = async (pattern: RegExp) => pattern.exec(await (await fetch(harness.kit.app.identity.metrics!.url!)).text())?.[1]
  return { harness, lines, read }
}

t.test('an upstream that is down is one line, whoever comes, and its end another; both are counted', async (t) => {
  const { harness, lines, read } = await openPages(t, { signUp: true, upstream: {} })
  const { kit } = harness
  kit.upstream({ sub: 'ann', email: 'ann@corp.example', email_verified: true })
  kit.upstream.answer = (_request, response) => Boolean(response.writeHead(503).end())
  for (let visit = 0; visit < 20; visit++) t.equal((await harness.browser().open('/api/v1/auth/upstream/test')).response.status, 502)
  t.strictSame(lines.map(({ level, msg, upstream }) => ({ level, msg, upstream })), [{ level: 50, msg: 'an upstream cannot be used', upstream: 'test' }])
  t.match(lines[0], { failure: String, answer: String })
  t.equal(await read(/identity_outages\{kind="upstream"\} (\d+)/), '1')
  t.equal(await read(/identity_sign_ins_total\{outcome="error",method="upstream"\} (\d+)/), '20')
  kit.upstream.answer = null
  const browser = harness.browser()
  await through(browser, '/api/v1/auth/upstream/test')
  t.match(lines.slice(1), [{ level: 40, msg: 'the upstream can be used again', upstream: 'test', failures: 20 }])
  t.equal(lines.length, 2)
  t.equal(await read(/identity_outages\{kind="upstream"\} (\d+)/), '0')
  t.equal(await read(/identity_outages_begun_total\{kind="upstream"\} (\d+)/), '1')
})

t.test('a code that a stranger makes up is no outage', async (t) => {
  const { harness, lines } = await openPages(t, { signUp: true, upstream: {} })
  for (let visit = 0; visit < 3; visit++) {
    const browser = harness.browser()
    const left = await leave(browser, '/api/v1/auth/upstream/test')
    const answer = new URL(left.searchParams.get('redirect_uri')!)
    for (const [name, value] of Object.entries({ code: 'made-up', state: left.searchParams.get('state')!, iss: harness.kit.upstream.issuer })) answer.searchParams.set(name, value)
    t.equal((await browser.open(answer.href)).response.status, 502)
  }
  t.strictSame(lines, [])
})

t.test('the authorization server writes no lines of its own while the store is down', async (t) => {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  let isDown = false
  const fail = () => { if (isDown) throw storeError(new Error('refused')) }
  const wrapped = wrapStore(inner, (_call, run) => {
    fail()
    return run()
  })
  const store = new Proxy(wrapped, { get: (target, key) => key === 'ping' ? async () => fail() : Reflect.get(target, key) })
  const { harness, lines } = await openPages(t, { store })
  const app = await harness.register()
  isDown = true
  for (let time = 0; time < 10; time++) {
    t.equal((await harness.post('token', { grant_type: 'client_credentials' }, app)).status, 503)
    await harness.browser().open(askCode(app).url)
  }
  t.strictSame([...new Set(lines.map(({ msg }) => msg))], ['the store is unavailable'])
  t.equal(lines.length, 1)
})
