import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Webhook } from 'standardwebhooks'
import { callFunctions, callUrl } from '../../lib/lazy-migration/call.ts'
import { createQuestions } from '../../lib/lazy-migration/questions.ts'
import type { Turn } from '../../lib/fair-queue.ts'
import { createOutbound } from '../../lib/outbound/fetcher.ts'
import { createApp } from '../../testing/kit.ts'
import { startIdentity } from '../../testing/index.ts'
import { importLines } from '../helpers/import.ts'
import { waitUntil } from '../helpers/wait.ts'

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
const PASSWORD = 'the-secret-that-was-typed'

/** People whom an import has marked. */
const PEOPLE = ['ann', 'bob', 'cy']

/** A turn of the network of a person. */
const networkOf = (account: string): Turn => ({ group: `network of ${account}` })

interface Asked { headers: IncomingHttpHeaders, body: string }

/** A former system on a port of its own. */
async function startFormer (t: Test, answer: (response: ServerResponse, asked: Asked) => void) {
  const asked: Asked[] = []
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    let body = ''
    for await (const part of request.setEncoding('utf8')) body += String(part)
    asked.push({ headers: request.headers, body })
    answer(response, asked.at(-1)!)
  }
  const server = createServer((request, response) => { void receive(request, response) }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/verify` }
}

const send = (response: ServerResponse, body: unknown) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body))

/** The service with a log, and the people. */
async function startService (t: Test, migrate: object) {
  let log = ''
  const app = createApp({ logger: { level: 'trace', stream: { write: (line: string) => { log += line } } } })
  const kit = await startIdentity({ t, app, migrate, metrics: '127.0.0.1:0' })
  await kit.listen()
  await importLines(kit.app.identity, PEOPLE.map((account) => ({ account })), { lazy: true })
  const { users } = kit.app.identity
  const verify = async (account: string, password = PASSWORD) => await users.verify(account, password)
  /** Whether these people, each from a network of their own, are in. */
  const enter = async (accounts: readonly string[]) => await Promise.all(accounts.map(async (account) => await users.signIn(account, PASSWORD, networkOf(account)) !== null))
  const measure = async () => await (await fetch(kit.app.identity.metrics!.url!)).text()
  return { kit, verify, enter, measure, readLog: () => log }
}

t.test('a question is signed, and its answer decides', async (t) => {
  const { asked, url } = await startFormer(t, (response, { body }) => send(response, { ok: (JSON.parse(body) as { password: string }).password === PASSWORD }))
  const { kit, verify, measure, readLog } = await startService(t, { url, secret: SECRET })
  t.equal(await verify('ann', 'wrong'), null)
  t.match(await verify('ANN'), { account: 'ann' })
  const [, { headers, body }] = asked as [Asked, Asked]
  t.strictSame(new Webhook(SECRET).verify(body, headers as Record<string, string>), { type: 'password', account: 'ann', password: PASSWORD })
  t.throws(() => new Webhook(SECRET).verify(body.replace('ann', 'bob'), headers as Record<string, string>))
  t.match(headers, { 'content-type': 'application/json', 'user-agent': /^fastify-identity\// })
  t.match(await measure(), /identity_former_system_questions_total\{outcome="right"\} 1\n.*identity_former_system_resting 0/s)
  const events = JSON.stringify(await kit.events.list())
  for (const text of [readLog(), events]) t.notOk(text.includes(PASSWORD) || text.includes(SECRET))
  t.match(events, 'user.migrated')
})

const FAILURES: Record<string, { answer: (response: ServerResponse) => unknown, because: string }> = {
  'a 500': { answer: (response) => send(Object.assign(response, { statusCode: 500 }), { ok: true }), because: 'status 500' },
  'a 201': { answer: (response) => response.writeHead(201, { 'content-type': 'application/json' }).end('{"ok":true}'), because: 'status 201' },
  'a redirect': { answer: (response) => response.writeHead(307, { location: '/verify?2' }).end(), because: 'status 307' },
  'another type': { answer: (response) => response.setHeader('content-type', 'text/html').end('{"ok":true}'), because: 'an answer that is not application/json' },
  'text that is not JSON': { answer: (response) => response.setHeader('content-type', 'application/json').end('true, '), because: 'an answer that is not JSON' },
  'no verdict': { answer: (response) => send(response, { ok: 'true' }), because: 'an answer without ok' },
  'an answer of 1 MB': { answer: (response) => send(response, { ok: true, name: 'x'.repeat(1_000_000) }), because: 'ETOOLARGE' },
  'a connection that is cut': { answer: (response) => response.destroy(), because: 'ECONNRESET' },
  'a slow answer': { answer: (response) => { response.writeHead(200, { 'content-type': 'application/json' }).write('{"ok":') }, because: 'no answer in time' }
}

t.test('anything else is no answer, and the system is left alone for 30 s after three people of three networks got none', async (t) => {
  for (const [name, { answer, because }] of Object.entries(FAILURES)) {
    await t.test(name, async (t) => {
      let isBroken = true
      const { asked, url } = await startFormer(t, (response) => {
        if (isBroken) answer(response)
        else send(response, { ok: true })
      })
      const { kit, verify, enter, measure, readLog } = await startService(t, { url, secret: SECRET })
      const start = performance.now()
      t.strictSame(await enter(PEOPLE), [false, false, false])
      t.ok(performance.now() - start < 10_000)
      const before = asked.length
      isBroken = false
      t.equal(await verify('ann'), null)
      t.equal(await verify('bob'), null)
      t.equal(asked.length, before, 'nobody is asked about')
      t.match(await measure(), /questions_total\{outcome="failed"\} 3\n.*outcome="resting"\} 2\n.*former_system_resting 1/s)
      kit.clock.advance(30_000)
      t.match(await verify('ann'), { account: 'ann' })
      const warnings = readLog().split('\n').filter((line) => line.includes('old system'))
      t.equal(warnings.length, 1)
      t.match(warnings[0], because)
      t.notOk(readLog().includes(PASSWORD))
      t.notMatch(warnings[0], /\bann\b/)
    })
  }
})

t.test('a status about one account is a no, and keeps nobody else from moving', async (t) => {
  let status = 0
  const { asked, url } = await startFormer(t, (response, { body }) => {
    if ((JSON.parse(body) as { account: string }).account === 'ann') send(Object.assign(response, { statusCode: status }), { ok: true })
    else send(response, { ok: false })
  })
  const { verify, measure, readLog } = await startService(t, { url, secret: SECRET })
  const statuses = [404, 409, 422, 423, 429]
  for (status of statuses) {
    t.equal(await verify('ann'), null, `${status}`)
    const before = asked.length
    t.equal(await verify('bob', 'wrong'), null)
    t.equal(asked.length, before + 1, 'the next one is asked about')
  }
  t.match(await measure(), /questions_total\{outcome="wrong"\} 10\n.*former_system_resting 0/s)
  t.notMatch(readLog(), /old system gave no answer/)
  for (status of [401, 403, 400, 500]) {
    const other = await startService(t, { url, secret: SECRET })
    t.equal(await other.verify('ann'), null)
    t.match(await other.measure(), /outcome="failed"\} 1\n.*former_system_resting 0/s, `${status} is a fault`)
  }
})

t.test('an error of a function is not shown, and one that hangs is given up', async (t) => {
  let asking: AbortSignal | undefined
  const { enter, readLog } = await startService(t, {
    verify (account: string, password: string, { signal }: { signal: AbortSignal }) {
      asking = signal
      return account === 'bob' ? new Promise(() => {}) : Promise.reject(new Error(`no row for ${password}`))
    }
  })
  const start = performance.now()
  t.strictSame(await enter(['bob']), [false])
  t.ok(performance.now() - start < 10_000)
  t.equal(asking?.aborted, true, 'its signal tells it')
  t.strictSame(await enter(['ann', 'cy']), [false, false])
  t.notOk(readLog().includes(PASSWORD))
  t.match(readLog(), 'an error of the function')
})

t.test('of what functions return, only true and a person are a yes', async (t) => {
  const answers: [answer: unknown, isRight: boolean][] = [
    [true, true], [{}, true], [{ name: 'Ann' }, true], [{ ok: true }, true],
    [false, false], [null, false], [undefined, false], ['', false], ['yes', false], [0, false], [1, false], [[], false], [[{ id: '7' }], false],
    [{ ok: false }, false], [{ ok: 'true' }, false], [{ ok: null, name: 'Ann' }, false]
  ]
  for (const [answer, isRight] of answers) {
    const give = () => answer as never
    const { ask } = createQuestions({ put: callFunctions({ verify: give, find: give }), now: Date.now, onWarning: () => {} })
    t.equal((await ask({ type: 'password', account: 'ann', password: PASSWORD }))?.ok ?? false, isRight, `verify: ${JSON.stringify(answer)}`)
    t.equal((await ask({ type: 'account', account: 'ann' }))?.ok ?? false, isRight, `find: ${JSON.stringify(answer)}`)
  }
  const { verify } = await startService(t, { verify: () => null, create: true })
  for (const account of ['ann', 'nobody']) t.equal(await verify(account), null, account)
})

t.test('a name that leads inside is not called', async (t) => {
  const outbound = createOutbound({ allow: [], resolve: async () => [{ address: '10.0.0.1', family: 4 }] })
  t.teardown(async () => await outbound.close())
  const warnings: string[] = []
  const put = callUrl({ url: 'https://login.example/verify', secret: SECRET }, outbound.read, Date.now)
  const { ask } = createQuestions({ put, now: Date.now, onWarning: (text) => warnings.push(text) })
  for (const account of PEOPLE) t.equal(await ask({ type: 'password', account, password: PASSWORD }, networkOf(account)), null)
  t.match(warnings, [/EREFUSED/])
})

t.test('twenty questions are put at once, and the others wait', async (t) => {
  let [running, most] = [0, 0]
  const { ask } = createQuestions({
    async put () {
      most = Math.max(most, ++running)
      await new Promise(setImmediate)
      running--
      return { ok: false }
    },
    now: Date.now,
    onWarning: (text) => t.fail(text)
  })
  const answers = await Promise.all(Array.from({ length: 300 }, async () => await ask({ type: 'account', account: 'ann' })))
  t.equal(most, 20)
  t.equal(answers.filter((answer) => answer === null).length, 80, 'and only so many wait')
})

t.test('a question that waits is not put once the former system is left alone', async (t) => {
  const putting: PromiseWithResolvers<never>[] = []
  const { ask } = createQuestions({
    put: async () => {
      const answer = Promise.withResolvers<never>()
      putting.push(answer)
      return await answer.promise
    },
    now: Date.now,
    onWarning: () => {}
  })
  const answers = Promise.all(Array.from({ length: 25 }, async (_, index) => await ask({ type: 'account', account: `${index}` }, networkOf(`${index}`))))
  await waitUntil('twenty questions are put', () => putting.length === 20)
  for (const { reject } of putting) reject(new Error('down'))
  t.strictSame([...new Set(await answers)], [null])
  t.equal(putting.length, 20)
})

t.test('one account, or one network, does not make the system rest for everybody', async (t) => {
  let isBroken = (_account: string) => true
  const warnings: string[] = []
  const { ask, isResting } = createQuestions({
    put: async ({ account }) => {
      if (isBroken(account)) throw new Error('down')
      return { ok: false }
    },
    now: Date.now,
    onWarning: (text) => warnings.push(text)
  })
  const put = async (account: string, network: string) => await ask({ type: 'account', account }, { group: network })
  for (let network = 0; network < 200; network++) await put('ann', `${network}`)
  t.notOk(isResting(), 'one account, from two hundred networks')
  isBroken = (account) => account !== 'bob'
  t.strictSame(await put('bob', 'of bob'), { ok: false }, 'and somebody else is asked about')
  for (let account = 0; account < 200; account++) await put(`${account}`, 'one')
  t.notOk(isResting(), 'two hundred accounts, from one network')
  await put('x', 'two')
  await put('bob', 'of bob')
  await put('y', 'three')
  t.notOk(isResting(), 'an answer shows that the system is there')
  t.strictSame(warnings, [])
  await put('z', 'four')
  await put('zz', 'five')
  t.ok(isResting(), 'three accounts from three networks')
  t.equal(warnings.length, 1)
})

t.test('networks take turns, so that one which fills the queue keeps nobody from moving', async (t) => {
  const putting: { account: string, answer: PromiseWithResolvers<{ ok: boolean }> }[] = []
  const { ask } = createQuestions({
    put: async ({ account }) => {
      const answer = Promise.withResolvers<{ ok: boolean }>()
      putting.push({ account, answer })
      return await answer.promise
    },
    now: Date.now,
    onWarning: (text) => t.fail(text)
  })
  const flood = Array.from({ length: 220 }, async (_, index) => await ask({ type: 'account', account: `made up ${index}` }, { key: `${index % 8}`, group: 'one' }))
  await waitUntil('twenty questions are put', () => putting.length === 20)
  const person = ask({ type: 'account', account: 'ann' }, { group: 'two' })
  // Its last turn may have been a moment ago, so that another one may come first.
  for (const { answer } of putting.slice(0, 2)) answer.resolve({ ok: false })
  await waitUntil('the person is asked about', () => putting.some(({ account }) => account === 'ann'))
  t.ok(putting.length <= 22)
  for (let index = 0; index < putting.length; index++) {
    putting[index]!.answer.resolve({ ok: false })
    await new Promise(setImmediate)
  }
  t.match(await person, { ok: false })
  t.equal((await Promise.all(flood)).filter((answer) => answer === null).length, 1, 'the last of the network that has most gives its place')
})

t.test('a refusal takes as long for somebody who is here as for somebody who is asked about', async (t) => {
  const { verify, kit } = await startService(t, { verify: async () => { await sleep(120); return false }, create: true })
  await kit.mint({ user: 'cara' })
  await kit.app.identity.users.create({ data: { account: 'dora', password: 'something else' } })
  await verify('nobody')
  for (const account of ['nobody', 'ann', 'cara', 'dora', 'no account!', 'n'.repeat(30)]) {
    const start = performance.now()
    t.equal(await verify(account), null)
    t.ok(performance.now() - start > 100, account)
  }
})

t.test('wrong options are named at the start', async (t) => {
  const url = 'https://login.example/verify'
  const verify = () => true
  for (const [migrate, message] of [
    [{ create: true }, 'option migrate: needs url or verify, and not both'],
    [{ url, verify, secret: SECRET }, 'option migrate: needs url or verify, and not both'],
    [{ url }, 'option migrate.secret: is required with url'],
    [{ verify, secret: SECRET }, 'option migrate.url: is required with secret'],
    [{ url, secret: 'whsec_short' }, 'option migrate.secret: must be whsec_ and 24 to 64 bytes in base64'],
    [{ url: 'http://login.example', secret: SECRET }, 'option migrate.url: must be an https URL'],
    [{ url: 'https://10.0.0.1', secret: SECRET }, 'option migrate.url: must be a public address'],
    [{ verify: 'yes' }, 'option migrate.verify: must be a function'],
    [{ url, secret: SECRET, find: verify }, 'option migrate.find: must be a function beside verify'],
    [{ verify, until: 'next year' }, 'option migrate.until: must be a date and time of RFC 3339']
  ] as const) await t.rejects(startIdentity({ t, migrate: migrate as never }), { message })
})
