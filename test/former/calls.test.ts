import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Webhook } from 'standardwebhooks'
import { callFunctions, callUrl } from '../../lib/former/call.ts'
import { createQuestions } from '../../lib/former/questions.ts'
import { createOutbound } from '../../lib/outbound/fetcher.ts'
import { createApp } from '../../testing/kit.ts'
import { startIdentity } from '../../testing/index.ts'
import { importLines } from '../helpers/import.ts'
import { waitUntil } from '../helpers/wait.ts'

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
const PASSWORD = 'the-secret-that-was-typed'

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

/** The service with a log, and somebody whom an import has marked. */
async function startService (t: Test, migrate: object) {
  let log = ''
  const app = createApp({ logger: { level: 'trace', stream: { write: (line: string) => { log += line } } } })
  const kit = await startIdentity({ t, app, migrate, metrics: '127.0.0.1:0' })
  await kit.listen()
  await importLines(kit.app.identity, ['ann', 'bob'].map((account) => ({ account })), { lazy: true })
  const verify = async (account: string, password = PASSWORD) => await kit.app.identity.users.verify(account, password)
  const measure = async () => await (await fetch(kit.app.identity.metrics!.url!)).text()
  return { kit, verify, measure, readLog: () => log }
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

t.test('anything else is no answer, and the system is left alone for 30 s', async (t) => {
  for (const [name, { answer, because }] of Object.entries(FAILURES)) {
    await t.test(name, async (t) => {
      let isBroken = true
      const { asked, url } = await startFormer(t, (response) => {
        if (isBroken) answer(response)
        else send(response, { ok: true })
      })
      const { kit, verify, measure, readLog } = await startService(t, { url, secret: SECRET })
      const start = performance.now()
      t.equal(await verify('ann'), null)
      t.ok(performance.now() - start < 10_000)
      const before = asked.length
      isBroken = false
      t.equal(await verify('ann'), null)
      t.equal(await verify('bob'), null)
      t.equal(asked.length, before, 'nobody is asked about')
      t.match(await measure(), /questions_total\{outcome="failed"\} 1\n.*outcome="resting"\} 2\n.*former_system_resting 1/s)
      kit.clock.advance(30_000)
      t.match(await verify('ann'), { account: 'ann' })
      const warnings = readLog().split('\n').filter((line) => line.includes('former system'))
      t.equal(warnings.length, 1)
      t.match(warnings[0], because)
      t.notOk(readLog().includes(PASSWORD))
      t.notMatch(warnings[0], /\bann\b/)
    })
  }
})

t.test('an error of a function is not shown, and one that hangs is given up', async (t) => {
  let asking: AbortSignal | undefined
  const { kit, verify, readLog } = await startService(t, {
    verify (account: string, password: string, { signal }: { signal: AbortSignal }) {
      asking = signal
      return account === 'ann' ? Promise.reject(new Error(`no row for ${password}`)) : new Promise(() => {})
    }
  })
  t.equal(await verify('ann'), null)
  kit.clock.advance(30_000)
  const start = performance.now()
  t.equal(await verify('bob'), null)
  t.ok(performance.now() - start < 10_000)
  t.equal(asking?.aborted, true, 'its signal tells it')
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
  t.equal(await ask({ type: 'password', account: 'ann', password: PASSWORD }), null)
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
  const answers = Promise.all(Array.from({ length: 25 }, async () => await ask({ type: 'account', account: 'ann' })))
  await waitUntil('twenty questions are put', () => putting.length === 20)
  for (const { reject } of putting) reject(new Error('down'))
  t.strictSame([...new Set(await answers)], [null])
  t.equal(putting.length, 20)
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
