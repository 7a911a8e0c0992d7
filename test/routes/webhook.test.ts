import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { listBlocks } from '../helpers/docs.ts'
import { forEachStore } from '../helpers/build.ts'
import { createUser, signIn } from '../helpers/people.ts'

const URL_A = 'https://hooks.example.com/a'
const make = (rest: object = {}) => ({ data: { name: 'A', url: URL_A, types: ['user.*'], ...rest } })

interface Created { data: { webhookId: string, secret: string } }

await forEachStore(t, async (t, build) => {
  t.test('make, read, change, list and delete; the secret is shown once, and every change has its event', async (t) => {
    const kit = await build(t)
    await kit.reset()
    const admin = await signIn(kit, { roles: ['admin'] })
    const reply = await admin.post<Created>('/webhook', make({ types: ['user.*', 'session.ended', 'user.*'] }))
    t.match(reply, { status: 200, headers: { 'cache-control': 'no-store' }, body: { data: { webhookId: /^[0-9A-Za-z]{34}$/, secret: /^whsec_[A-Za-z0-9+/]{32}$/ } } })
    const { webhookId } = reply.body.data
    const read = await admin.get(`/webhook/${webhookId}`)
    t.strictSame(Object.keys((read.body as { data: object }).data), ['webhookId', 'name', 'url', 'types', 'cursor', 'parked', 'createdAt', 'modifiedAt'])
    t.match(read.body, { data: { webhookId, name: 'A', url: URL_A, types: ['session.ended', 'user.*'], parked: 0 } })
    t.match(await admin.patch(`/webhook/${webhookId}`, { data: { name: 'B', disabled: true } }), { status: 204 })
    t.match(await admin.patch(`/webhook/${webhookId}`, { data: { disabled: true } }), { status: 204 }, 'nothing changes')
    t.match((await admin.get(`/webhook/${webhookId}`)).body, { data: { name: 'B', disabled: true, failure: undefined } })
    t.match(await admin.patch(`/webhook/${webhookId}`, { data: { disabled: false, types: ['*'] } }), { status: 204 })
    const rotated = await admin.post<Created>(`/webhook/${webhookId}/secret`)
    t.match(rotated, { status: 200, headers: { 'cache-control': 'no-store' } })
    t.not(rotated.body.data.secret, reply.body.data.secret)
    t.match(await admin.post(`/webhook/${webhookId}/replay`, { from: 'now' }), { status: 200, body: { data: { cursor: /^\w+\.\d+$/ } } })
    t.match(await admin.get(`/webhook/${webhookId}/attempts`), { status: 200, body: { data: [] } })
    t.match((await admin.get('/webhook/list')).body, { data: [{ webhookId, name: 'B' }] })
    t.match((await admin.get('/webhook/count')).body, { data: { count: 1 } })
    t.match(await admin.delete(`/webhook/${webhookId}`), { status: 204 })
    for (const gone of [
      await admin.get(`/webhook/${webhookId}`), await admin.patch(`/webhook/${webhookId}`, { data: { name: 'C' } }), await admin.delete(`/webhook/${webhookId}`),
      await admin.get(`/webhook/${webhookId}/attempts`), await admin.post(`/webhook/${webhookId}/test`), await admin.post(`/webhook/${webhookId}/secret`),
      await admin.post(`/webhook/${webhookId}/replay`, { from: 'now' })
    ]) t.match(gone, { status: 404, body: { code: 'ErrNotFound', message: 'webhookId: no such webhook' } })
    const events = (await kit.events.list()).filter(({ target }) => target.id === webhookId)
    t.match(events.map(({ type, changed, actor }) => [type, changed, actor.user_id]), [
      ['webhook.created', undefined, admin.user_id], ['webhook.updated', ['name'], admin.user_id], ['webhook.disabled', undefined, admin.user_id],
      ['webhook.updated', ['types', 'disabled'], admin.user_id], ['webhook.secret_changed', undefined, admin.user_id],
      ['webhook.replayed', undefined, admin.user_id], ['webhook.deleted', undefined, admin.user_id]
    ])
  })

  t.test('an invalid field is named', async (t) => {
    const kit = await build(t)
    await kit.reset()
    const admin = await signIn(kit, { roles: ['admin'] })
    for (const [rest, message] of [
      [{ url: 'http://hooks.example.com/' }, 'url: must be an https URL'],
      [{ url: 'https://10.0.0.1/' }, 'url: must be a public address'],
      [{ url: 'https://169.254.169.254/latest' }, 'url: must be a public address'],
      [{ url: 'https://user:word@hooks.example.com/' }, 'url: must not have user information'],
      [{ url: 'hooks' }, 'url: must be an absolute URL that is not too long'],
      [{ types: ['user.*', 'user.exploded'] }, 'types[1]: no event has this type'],
      [{ types: ['use*'] }, 'types[0]: no event has this type'],
      [{ name: 'a\u202eb' }, /^name: must not contain/]
    ] as const) t.match(await admin.post('/webhook', make(rest)), { status: 400, body: { code: 'ErrParam', message } })
    t.match(await admin.post('/webhook', make({ types: [] })), { status: 400 })
    t.match(await admin.post('/webhook', make({ secret: 'whsec_own' })), { status: 400 })
    const { body: { data: { webhookId } } } = await admin.post<Created>('/webhook', make())
    t.match(await admin.patch(`/webhook/${webhookId}`, { data: {} }), { status: 400, body: { message: 'body: must contain a change' } })
    t.match(await admin.patch(`/webhook/${webhookId}`, { data: { url: 'https://[::ffff:10.0.0.1]/' } }), { status: 400, body: { message: 'url: must be a public address' } })
    t.match(await admin.get('/webhook/list?sort=url'), { status: 400 })
  })

  t.test('there are at most twenty, even with concurrent creations', async (t) => {
    const kit = await build(t)
    await kit.reset()
    const admin = await signIn(kit, { roles: ['admin'] })
    for (let number = 0; number < 16; number++) t.match(await admin.post('/webhook', make({ name: `${number}` })), { status: 200 })
    const replies = await Promise.all(Array.from({ length: 8 }, () => admin.post('/webhook', make())))
    t.strictSame(replies.map(({ status }) => status).sort(), [...Array(4).fill(200), ...Array(4).fill(429)])
    t.match((await admin.get('/webhook/count')).body, { data: { count: 20 } })
    t.match(await admin.post('/webhook', make()), { status: 429, body: { code: 'ErrLimit', message: 'webhooks: there are 20, which is the maximum' } })
    t.equal((await admin.get<{ data: unknown[] }>('/webhook/list?limit=7&sort=name:desc')).body.data.length, 7)
  })

  t.test('the receiver of the kit verifies and collects; failed deliveries are retried by the clock', async (t) => {
    const kit = await build(t)
    await kit.reset()
    const admin = await signIn(kit, { roles: ['admin'] })
    const receiver = await kit.webhooks.receive({ types: ['user.created', 'user.deleted'] })
    const id = await createUser(admin)
    t.match(await receiver.next(), { type: 'user.created', data: { target: { kind: 'user', id }, actor: { via: 'api', user_id: admin.user_id } } })
    receiver.status = 500
    await admin.delete(`/user/${id}`)
    await kit.flush()
    t.match((await admin.get(`/webhook/${receiver.webhookId}/attempts`)).body, { data: [{ type: 'user.deleted', outcome: 'failed', status: 500 }, { outcome: 'delivered', status: 204 }] })
    receiver.status = 200
    await t.rejects(receiver.next(), { message: 'no message arrived' })
    kit.clock.advance(6_000)
    t.match(await receiver.next({ type: 'user.deleted' }), { type: 'user.deleted', data: { target: { id } } })
    t.strictSame(await receiver.all(), [])
    t.match((await admin.post(`/webhook/${receiver.webhookId}/test`)).body, { data: { status: 200 } })
    t.match(await receiver.next(), { type: 'webhook.test' })
    receiver.secret = 'whsec_AAAA'
    t.match((await admin.post(`/webhook/${receiver.webhookId}/test`)).body, { data: { status: 401 } })
    t.strictSame(await receiver.all(), [])
  })
})

t.test('the receiver of the page takes a message once, and none that is forged', async (t) => {
  const kit = await (await import('../../testing/index.ts')).startIdentity({ t })
  const block = listBlocks('docs/webhooks.md').find(({ language, text }) => language === 'js' && text.includes('standardwebhooks'))!
  const { webhookId, secret } = await kit.app.identity.webhooks.create({ data: { name: 'A', url: 'http://127.0.0.1:9/', types: ['user.disabled'] } })
  const file = `${t.testdir()}/receiver.mjs`
  writeFileSync(file, block.text.replace("'standardwebhooks'", `'${import.meta.resolve('standardwebhooks')}'`).replace('console.log', 'globalThis.receiverLog'))
  const lines: string[] = []
  Object.assign(globalThis, { receiverLog: (line: string) => lines.push(line) })
  process.env.WEBHOOK_SECRET = secret
  process.env.PORT = '0'
  const { server } = await import(pathToFileURL(file).href)
  t.teardown(() => server.close())
  if (!server.listening) await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  await kit.app.identity.webhooks.patch(webhookId, { data: { url } })
  const { user_id } = await kit.app.identity.users.create({ data: { account: 'ann', password: 'p' } }, { user_id: '', isAdmin: true } as never)
  await kit.app.identity.users.patch(user_id, { disable: true }, { user_id: '', isAdmin: true })
  await kit.flush()
  await kit.app.identity.webhooks.replay(webhookId, { from: 'first' })
  await kit.flush()
  t.strictSame(lines, [`forget ${user_id}`])
  t.equal((await kit.app.identity.webhooks.listAttempts(webhookId)).filter(({ outcome }) => outcome === 'delivered').length, 2, 'it arrived twice')
  const forged = await fetch(url, { method: 'POST', body: '{"type":"user.disabled","data":{"target":{"id":"x"}}}', headers: { 'webhook-id': 'x', 'webhook-timestamp': String(Math.floor(Date.now() / 1000)), 'webhook-signature': 'v1,AAAA' } })
  t.equal(forged.status, 401)
  t.equal(lines.length, 1)
})

t.test('a webhook cannot reach the network of the service, by any name', async (t) => {
  const inner = createServer(() => t.fail('nobody may come here')).listen(0, '127.0.0.1')
  await once(inner, 'listening')
  t.teardown(() => inner.close())
  const { port } = inner.address() as AddressInfo
  const { startIdentity } = await import('../../testing/index.ts')
  const kit = await startIdentity({ t, production: true, createDatabase: true })
  const { webhooks } = kit.app.identity
  const { webhookId } = await webhooks.create({ data: { name: 'A', url: `https://localhost:${port}/`, types: ['*'] } })
  t.match(await webhooks.test(webhookId), { code: 'EREFUSED' })
  await t.rejects(webhooks.create({ data: { name: 'A', url: `http://localhost:${port}/`, types: ['*'] } }), { code: 'ErrParam', message: 'url: must be an https URL' })
})
