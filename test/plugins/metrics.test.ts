import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { createMeter } from '../../lib/metrics/prometheus.ts'
import { readOutbox } from '../../lib/metrics/read-outbox.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { BATCH_SIZE } from '../../lib/store/port.ts'
import { readVersion } from '../../lib/version.ts'
import type { WorkRecord } from '../../lib/work/record.ts'
import { type StartOptions, startIdentity } from '../../testing/index.ts'
import { askCode, createFile, getCode, startHarness } from '../oidc/harness.ts'
import { createUser, signIn as mintPerson } from '../helpers/people.ts'
import { parseOpenMetrics, type Sample } from '../helpers/openmetrics.ts'
import { forEachEngine } from '../helpers/stores.ts'
import { within } from '../helpers/upstream.ts'
import { isListing, wrapStore } from '../helpers/wrap-store.ts'

const METRICS = { metrics: '127.0.0.1:0' }

async function start (t: Test, options: StartOptions = {}) {
  const harness = await startHarness(t, { ...METRICS, ...options })
  const url = harness.kit.app.identity.metrics?.url ?? ''
  async function scrape () {
    return parseOpenMetrics(await (await fetch(url)).text())
  }
  /** The value of the one sample with these labels; 0 for none. */
  async function read (name: string, labels: Record<string, string | number> = {}): Promise<number> {
    const samples = [...(await scrape()).values()].flatMap(({ samples }) => samples).filter((sample: Sample) => sample.name === name)
    return samples.filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === String(value))).reduce((sum, { value }) => sum + value, 0)
  }
  /** Resolves when this many lists are open. The relay of the events opens one of its own now and then. */
  async function seeLists (count: number): Promise<void> {
    await within(`${count} lists`, (async () => { while (await read('identity_list_cursors') !== count); })())
  }
  return { ...harness, harness, metricsUrl: url, scrape, read, seeLists }
}

t.test('operations are counted, in strict OpenMetrics', async (t) => {
  const { kit, harness, user, register, browser, post, get, metricsUrl, scrape, read, seeLists } = await start(t)
  t.equal((await fetch(metricsUrl)).headers.get('content-type'), 'application/openmetrics-text; version=1.0.0; charset=utf-8')
  const app = await register()
  const code = await getCode(harness, app)
  const { body } = await post('token', code, app)
  t.match(await post('token', { grant_type: 'refresh_token', refresh_token: String(body.refresh_token) }, app), { status: 200 })
  t.match(await post('token', { grant_type: 'client_credentials' }, app), { status: 200 })
  t.match(await post('token', { grant_type: 'made-up-by-a-caller' }, app), { status: 400 })
  for (const [grant, count] of [['code', 1], ['refresh', 1], ['client', 1], ['device', 0]] as const) t.equal(await read('identity_tokens_issued_total', { grant }), count, grant)

  const wrong = await (await browser().open(askCode(app).url)).submit({ account: user.account, password: 'wrong' })
  t.equal(wrong.response.status, 400)
  t.equal(await read('identity_sign_ins_total', { outcome: 'success', method: 'pwd' }), 1)
  t.equal(await read('identity_sign_ins_total', { outcome: 'failure', method: 'pwd' }), 1)
  for (let made = 1; made < 20; made++) await kit.app.identity.users.verify(user.account, 'wrong')
  await (await browser().open(askCode(app).url)).submit({ account: user.account, password: 'wrong' })
  t.equal(await read('identity_sign_ins_total', { outcome: 'limited', method: 'pwd' }), 1)

  const before = await read('identity_token_checks_total', { outcome: 'success' })
  t.equal((await get('tokeninfo', String((await kit.mint({ user: 'ann' })).access_token))).status, 200)
  t.equal((await get('tokeninfo', 'x'.repeat(43))).status, 401)
  t.equal(await read('identity_token_checks_total', { outcome: 'success' }), before + 1)
  t.equal(await read('identity_token_checks_total', { outcome: 'failure' }), 1)
  const operator = `Bearer ${(await kit.mint({ user: 'ann' })).access_token}`
  const patched = await kit.app.inject({ method: 'PATCH', url: '/api/v1/user', headers: { authorization: operator }, payload: { data: { name: 'Ann' } } })
  t.equal(patched.statusCode, 204)
  t.equal(await read('identity_token_checks_total', { outcome: 'success' }), before + 2, 'once for a request, however often it is checked')
  t.equal(await read('identity_tokens_issued_total', { grant: 'mint' }), 2)
  t.equal(await read('http_request_duration_seconds_count', { method: 'GET', route: '/api/v1/auth/tokeninfo', status: 200 }), 1)
  t.equal(await read('http_request_duration_seconds_count', { method: 'GET', route: '/api/v1/auth/tokeninfo', status: 401 }), 1)
  t.equal(await read('http_request_duration_seconds_count', { method: 'POST', route: '/api/v1/auth/token', status: 200 }), 3, 'those of oidc-provider too')
  t.ok(await read('http_request_duration_seconds_count', { route: '/api/v1/auth/interaction/:uid' }) >= 3)

  const families = await scrape()
  t.strictSame(families.get('identity_build_info')?.samples, [{ name: 'identity_build_info', labels: { version: readVersion() }, value: 1 }])
  t.equal(await read('identity_hash_queue'), 0)
  await seeLists(0)
  t.ok(await read('identity_wal_bytes') > 0)
  t.ok(await read('identity_database_bytes') > 0)
  t.ok(await read('identity_disk_free_bytes') > 0)
  for (const operation of ['insert', 'update', 'delete']) t.ok(await read('identity_store_duration_seconds_count', { operation, outcome: 'success' }) > 0, operation)
  t.ok(families.has('nodejs_eventloop_lag_p99_seconds'), 'event-loop delay')
  const labels = new Set([...families.entries()].filter(([name]) => /^(identity|http)_/.test(name)).flatMap(([, { samples }]) => samples.flatMap((sample) => Object.keys(sample.labels))))
  t.strictSame([...labels].sort(), ['grant', 'kind', 'le', 'method', 'operation', 'outcome', 'route', 'status', 'version'])
  const values = JSON.stringify([...families.values()])
  for (const secret of [user.user_id, user.account, app.client_id, 'made-up-by-a-caller']) t.notOk(values.includes(secret))
})

t.test('open lists are counted, and work that waits for a thread', async (t) => {
  const { kit, read, seeLists } = await start(t, { bcryptCost: 8 })
  const { users } = kit.app.identity
  // What fits in one batch is read at once, and holds no cursor.
  const short = users.list({ limit: 0 })[Symbol.asyncIterator]()
  t.equal((await short.next()).value?.length, 1)
  await seeLists(0)
  await short.return?.()
  const { user_id } = await kit.mint()
  const records = kit.app.identity.store.collection<UserRecord>('users')
  const model = (await records.get(user_id))!
  await records.insertMany(Array.from({ length: BATCH_SIZE }, (_, index) => ({ ...model, id: `${user_id}-${index}`, account: `user-${index}` })))
  const list = users.list({ limit: 0 })[Symbol.asyncIterator]()
  t.equal((await list.next()).value?.length, BATCH_SIZE)
  await seeLists(1)
  await list.return?.()
  await seeLists(0)
  const progress = { isDone: false }
  // On a slow machine some of them are refused as too many.
  const verified = Promise.allSettled(Array.from({ length: 24 }, (_, index) => users.verify(`nobody-${index}`, 'p'))).finally(() => { progress.isDone = true })
  let waiting = 0
  while (waiting === 0 && !progress.isDone) waiting = await read('identity_hash_queue')
  t.ok(waiting > 0)
  await verified
  t.equal(await read('identity_hash_queue'), 0)
})

t.test('both formats, each whole, however scrapes interleave', async (t) => {
  const { metricsUrl } = await start(t)
  const ask = async (accept: string) => {
    const reply = await fetch(metricsUrl, { headers: { accept } })
    return { type: reply.headers.get('content-type'), text: await reply.text() }
  }
  const prometheus3 = 'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.2,*/*;q=0.1'
  const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => ask(['text/plain', prometheus3][index % 2]!)))
  for (const [index, { type, text }] of answers.entries()) {
    if (index % 2 === 1) {
      t.match(type, 'application/openmetrics-text; version=1.0.0')
      t.ok(parseOpenMetrics(text).has('identity_sign_ins'))
    } else {
      t.match(type, 'text/plain; version=0.0.4')
      t.match(text, /^# TYPE identity_sign_ins_total counter$/m)
      t.notMatch(text, /# EOF/)
    }
  }
  t.equal((await fetch(metricsUrl, { method: 'POST' })).status, 405)
  t.equal((await fetch(metricsUrl.replace('/metrics', '/'))).status, 404)
})

t.test('without the option nothing is there, and the listener closes with the app', async (t) => {
  const plain = await startIdentity({ t })
  t.equal(plain.app.identity.metrics, undefined)
  const kit = await startIdentity({ ...METRICS })
  await kit.app.ready()
  const url = kit.app.identity.metrics?.url ?? ''
  t.equal((await fetch(url)).status, 200)
  await kit.close()
  await t.rejects(fetch(url))
})

t.test('an address that is none, or is taken, is refused at the start', async (t) => {
  for (const metrics of ['9464', 'localhost', 'localhost:', ':9464', '127.0.0.1:65536', '::1:9464']) {
    await t.rejects(startIdentity({ metrics }), { message: 'option metrics: must be HOST:PORT, such as 127.0.0.1:9464' }, metrics)
  }
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const kit = await startIdentity({ metrics: `127.0.0.1:${port}` })
  await t.rejects(async () => { await kit.app.ready() }, { message: `option metrics: 127.0.0.1:${port} cannot be listened on (EADDRINUSE)` })
  await kit.close()
})

t.test('a reading that fails hides no other', async (t) => {
  const meter = createMeter('1.2.3')
  meter.read('good', 'A good one.', () => 7)
  meter.read('bad', 'A bad one.', () => { throw new Error('no') })
  meter.read('absent', 'None.', () => undefined)
  const families = parseOpenMetrics((await meter.render('openmetrics')).text)
  t.equal(families.get('identity_good')?.samples[0]?.value, 7)
  t.strictSame(families.get('identity_bad')?.samples, [])
  t.strictSame(families.get('identity_absent')?.samples, [])
})

await forEachEngine(t, { collections: COLLECTIONS }, async (t, inner) => {
  const frozen: { until?: Promise<void> } = {}
  const store = wrapStore(inner, ({ method }, run) => frozen.until === undefined || isListing(method) ? run() : frozen.until.then(run))
  const kit = await startIdentity({ t, store, ...METRICS })
  await kit.app.ready()
  const url = kit.app.identity.metrics!.url!
  const scrape = async () => {
    const begin = performance.now()
    const families = parseOpenMetrics(await (await fetch(url)).text())
    return { seconds: (performance.now() - begin) / 1000, due: families.get('identity_outbox_due')?.samples[0]?.value, hash: families.get('identity_hash_queue')?.samples[0]?.value }
  }
  t.match(await scrape(), { due: 0, hash: 0 })
  const { promise, resolve } = Promise.withResolvers<void>()
  frozen.until = promise
  for (const round of [1, 2]) {
    for (const { seconds, due, hash } of await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(scrape))) {
      t.ok(seconds < 2, `${seconds} s in round ${round}`)
      t.equal(due, undefined, 'what the store does not tell is left out')
      t.equal(hash, 0, 'all else is there')
    }
  }
  frozen.until = undefined
  resolve()
  t.match(await scrape(), { due: 0, hash: 0 })
})

t.test('the service works the same with metrics on, streamed lists too', async (t) => {
  const kit = await startIdentity({ t, ...METRICS, database: createFile(t) })
  const admin = await mintPerson(kit, { roles: ['admin'] })
  for (let made = 0; made < 120; made++) await kit.mint({ user: `user-${made}` })
  t.match(await admin.get('/user/count'), { body: { data: { count: 121 } } })
  t.equal((await admin.get<{ data: unknown[] }>('/user/list?limit=0')).body.data.length, 121)
  await createUser(admin)
  t.match(await admin.post('/user', { data: { account: 'user-1', password: 'p' } }), { status: 409 })
})

t.test('the outbox: waiting and failed mails, and the age of the oldest, also between its attempts', async (t) => {
  const time = Date.parse('2126-11-21T00:00:00Z')
  const collections = COLLECTIONS.filter(({ name }) => ['deliveries', 'logouts'].includes(name))
  const store = await openStore('sqlite::memory:', { collections, now: () => time })
  t.teardown(() => store.close())
  const meter = createMeter('1.2.3')
  readOutbox(store, collections, () => time, meter)
  const read = async (prefix: string) => {
    const families = parseOpenMetrics((await meter.render('openmetrics')).text)
    return ['due', 'failed', 'oldest_seconds'].map((name) => families.get(`identity_${prefix}_${name}`)?.samples[0]?.value)
  }
  for (const [prefix, name] of [['outbox', 'deliveries'], ['logouts', 'logouts']] as const) {
    t.strictSame(await read(prefix), [0, 0, 0])
    const records = store.collection<Pick<WorkRecord, 'id' | 'state' | 'due_at' | 'created_at'>>(name)
    const at = (seconds: number) => new Date(time + 1000 * seconds).toISOString()
    await records.insert({ id: 'a clock was ahead', state: 'due', due_at: at(60), created_at: at(3600) })
    t.strictSame(await read(prefix), [1, 0, 0])
    for (const [id, state, accepted, due] of [['a', 'due', -5, -5], ['b', 'due', -90, 3600], ['c', 'failed', -1000, -1000], ['d', 'done', -1000, -1000]] as const) {
      await records.insert({ id, state, due_at: at(due), created_at: at(accepted) })
    }
    t.strictSame(await read(prefix), [3, 1, 90])
  }
  const without = createMeter('1.2.3')
  readOutbox(store, [], () => time, without)
  t.notMatch((await without.render('openmetrics')).text, /outbox/)
})

t.test('whether work stands still is a gauge with the kind of work', async (t) => {
  const { scrape, kit } = await start(t)
  const { type, samples } = (await scrape()).get('identity_work_stalled')!
  t.equal(type, 'gauge')
  t.strictSame(samples.find(({ labels }) => labels.kind === 'event')?.value, 0)
  const known = Object.keys(kit.app.identity.work)
  t.ok(samples.every(({ labels, value }) => known.includes(labels.kind!) && value === 0))
})
