import t, { type Test } from 'tap'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { type DeliveryRecord, type Draft, type Job, createContents } from '../../lib/mail/delivery.ts'
import { createOutbox } from '../../lib/mail/outbox.ts'
import type { Mail } from '../../lib/mail/port.ts'
import { createSmtp, findSender, parseMailUrl } from '../../lib/mail/smtp.ts'
import { quoteFailure } from '../../lib/work/failure.ts'
import { type Ended, Outage } from '../../lib/work/outage.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Store } from '../../lib/store/port.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { generateId } from '../../lib/ids.ts'
import { createTestClock } from '../../testing/clock.ts'
import { alter } from '../helpers/alter.ts'
import { Scheduler, exhaust } from '../helpers/scheduler.ts'
import { startSmtp } from '../helpers/smtp.ts'
import { advanceTo, createTimers } from '../helpers/timers.ts'
import { waitUntil } from '../helpers/wait.ts'
import { openRules } from '../helpers/services.ts'
import { type Around, wrapStore } from '../helpers/wrap-store.ts'
import { SILENT_RECORDER } from '../helpers/events.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const box = createSecretBox(generateSecretKey())

const draftOf = ({ to }: Job): Draft => ({ to: String(to), subject: 'A subject', text: 'A text.\n', html: '<p>A text.</p>\n' })

async function open (t: Test, { around = (_call, run) => run() }: { around?: Around } = {}) {
  const clock = createTestClock()
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => inner.close())
  const errors: unknown[] = []
  const failed: string[] = []
  const records = inner.collection<DeliveryRecord>('deliveries')
  return {
    clock,
    errors,
    failed,
    records,
    /** A mail that no process has begun to send. */
    async add (to: string, life = HOUR): Promise<DeliveryRecord> {
      const id = generateId(clock.now())
      const [time, end] = [toTimestamp(clock.now()), toTimestamp(clock.now() + life)]
      const record: DeliveryRecord = {
        id, kind: 'test', state: 'due', due_at: time, set_at: time, claim: 0, attempts: 0, ends_at: end, created_at: time, expired_at: end, sealed: createContents(box).seal(id, { job: { kind: 'test', to } })
      }
      await records.insert(record)
      return record
    },
    /** A process. */
    start (mail: Mail, parts: { compose?: (job: Job) => Promise<Draft>, store?: Store, outage?: Outage, now?: () => number } = {}) {
      const timers = createTimers()
      const listeners: ((record: DeliveryRecord) => void)[] = []
      const outbox = createOutbox({
        store: wrapStore(inner, around),
        now: clock.now,
        box,
        recorder: SILENT_RECORDER,
        mail,
        host: () => 'id.example.com',
        compose: async (job) => draftOf(job),
        onError: (error) => { errors.push(error) },
        onFailed: ({ failure }) => { failed.push(failure) },
        acceptance: { listen: (listener) => { listeners.push(listener) } },
        timers,
        ...parts
      })
      t.teardown(() => outbox.close())
      return { ...outbox, timers, /** Makes it begin to send a mail. */ release: (record: DeliveryRecord) => listeners.forEach((listener) => listener(record)) }
    }
  }
}

t.test('a mail is sent at once, by SMTP, with its Message-ID, sender, text and HTML; then nothing is left', async (t) => {
  const { start, records } = await open(t)
  const server = await startSmtp(t, { authOptional: true })
  const outbox = start(createSmtp(`smtp://127.0.0.1:${server.port}`, 'Example <id@example.com>'))
  await outbox.enqueue({ kind: 'test', to: 'ann@example.com' }, HOUR)
  t.equal(await records.count(), 1, 'durable before it is sent')
  await outbox.settle()
  t.match(server.received, [{ id: /^<[0-9A-Za-z]{34}@id\.example\.com>$/, from: 'id@example.com', to: 'ann@example.com', subject: 'A subject', text: 'A text.\n', html: /<p>A text\.<\/p>/ }])
  t.equal(await records.count(), 0)
})

t.test('pending mails are sealed', async (t) => {
  const { start, records } = await open(t)
  const outbox = start({ send: async () => { throw new Error('down') } })
  await outbox.enqueue({ kind: 'test', to: 'ann@example.com' }, HOUR)
  await outbox.settle()
  for await (const [record] of records.stream()) t.notMatch(JSON.stringify(record), /ann|A text/)
})

t.test('credentials are sent over TLS only, which a self-signed certificate does not make', async (t) => {
  const { start, failed, records } = await open(t)
  const server = await startSmtp(t, { onAuth: ({ username, password }, _session, done) => done(null, username === 'user' && password === 'wörd' ? { user: 'user' } : undefined) })
  const outbox = start(createSmtp(`smtp://user:w%C3%B6rd@127.0.0.1:${server.port}`, 'id@example.com'))
  await outbox.enqueue({ kind: 'test', to: 'ann@example.com' }, HOUR)
  await outbox.settle()
  t.same(server.received, [], 'the server offers STARTTLS with a certificate of nobody')
  t.same(failed, [])
  for await (const [record] of records.stream()) t.match(record, { state: 'due', attempts: 1 }, 'a mistake of the configuration: it waits')
})

t.test('the URL and the sender of mails', async (t) => {
  t.strictSame(parseMailUrl('smtps://u%40x:p%3A@mail.example.com'), { host: 'mail.example.com', port: 465, secure: true, auth: { user: 'u@x', pass: 'p:' } })
  t.strictSame(parseMailUrl('smtp://[::1]:2525/'), { host: '::1', port: 2525, secure: false })
  for (const url of ['mail.example.com', 'http://mail', 'smtp://', 'smtp://mail/path', 'smtp://mail?x=1', 'smtp://u:%zz@mail']) t.throws(() => parseMailUrl(url), Error, url)
  t.equal(findSender('Example Inc. <id@example.com>'), null, 'a dot needs quotes')
  t.equal(findSender('"Example Inc." <id@example.com>'), 'id@example.com')
  t.equal(findSender('Überall <id@example.com>'), 'id@example.com')
  for (const from of ['', 'id', 'a <b', 'x\r\nBcc: y@z.example <id@example.com>', '"x\ny" <id@example.com>', 'a@b.example, c@d.example']) t.equal(findSender(from), null, from)
})

t.test('4xx is tried again after 1, 5, 30, 120 and 360 minutes with the same Message-ID, and 5xx is final at once', async (t) => {
  const { start, clock, failed, records } = await open(t)
  const server = await startSmtp(t, { authOptional: true, reply: (to, attempt) => to.startsWith('never') ? 451 : to.startsWith('no') ? 550 : attempt < 3 ? 421 : 0 })
  const outbox = start(createSmtp(`smtp://127.0.0.1:${server.port}`, 'id@example.com'))
  for (const to of ['late@example.com', 'nobody@example.com', 'never@example.com', 'fine@example.com']) await outbox.enqueue({ kind: 'test', to }, 24 * HOUR)
  await outbox.settle()
  t.same(failed, ['EENVELOPE 550'])
  for (const [minutes, sent] of [[1, 0], [5, 2], [30, 2], [120, 2], [360, 2]] as const) {
    clock.advance(minutes * MINUTE - 1)
    const before = server.attempts.get('never@example.com')
    await outbox.flush()
    t.equal(server.attempts.get('never@example.com'), before, `not before ${minutes} minutes`)
    clock.advance(1)
    await outbox.flush()
    t.equal(server.received.length, sent, `after ${minutes} minutes`)
  }
  t.equal(server.attempts.get('never@example.com'), 6)
  t.same(failed, ['EENVELOPE 550', 'EENVELOPE 451'])
  clock.advance(24 * HOUR)
  await outbox.flush()
  t.equal(server.attempts.get('never@example.com'), 6, 'final')
  t.equal(await records.count({ equal: { state: 'failed' } }), 2)
})

t.test('an outage of the mail server is told once, with its words, and its end; a refusal of one mail is none', async (t) => {
  const { start } = await open(t)
  let answer: number | 'hang' = 0
  const server = await startSmtp(t, { authOptional: true, reply: () => answer })
  const told: (string | Ended)[] = []
  const timers = createTimers()
  const outage = new Outage({ onBegin: (error) => told.push(quoteFailure(error)), onEnd: (ended) => told.push(ended), timers })
  const mail = createSmtp(`smtp://127.0.0.1:${server.port}`, 'id@example.com')
  const outbox = start(mail, { outage })
  const send = async (count: number) => {
    for (let sent = 0; sent < count; sent++) await outbox.enqueue({ kind: 'test', to: 'ann@example.com' }, HOUR)
    await outbox.settle()
  }
  await send(2)
  answer = 550
  await send(2)
  t.strictSame(told, [])
  // As a server does that asks to come later, in words that name the recipient.
  answer = 450
  await send(3)
  timers.advance(10_000)
  await send(2)
  t.equal(told.length, 1)
  t.match(told[0], /450 refused \*\*\*/)
  t.notMatch(told[0], /ann/)
  answer = 0
  await send(3)
  t.strictSame(told.slice(1), [{ failures: 5, seconds: 10 }])
  // Another kind: nobody listens.
  timers.advance(MINUTE)
  const down = start(createSmtp('smtp://127.0.0.1:1', 'id@example.com'), { outage })
  await down.enqueue({ kind: 'test', to: 'ann@example.com' }, HOUR)
  await down.settle()
  t.match(told[2], /ECONNREFUSED/)
  await send(1)
  t.equal(told.length, 4)
})

t.test('an attempt that the close of the process aborts is no outage', async (t) => {
  const { start } = await open(t)
  const told: unknown[] = []
  const outbox = start({ send: async () => await new Promise<never>(() => {}) }, { outage: new Outage({ onBegin: (error) => told.push(error), onEnd: () => {} }) })
  await outbox.enqueue({ kind: 'test', to: 'ann@example.com' }, HOUR)
  await advanceTo(outbox.timers, 'the close of the outbox', outbox.close())
  t.strictSame(told, [])
})

t.test('no mail is sent twice by two processes whose clocks differ by half a minute, while one hangs', async (t) => {
  for (const ahead of [-30_000, 30_000]) {
    const { clock, start, records } = await open(t)
    const sent: string[] = []
    const accepted = Promise.withResolvers<void>()
    const slow = start({ send: async ({ id }) => { await accepted.promise; sent.push(id) } })
    const other = start({ send: async ({ id }) => { sent.push(id) } }, { now: () => clock.now() + ahead })
    other.start()
    await slow.enqueue({ kind: 'test', to: 'ann@example.com' }, HOUR)
    await waitUntil('the claim', async () => await records.count({ equal: { leased: true } }) === 1)
    for (let second = 0; second < 50; second++) {
      clock.advance(1_000)
      slow.timers.advance(1_000)
      other.timers.advance(1_000)
      await new Promise((resolve) => { setTimeout(resolve, 1) })
    }
    t.strictSame(sent, [])
    accepted.resolve()
    await slow.settle()
    await other.flush()
    t.equal(sent.length, 1)
    t.equal(await records.count(), 0)
  }
})

/** An outbox with one mail that the host's own `send` hangs with, and the signals that this was given. */
async function openHanging (t: Test) {
  const { start, records, clock } = await open(t)
  const signals: AbortSignal[] = []
  const outbox = start({
    send: async (_message, { signal }) => {
      signals.push(signal)
      await new Promise(() => {})
    }
  })
  await outbox.enqueue({ kind: 'test', to: 'ann@example.com' }, HOUR)
  await waitUntil('the mail is sent', () => signals.length === 1)
  return { outbox, signals, records, clock }
}

t.test('a mail that the host\'s own `send` hangs with is given up after a minute, and its signal aborts', async (t) => {
  const { outbox, signals, records, clock } = await openHanging(t)
  outbox.timers.advance(MINUTE - 1)
  t.strictSame(signals.map(({ aborted }) => aborted), [false])
  outbox.timers.advance(1)
  t.strictSame(signals.map(({ aborted }) => aborted), [true])
  await outbox.settle()
  const [[record]] = await Array.fromAsync(records.stream()) as [[DeliveryRecord]]
  t.match(record, { state: 'due', attempts: 1, due_at: new Date(clock.now() + MINUTE).toISOString() })
})

t.test('a test mail that the host\'s own `send` hangs with ends with its signal', async (t) => {
  const { openAccounts } = await openRules(t)
  const ending = new AbortController()
  const sending = openAccounts({ mail: { local: true, send: async () => await new Promise(() => {}) } }).sendTest('ann@example.com', ending.signal)
  ending.abort(new Error('the command has ended'))
  await t.rejects(sending, { message: 'the command has ended' })
})

t.test('no attempt is made when the link has expired', async (t) => {
  const { start, clock, failed } = await open(t)
  let sent = 0
  const outbox = start({ send: async () => { sent++; throw new Error('down') } })
  await outbox.enqueue({ kind: 'test', to: 'ann@example.com' }, 4 * MINUTE)
  await outbox.settle()
  clock.advance(MINUTE)
  await outbox.flush()
  t.same([sent, failed], [2, ['ERROR']], 'the third would be too late')
})

t.test('mails that hang take one slot each, the others are sent, and close ends them', async (t) => {
  const { start, records } = await open(t)
  const server = await startSmtp(t, { authOptional: true, reply: (to) => to.startsWith('hang') ? 'hang' : 0 })
  const outbox = start(createSmtp(`smtp://127.0.0.1:${server.port}`, 'id@example.com'))
  for (const to of ['hang1', 'hang2', 'hang3', 'ann', 'bob']) await outbox.enqueue({ kind: 'test', to: `${to}@example.com` }, HOUR)
  while (server.received.length < 2) await server.arrival()
  t.same(server.received.map(({ to }) => to), ['ann@example.com', 'bob@example.com'])
  await advanceTo(outbox.timers, 'the close of the outbox', outbox.close())
  t.equal(await records.count({ equal: { state: 'due' } }), 3, 'they are tried again when their lease is over')
})

t.test('the close of the outbox aborts a mail that the host\'s own `send` hangs with, and half a minute passes before it is sent again', async (t) => {
  const { outbox, signals, records, clock } = await openHanging(t)
  await advanceTo(outbox.timers, 'the close of the outbox', outbox.close())
  t.strictSame(signals.map(({ aborted }) => aborted), [true])
  const [[record]] = await Array.fromAsync(records.stream()) as [[DeliveryRecord]]
  t.match(record, { state: 'due', due_at: new Date(clock.now() + MINUTE / 2).toISOString() })
})

t.test('a mail that cannot be unsealed, or that kills its process, is final and blocks no other', async (t) => {
  const { start, add, clock, failed, records } = await open(t)
  const sent: string[] = []
  const outbox = start({ send: async ({ to }) => { sent.push(to) } })
  const altered = await add('ann@example.com')
  outbox.release((await records.update(altered.id, { set: { sealed: alter(altered.sealed!) } }))!)
  await outbox.enqueue({ kind: 'test', to: 'bob@example.com' }, HOUR)
  await outbox.settle()
  t.same([sent, failed], [['bob@example.com'], ['UNREADABLE']])
  outbox.release((await records.update((await add('carl@example.com')).id, { set: { attempts: 6 } }))!)
  await outbox.settle()
  t.same(failed, ['UNREADABLE', 'INTERRUPTED'])
  clock.advance(1)
})

t.test('at most 10,000 are due', async (t) => {
  const { start, records } = await open(t)
  const outbox = start({ send: async () => { throw new Error('down') } })
  await outbox.enqueue({ kind: 'test', to: 'ann@example.com' }, HOUR)
  t.equal(await records.count(), 1)
  const full = start({ send: async () => {} }, { store: new Proxy({} as Store, { get: () => () => ({ count: async () => 10_000, insert: async () => t.fail('it is full') }) }) })
  await t.rejects(full.enqueue({ kind: 'test', to: 'ann@example.com' }, HOUR), { code: 'ErrBusy' })
})

/** A mail server that takes mails one by one. */
function createSlow () {
  const waiting: { to: string, take: () => void }[] = []
  const sent: string[] = []
  return {
    sent,
    waiting,
    send: async ({ to }: { to: string }) => {
      await new Promise<void>((resolve) => waiting.push({ to, take: resolve }))
      sent.push(to)
    },
    /** Takes as many mails, each when it is offered. */
    async take (count: number) {
      const most = sent.length + count
      for (let taken = 0; taken < count; taken++) (await waitUntil('a mail is offered', () => waiting.shift())).take()
      await waitUntil('they are sent', () => sent.length >= most)
    }
  }
}

t.test('networks take turns for the mails that strangers ask for, and what nobody has asked for so does not wait for them', async (t) => {
  const { start } = await open(t)
  const slow = createSlow()
  const outbox = start({ send: slow.send })
  const ask = async (network: string, to = network) => await outbox.enqueue({ kind: 'test', to }, HOUR, { network })
  for (let index = 0; index < 50; index++) await ask('192.0.2.1')
  await waitUntil('strangers have four slots', () => slow.waiting.length === 4)
  for (const network of ['198.51.100.1', '2001:db8:1::/48', '2001:db8:2::/48']) for (let index = 0; index < 2; index++) await ask(network)
  await outbox.enqueue({ kind: 'test', to: 'own', user_id: 'ann' }, HOUR)
  await waitUntil('the fifth is of others', () => slow.waiting.length === 5)
  t.strictSame(slow.waiting.map(({ to }) => to), ['192.0.2.1', '192.0.2.1', '192.0.2.1', '192.0.2.1', 'own'])
  await slow.take(4 + 1 + 8)
  const counts: Record<string, number> = {}
  for (const to of slow.sent) counts[to] = (counts[to] ?? 0) + 1
  t.strictSame([counts['198.51.100.1'], counts['2001:db8:1::/48'], counts['2001:db8:2::/48'], counts.own], [2, 2, 2, 1], 'the others are done')
  for (let index = 0; index < 20; index++) await outbox.enqueue({ kind: 'test', to: 'eve', user_id: 'eve' }, HOUR)
  await outbox.enqueue({ kind: 'test', to: 'bob', user_id: 'bob' }, HOUR)
  const before = slow.sent.length
  await slow.take(12)
  t.ok(slow.sent.indexOf('bob') > 0 && slow.sent.indexOf('bob') < before + 12, 'accounts take turns too')
  await slow.take(50 + 6 + 1 + 21 - slow.sent.length)
})

t.test('500 people behind one address get their mails; one network or account always leaves as much room as it has', async (t) => {
  const { start } = await open(t)
  let sent = 0
  const outbox = start({ send: async () => { sent++ } })
  await Promise.all(Array.from({ length: 500 }, async () => await outbox.enqueue({ kind: 'test', to: 'somebody' }, HOUR, { network: '192.0.2.1' })))
  await outbox.settle()
  t.equal(sent, 500)
  // It accepts mails, and sends none.
  const idle = start({ send: async () => {} })
  await idle.close()
  const ask = async (network: string) => await idle.enqueue({ kind: 'test', to: 'somebody' }, HOUR, { network })
  const fill = async (work: () => Promise<unknown>) => {
    for (let count = 0; ; count++) {
      try {
        await work()
      } catch (error) {
        t.match(error, { code: 'ErrBusy' })
        return count
      }
    }
  }
  t.equal(await fill(async () => await ask('192.0.2.1')), 2_500, 'half of what strangers may have')
  t.equal(await fill(async () => await ask('198.51.100.1')), 1_250, 'and another one as much as it leaves')
  const own = async (user_id: string) => await idle.enqueue({ kind: 'test', to: 'somebody', user_id }, HOUR)
  t.equal(await fill(async () => await own('eve')), (10_000 - 3_750) / 2)
  for (let count = 0; count < 100; count++) await own('ann')
})

t.test('a failed mail is listed with its address, and tried again on request', async (t) => {
  const { start, clock } = await open(t)
  let isUp = false
  const outbox = start({ send: async () => { if (!isUp) throw Object.assign(new Error('no'), { responseCode: 554 }) } })
  await outbox.enqueue({ kind: 'reset', to: 'ann@example.com' }, HOUR)
  await outbox.settle()
  const [listed] = await Array.fromAsync(outbox.list('failed'))
  t.match(listed, [{ kind: 'reset', to: 'ann@example.com', failure: '554', attempts: 1 }])
  isUp = true
  await outbox.retry(listed![0]!.id)
  await outbox.settle()
  t.same(await Array.fromAsync(outbox.list('failed')), [])
  await t.rejects(outbox.retry(listed![0]!.id), { code: 'ErrNotFound' })
  isUp = false
  await outbox.enqueue({ kind: 'reset', to: 'ann@example.com' }, HOUR)
  await outbox.settle()
  const [[late] = []] = await Array.fromAsync(outbox.list('failed'))
  clock.advance(HOUR)
  await t.rejects(outbox.retry(late!.id), { code: 'ErrParam' })
})

t.test('after a restore, a mail that was composed before the backup is not sent: its link has ended', async (t) => {
  const { start, records } = await open(t)
  let isComposable = true
  const outbox = start({ send: async () => { throw Object.assign(new Error('no'), { responseCode: 451 }) } }, {
    compose: async (job) => {
      if (!isComposable) throw new Error('not yet')
      return draftOf(job)
    }
  })
  await outbox.enqueue({ kind: 'reset', to: 'ann@example.com' }, HOUR)
  await outbox.settle()
  isComposable = false
  await outbox.enqueue({ kind: 'invite', to: 'bob@example.com' }, HOUR)
  await outbox.settle()
  const waiting = (await Array.fromAsync(outbox.list('due'))).flat()
  t.equal(waiting.length, 2)
  for (const { id } of waiting) await records.update(id, { set: { state: 'failed', failure: 'RESTORED' } })
  for (const { id, kind } of waiting) {
    if (kind === 'reset') await t.rejects(outbox.retry(id), { code: 'ErrParam', message: /composed before the backup/ })
    else await outbox.retry(id)
  }
})

t.test('of two processes that claim the same mail one sends it, in every order of their calls', async (t) => {
  const scheduler = new Scheduler()
  const { start, add, records } = await open(t, { around: scheduler.around })
  const senders: string[] = []
  const [one, two] = ['one', 'two'].map((name) => start({ send: async () => { senders.push(name) } }))
  await exhaust({ least: 38, outcomes: ['one sent it', 'two sent it'] }, async (choose) => {
    senders.length = 0
    const waiting = await add('ann@example.com')
    await scheduler.run({ one: async () => { one!.release(waiting); await one!.settle() }, two: two!.flush }, choose)
    return `${senders.join(' and ')} sent it${await records.count() > 0 ? ', and it is left' : ''}`
  })
})

t.test('a process that composed a mail for so long that another one has claimed it does not send it, nor replace what the other one has written', async (t) => {
  const { clock, start, records } = await open(t)
  const [composed, sending] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const sent: string[] = []
  const slow = start({ send: async () => { sent.push('slow') } }, {
    async compose (job) {
      await composed.promise
      return draftOf(job)
    }
  })
  const other = start({
    async send () {
      sent.push('other')
      await sending.promise
    }
  })
  await slow.enqueue({ kind: 'test', to: 'ann@example.com' }, HOUR)
  await waitUntil('the claim', async () => await records.count({ equal: { leased: true } }) === 1)
  // As if the first process had been stopped for longer than its lease.
  clock.advance(MINUTE)
  for await (const [record] of records.stream()) await records.update(record!.id, { set: { due_at: '2000-01-01T00:00:00.000Z' }, unset: ['leased'] })
  const flushed = other.flush()
  await waitUntil('the other one sends it', () => sent.length === 1)
  const read = async () => (await Array.fromAsync(records.stream())).flat()[0]!.sealed
  const before = await read()
  composed.resolve()
  await advanceTo(slow.timers, 'the end of the first one', slow.settle())
  t.strictSame(sent, ['other'])
  t.equal(await read(), before)
  sending.resolve()
  await flushed
  t.equal(await records.count(), 0)
})

t.test('a process that ends at any point leaves a mail that another one sends, once or with the same Message-ID', async (t) => {
  const scheduler = new Scheduler()
  const { start, add, records, clock } = await open(t, { around: scheduler.around })
  const sent: string[] = []
  const mail: Mail = { send: async ({ id }) => { sent.push(id) } }
  for (let calls = 0; calls < 6; calls++) {
    sent.length = 0
    const dying = start(mail)
    const waiting = await add('ann@example.com')
    scheduler.interrupt = (_step, log) => { if (log.length >= calls) throw new Error('the process has ended') }
    await scheduler.run({ dying: async () => { dying.release(waiting); await dying.settle() } }, () => 0)
    scheduler.interrupt = () => {}
    clock.advance(10 * MINUTE)
    await start(mail).flush()
    t.ok(sent.length >= 1 && sent.length <= 2, `${sent.length} sent after ${calls} calls`)
    t.equal(new Set(sent).size, 1)
    t.equal(await records.count(), 0)
  }
})
