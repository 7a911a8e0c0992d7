import { setTimeout as sleep } from 'node:timers/promises'
import { statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { storeError } from '../lib/errors.ts'
import type { LogoutRecord } from '../lib/logout/record.ts'
import { recordBackup } from '../lib/maintenance/last-backup.ts'
import { createMeter } from '../lib/metrics/prometheus.ts'
import { readDisk } from '../lib/metrics/read-disk.ts'
import { COLLECTIONS } from '../lib/store/collections.ts'
import { openStore } from '../lib/store/index.ts'
import { TIMERS } from '../lib/timers.ts'
import type { StartOptions, TestKit } from '../testing/index.ts'
import { unique } from './helpers/people.ts'
import { readDoc } from './helpers/docs.ts'
import { createTestRecorder } from './helpers/events.ts'
import { settleMails } from './helpers/mails.ts'
import { AlertRule, Scrapes, readAlerts } from './helpers/promql.ts'
import { startReceiver } from './helpers/receiver.ts'
import { waitUntil } from './helpers/wait.ts'
import { type StoreCall, wrapStore } from './helpers/wrap-store.ts'
import { getCode, startHarness } from './oidc/harness.ts'

t.setTimeout(180_000)

const [MINUTE, HOUR, DAY] = [60, 3_600, 86_400]
const ALERTS = readAlerts(readDoc('deploy/alerts.yaml'))

/** Scrapes as Prometheus does, every 30 seconds of a clock of its own, and looks at one alert. */
function watch (t: Test, alert: string, read: () => Promise<string>, advance: (milliseconds: number) => void = () => {}) {
  const scrapes = new Scrapes()
  const rule = new AlertRule(ALERTS.get(alert)!, scrapes)
  let time = 0
  let fires = false
  async function pass (seconds: number, each: () => unknown = () => {}, step = 30): Promise<void> {
    for (const end = time + seconds; time < end;) {
      time += step
      advance(step * 1000)
      await each()
      scrapes.add(time, await read().catch(() => undefined))
      fires = rule.look()
    }
  }
  return {
    pass,
    /** Ten minutes in which all is well. */
    async rest (each?: () => unknown): Promise<void> {
      await pass(10 * MINUTE, each)
      t.equal(fires, false, `${alert} is silent while all is well`)
    },
    see: (expected: boolean, message: string) => t.equal(fires, expected, `${alert}: ${message}`)
  }
}

/** A service with metrics, whose calls of the store fail as the test says. */
async function start (t: Test, alert: string, options: StartOptions = {}) {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now, onError: () => {} })
  t.teardown(() => inner.close())
  const fault: { around?: (call: StoreCall, run: () => unknown) => unknown } = {}
  const store = wrapStore(inner, (call, run) => fault.around === undefined ? run() : fault.around(call, run))
  const harness = await startHarness(t, { metrics: '127.0.0.1:0', store, ...options })
  const { kit } = harness
  const url = kit.app.identity.metrics?.url ?? ''
  const scrape = async () => await (await fetch(url)).text()
  return { ...harness, fault, store: inner, scrape, ...watch(t, alert, scrape, kit.clock.advance) }
}

/** The metrics of the disk of a database file of these sizes, which take no space. */
function startDisk (t: Test, alert: string) {
  const file = join(t.testdir(), 'identity.db')
  const meter = createMeter('1.2.3')
  readDisk(`sqlite:${file}`, meter)
  const setSize = (suffix: string, bytes: number) => {
    writeFileSync(file + suffix, '')
    truncateSync(file + suffix, bytes)
  }
  setSize('', 1024 ** 2)
  setSize('-wal', 8 * 1024 ** 2)
  return { file, setSize, ...watch(t, alert, async () => (await meter.render('openmetrics')).text) }
}

const attempt = (account: string, password: string) => ({ form: new URLSearchParams({ account, password }), turn: {}, limit: async () => undefined })

async function sendMail ({ app }: TestKit, { user_id }: { user_id: string }): Promise<void> {
  const { outbox } = app.identity.accounts
  await outbox!.enqueue({ kind: 'address-given-up', user_id, to: 'ann@example.com' }, DAY * 1000)
  await outbox!.flush()
}

/** By alert: makes its fault, and sees it fire, and not before. */
const FAULTS: Record<string, (t: Test, alert: string) => Promise<void>> = {
  async IdentityDown (t, alert) {
    const { kit, rest, pass, see } = await start(t, alert)
    await rest()
    await kit.close()
    await pass(2 * MINUTE)
    see(true, 'the process has ended')
  },

  async IdentityStoreFails (t, alert) {
    const { kit, fault, rest, pass, see } = await start(t, alert)
    await rest()
    const { headers } = await kit.mint({ user: 'root', roles: ['admin'] })
    fault.around = () => { throw storeError(new Error('refused')) }
    await pass(4 * MINUTE, async () => await kit.inject({ url: '/api/v1/user/count', headers }))
    see(true, 'the store refuses every call')
  },

  async IdentityErrors (t, alert) {
    const { kit, fault, rest, pass, see } = await start(t, alert)
    const { headers } = await kit.mint({ user: 'root', roles: ['admin'] })
    const ask = async () => await kit.inject({ url: '/api/v1/client/count', headers })
    await rest(ask)
    fault.around = ({ collection, method }, run) => {
      if (collection === 'clients' && method === 'count') throw storeError(new Error('refused'))
      return run()
    }
    await pass(8 * MINUTE, ask)
    see(true, 'requests fail')
  },

  async IdentitySlowSignIns (t, alert) {
    const { kit, user, scrape, rest, pass, see } = await start(t, alert, { bcryptCost: 7 })
    await rest()
    const endless = { goesOn: true }
    // As many as wait at once all the time.
    const callers = Array.from({ length: 20 }, async (_, index) => {
      while (endless.goesOn) await kit.app.identity.users.verify(`nobody${index}@example.com`, user.password).catch(() => {})
    })
    await waitUntil('waiting hashes', async () => /^identity_hash_queue [1-9]/m.test(await scrape()))
    await pass(6 * MINUTE)
    see(true, 'more sign-ins than the processors handle')
    endless.goesOn = false
    await Promise.all(callers)
  },

  async IdentityGuessing (t, alert) {
    const { kit, user, rest, pass, see } = await start(t, alert)
    const { signIns, users } = kit.app.identity
    await rest(async () => await signIns.submit('a browser', attempt(user.account, user.password)))
    await pass(20 * MINUTE, async () => {
      for (let wrong = 0; wrong < 25; wrong++) await users.verify(user.account, 'wrong').catch(() => {})
      for (let limited = 0; limited < 50; limited++) await signIns.submit('another browser', attempt(user.account, 'wrong')).catch(() => {})
    })
    see(true, 'passwords are tried, on a service that has never seen it')
  },

  async IdentityMailStuck (t, alert) {
    let isDown = false
    const send = async () => { if (isDown) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }) }
    const { kit, user, rest, pass, see } = await start(t, alert, { mail: { send, from: 'id@example.com' }, oidc: { issuer: 'http://localhost:1' } })
    const ask = async () => await sendMail(kit, user)
    await rest(ask)
    isDown = true
    await pass(9 * MINUTE, ask)
    see(false, 'mails are attempted')
    await pass(3 * MINUTE, ask)
    see(true, 'the mail server refuses connections')
    isDown = false
    await pass(HOUR, async () => await settleMails(kit.app.identity))
    see(false, 'all were sent')
  },

  async IdentityLogoutStuck (t, alert) {
    const { kit, user, rest, pass, see, ...harness } = await start(t, alert)
    const { url } = await startReceiver(t, () => 503)
    const app = await harness.register()
    await kit.app.identity.clients.patch(app.client_id, { data: { backchannelLogoutUri: `${url}/logout` } }, { user_id: 'nobody', isAdmin: true })
    await harness.post('token', await getCode({ kit, user, ...harness }, app), app)
    await rest()
    await kit.app.identity.users.patch(user.user_id, { data: { password: 'another horse' } }, { user_id: 'root', isAdmin: true })
    await kit.flush()
    const records = kit.app.identity.store.collection<LogoutRecord>('logouts')
    t.equal(await records.count({ equal: { state: 'due' } }), 1, 'the app answers 503')
    await pass(55 * MINUTE, async () => await kit.app.identity.logouts.flush(), 60)
    see(false, 'it is attempted')
    await pass(8 * MINUTE, async () => await kit.app.identity.logouts.flush(), 60)
    see(true, 'an app is down for an hour')
  },

  async IdentityEventsStuck (t, alert) {
    const { kit, fault, rest, pass, see } = await start(t, alert)
    const happen = async () => {
      await kit.app.identity.users.create({ data: { account: unique('user'), password: 'x' } })
      await kit.app.identity.events.flush().catch(() => {})
    }
    await rest(happen)
    fault.around = ({ collection, method }, run) => {
      if (collection === 'events' && method.startsWith('insert')) throw storeError(new Error('refused'))
      return run()
    }
    await pass(4 * MINUTE, happen)
    see(true, 'no event can be written')
  },

  async IdentityEventsSetAside (t, alert) {
    const { kit, user, fault, store, rest, pass, see } = await start(t, alert)
    await rest()
    fault.around = ({ collection, method, args }, run) => {
      if (collection === 'users' && method === 'get' && args[0] === user.user_id) throw new TypeError('a damaged record')
      return run()
    }
    const users = store.collection('users')
    const event = createTestRecorder(store, kit.clock.now).attach(await users.get(user.user_id), { happened: [{ type: 'user.disabled', id: user.user_id }] })
    await users.update(user.user_id, { set: { ...event } })
    await pass(5 * MINUTE, async () => {
      await kit.app.identity.users.create({ data: { account: unique('user'), password: 'x' } })
      await kit.app.identity.events.flush().catch(() => {})
    })
    see(true, 'the events of one record cannot be published')
  },

  async IdentityWorkStalled (t, alert) {
    const send = async () => {}
    const { fault, pass, see } = await start(t, alert, { mail: { send, from: 'id@example.com' }, oidc: { issuer: 'http://localhost:1' } })
    const { now } = TIMERS
    t.teardown(() => { TIMERS.now = now })
    let ahead = 0
    TIMERS.now = () => now() + ahead
    const hanging = Promise.withResolvers<never>()
    hanging.promise.catch(() => {})
    t.teardown(() => hanging.reject(new Error('over')))
    let [polls, hangs] = [0, false]
    fault.around = ({ collection, method }, run) => {
      if (collection !== 'deliveries' || method !== 'page') return run()
      polls++
      return hangs ? (async function * () { yield await hanging.promise })() : run()
    }
    const poll = async () => {
      const before = polls
      await waitUntil('a poll', () => polls > before)
    }
    await pass(MINUTE, async () => {
      await poll()
      ahead += 30_000
    })
    see(false, 'the polls go on')
    hangs = true
    await poll()
    await pass(6 * MINUTE, () => { ahead += 30_000 })
    see(true, 'a call of the store hangs')
  },

  async IdentityWorkGivenUp (t, alert) {
    let isRefused = false
    const send = async () => { if (isRefused) throw Object.assign(new Error('550 no such mailbox'), { responseCode: 550 }) }
    const { kit, user, rest, pass, see } = await start(t, alert, { mail: { send, from: 'id@example.com' }, oidc: { issuer: 'http://localhost:1' } })
    const ask = async () => await sendMail(kit, user)
    await rest(ask)
    isRefused = true
    await pass(30, ask)
    see(true, 'the first mail that is given up')
    isRefused = false
    await pass(2 * HOUR, ask, 5 * MINUTE)
    see(false, 'nothing was given up for an hour')
  },

  async IdentityBackupOld (t, alert) {
    const { kit, store, rest, pass, see } = await start(t, alert)
    await recordBackup(store, kit.clock.now)
    await rest()
    await pass(35 * HOUR, undefined, 5 * MINUTE)
    see(false, 'a day and a half is not over')
    await pass(2 * HOUR, undefined, 5 * MINUTE)
    see(true, 'no backup was made for 37 hours')
    await recordBackup(store, kit.clock.now)
    await pass(5 * MINUTE)
    see(false, 'a backup was made')
  },

  async IdentityClientSecretsExpire (t, alert) {
    const { kit, rest, pass, see, register } = await start(t, alert)
    const { client_id } = await register()
    await kit.secret(client_id, { expires_in: 20 * DAY })
    await rest()
    kit.clock.advance(7 * DAY * 1000)
    await pass(90 * MINUTE, undefined, 5 * MINUTE)
    see(true, 'a secret ends in 13 days')
  },

  async IdentityWebhookBehind (t, alert) {
    const { kit, rest, pass, see } = await start(t, alert)
    const receiver = await kit.webhooks.receive()
    const happen = async () => {
      await kit.app.identity.users.create({ data: { account: unique('user'), password: 'x' } })
      await kit.flush()
    }
    await rest(happen)
    receiver.status = 503
    await pass(55 * MINUTE, happen, 5 * MINUTE)
    see(false, 'it is attempted')
    await pass(25 * MINUTE, happen, 5 * MINUTE)
    see(true, 'a receiver is down for an hour')
  },

  async IdentityLogFills (t, alert) {
    const { setSize, rest, pass, see } = startDisk(t, alert)
    await rest()
    setSize('-wal', 900 * 1024 ** 2)
    await pass(6 * MINUTE)
    see(true, 'the log has grown')
  },

  async IdentityDiskFills (t, alert) {
    const { file, setSize, pass, see } = startDisk(t, alert)
    const { bavail, bsize } = statfsSync(join(file, '..'))
    await pass(MINUTE)
    see(false, 'there is room')
    setSize('', bavail * bsize + 1024 ** 3)
    await pass(6 * MINUTE)
    see(true, 'a copy of the database has no room')
  },

  async IdentityOverloaded (t, alert) {
    const { pass, see } = await start(t, alert)
    const block = async () => {
      // The measurement begins anew with each scrape, and takes a turn of the event loop before and after.
      await sleep(40)
      const end = performance.now() + 250
      while (performance.now() < end);
      await sleep(40)
    }
    await pass(4 * MINUTE, block)
    see(false, 'for some minutes')
    await pass(3 * MINUTE, block)
    see(true, 'the event loop is blocked again and again')
  }
}

t.test('every alert has a fault that fires it', (t) => {
  t.strictSame(Object.keys(FAULTS).sort(), [...ALERTS.keys()].sort())
  t.end()
})

for (const [alert, make] of Object.entries(FAULTS)) t.test(alert, async (t) => await make(t, alert))
