import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { toHolder } from '../../lib/tickets/tickets.ts'
import { createUses } from '../../lib/tokens/uses.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { LeaseWatch } from '../../lib/deadline.ts'
import { Places } from '../../lib/client-documents/places.ts'
import { createOutbox } from '../../lib/mail/outbox.ts'
import { createMeter } from '../../lib/metrics/prometheus.ts'
import { REPEATS, type Turn as FormTurn, createSentForms } from '../../lib/sent-forms/sent-forms.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { DocumentCache } from '../../lib/store/sqlite/cache.ts'
import { waitForEnd } from '../../lib/work/close.ts'
import { OutageLog } from '../../plugins/failure-log.ts'
import { createReadiness } from '../../plugins/readiness.ts'
import { createTestClock } from '../../testing/clock.ts'
import { type GivenBackRow, checkRow, watchSizes } from '../helpers/given-back.ts'
import { openRules } from '../helpers/services.ts'
import { createTimers } from '../helpers/timers.ts'
import { createBase } from '../helpers/base.ts'
import { SILENT_RECORDER } from '../helpers/events.ts'

// What is remembered by the name of something that comes once: a form, a link, a host, a document.

const { signal } = new AbortController()
const down = () => Promise.reject(new Error('down'))
const ANSWER = { status: 200, headers: {}, cookies: [], body: 'page', session: undefined }

type Part = Pick<GivenBackRow, 'call' | 'sizes'>

/** Forms of browsers that each send one, and whose answers are not kept any more when the next one comes. */
async function sendForms (t: Test, use: (send: () => Promise<FormTurn>) => Promise<unknown>): Promise<Part> {
  const clock = createTestClock()
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => store.close())
  const { opened: forms, sizes } = await watchSizes(() => createSentForms({ store, now: clock.now }))
  return {
    async call (index) {
      clock.advance(REPEATS + 1)
      const form = { browser: `browser ${index}`, id: `form ${index}`, path: '/account', fields: [], network: `network ${index}` }
      return await use(async () => await forms.send(form))
    },
    sizes
  }
}

/** The first form ends like this. Resolves to what a repeat gets that was sent meanwhile. */
const repeat = (end: (run: Extract<FormTurn, { run: object }>['run']) => Promise<void>) => async (send: () => Promise<FormTurn>) => {
  const first = await send()
  if (!('run' in first)) throw new Error('the first form is carried out')
  const second = send()
  await end(first.run)
  const turn = await second
  if ('run' in turn) await turn.run.finish(undefined, 'changed')
  return Object.keys(turn)
}

/** The use of a link for a new password, each time another one. */
async function setPasswords (t: Test, toToken: (link: string) => string, password: string): Promise<Part> {
  const { users, records, tickets, openAccounts } = await openRules(t)
  const { user_id } = await users.create({ data: { account: 'ann@example.com', password: 'old' } })
  const { opened: accounts, sizes } = await watchSizes(() => openAccounts({}, { checkNewPassword: async (text) => text === 'weak' ? await down() : text }))
  return {
    async call () {
      const link = await tickets.issue({ purpose: 'reset', ...toHolder((await records.users.get(user_id))!), address: 'ann@example.com', mailed: true })
      return (await accounts.setPassword(toToken(link), password)).purpose
    },
    sizes
  }
}

/** Fetches of documents, each time of another host. */
async function fetchAt (call: (places: Places, host: string) => Promise<unknown>): Promise<Part> {
  const { opened: places, sizes } = await watchSizes(() => new Places({ now: () => 0, timers: createTimers() }))
  return { call: async (index) => await call(places, `host ${index}`), sizes }
}

/** Mails, each with another id. Their records go, or wait for the next attempt. */
async function sendMails (t: Test, send: () => Promise<void>): Promise<Part> {
  const now = () => Date.parse('2126-11-24T00:00:00.000Z')
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now })
  t.teardown(() => store.close())
  const { opened: outbox, sizes } = await watchSizes(() => createOutbox({
    store,
    now,
    box: createSecretBox(generateSecretKey()),
    recorder: SILENT_RECORDER,
    mail: { send },
    host: () => 'id.example',
    compose: async () => ({ to: 'ann@example.com', subject: 's', text: 't', html: 'h' }),
    onError: () => {},
    onFailed: () => {},
    timers: createTimers()
  }))
  t.teardown(() => outbox.close())
  return {
    async call () {
      await outbox.enqueue({ kind: 'test', user_id: 'ann' }, 3_600_000)
      await outbox.settle()
    },
    sizes
  }
}

/** Test mails, by the same signal of a command. */
async function testMail (t: Test, send: () => Promise<void>): Promise<Pick<GivenBackRow, 'call' | 'signals'>> {
  const accounts = (await openRules(t)).openAccounts({ mail: { local: true, send } })
  return { call: async () => await accounts.sendTest('ann@example.com', signal), signals: { 'the end of the command': signal } }
}

/** Scrapes with a gauge that is read like this. */
async function scrape (reading: () => Promise<number>): Promise<Part> {
  const { opened: meter, sizes } = await watchSizes(() => createMeter('1'))
  meter.read('gauge', 'A gauge.', reading)
  return { call: async () => (await meter.render('prometheus')).text.includes('\nidentity_gauge '), sizes }
}

const probe = (ping: () => Promise<void>) => async () => await createReadiness({ store: { ping, verify: () => {} }, closing: signal })()

/** The log of an outage of the store that goes on when the service closes. */
async function closeLog (): Promise<void> {
  const log = Fastify().log
  const outages = new OutageLog(log, { ping: down })
  outages.count(log, { err: new Error('down'), code: 'ErrDb' }, 'the store is away')
  outages.close()
}

const ROWS: Record<string, (t: Test) => Promise<GivenBackRow>> = {
  'a form that changes something, and its repeat': async (t) => ({ ...await sendForms(t, repeat(async ({ finish }) => await finish(ANSWER, 'changed'))), outcome: ['answer'] }),
  'a form that changes nothing, and its repeat': async (t) => ({ ...await sendForms(t, repeat(async ({ finish }) => await finish(ANSWER, 'unchanged'))), outcome: ['answer'] }),
  'a form whose answer is not kept, and its repeat': async (t) => ({ ...await sendForms(t, repeat(async ({ finish }) => await finish(undefined, 'changed'))), outcome: ['done'] }),
  'a form that is given back, and its repeat': async (t) => ({ ...await sendForms(t, repeat(async ({ giveBack }) => await giveBack())), outcome: ['run'] }),
  'a link for a password': async (t) => ({ ...await setPasswords(t, (link) => link, 'new'), outcome: 'reset' }),
  'a link for a password that is refused': async (t) => ({ ...await setPasswords(t, (link) => link, 'weak'), outcome: 'down' }),
  'a link for a password that is none': async (t) => ({ ...await setPasswords(t, (link) => `${link}x`, 'new'), outcome: 'ErrTicket' }),
  'a fetch of a document': async () => ({ ...await fetchAt(async (places, host) => await places.run(host, {}, async () => 'done')), outcome: 'done' }),
  'a fetch of a document that fails': async () => ({ ...await fetchAt(async (places, host) => await places.run(host, {}, down)), outcome: 'down' }),
  'a turn for a document that is there meanwhile': async () => ({ ...await fetchAt(async (places, host) => await places.enter(host, {}, async () => false)), outcome: undefined }),
  'a turn for a document that fails': async () => ({ ...await fetchAt(async (places, host) => await places.enter(host, {}, down)), outcome: 'down' }),
  'a mail that is sent': async (t) => ({ ...await sendMails(t, async () => {}), outcome: undefined }),
  'a mail that is refused': async (t) => ({ ...await sendMails(t, down), outcome: undefined }),
  'a test mail': async (t) => ({ ...await testMail(t, async () => {}), outcome: undefined }),
  'a test mail that is refused': async (t) => ({ ...await testMail(t, down), outcome: 'down' }),
  'a write of a document that is cached': async () => {
    const { opened: things, sizes } = await watchSizes(() => new DocumentCache(() => null).collection('things'))
    return {
      async call (index) {
        for (let count = 0; count < 2; count++) things.beginWrite(`id ${index}`)
        for (let count = 0; count < 2; count++) things.endWrite(`id ${index}`)
        return things.add('id', '{"id":"id"}')?.document
      },
      outcome: { id: 'id' },
      sizes
    }
  },
  'the last uses of the secrets of a client that was deleted': async (t) => {
    const { store, now } = await openRules(t)
    const { opened: uses, sizes } = await watchSizes(() => createUses({ ...createBase({ store, now }), timers: createTimers() }))
    t.teardown(() => uses.close())
    uses.note('other', 'secret')
    return {
      async call (index) {
        uses.note(`client ${index}`, 'secret')
        await uses.forget(`client ${index}`)
      },
      outcome: undefined,
      sizes
    }
  },
  'a scrape of metrics': async () => ({ ...await scrape(async () => 1), outcome: true }),
  'a scrape of metrics of which one cannot be read': async () => ({ ...await scrape(down), outcome: false }),
  'a check whether the store is there': async () => ({ call: probe(async () => {}), outcome: undefined, signals: { 'the end of the service': signal } }),
  'a check whether the store is there, which fails': async () => ({ call: probe(down), outcome: 'down', signals: { 'the end of the service': signal } }),
  'an outage of the store, whose log is closed': async () => ({ call: closeLog, outcome: undefined }),
  'a wait for the end of work': async () => ({ call: async () => await waitForEnd(Promise.resolve()), outcome: undefined }),
  'a wait for the end of work that fails': async () => ({ call: async () => await waitForEnd(down()), outcome: 'down' })
}

for (const [name, open] of Object.entries(ROWS)) {
  t.test(`${name}: everything is given back`, async (t) => await checkRow(t, await open(t)))
}

t.test('leases of others that were seen: at most 1000 are remembered, the latest ones', async (t) => {
  const parts = { now: () => 0, timers: { now: () => 0 }, lease: 1_000 }
  const { opened: watch, sizes } = await watchSizes(() => new LeaseWatch(parts))
  const until = new Date(1_000).toISOString()
  for (let index = 0; index < 1_100; index++) watch.isOver({ id: `lease ${index}`, claim: 1 }, until)
  t.strictSame(Object.values(sizes).map(({ size }) => size), [1_000])
})
