import t from 'tap'
import type { SecretEndRecord } from '../../lib/clients/secret-ends.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import { eachStore } from './harness.ts'

const DAY = 24 * 60 * 60_000

eachStore(t, 'secrets that expire', async (t, start) => {
  const harness = await start({ metrics: '127.0.0.1:0' })
  const { kit, user } = harness
  const { clients, store, users, secretEnds } = kit.app.identity
  const records = store.collection<SecretEndRecord>('secret_ends')
  const root = { user_id: user.user_id, isAdmin: true }
  const at = (days: number) => new Date(kit.clock.now() + days * DAY).toISOString()
  const register = async () => (await harness.register({ first_party: false })).client_id
  const add = async (clientId: string, days?: number) => await clients.addSecret(clientId, { data: { name: 'Nightly', ...(days !== undefined && { expiresAt: at(days) }) } }, root)
  let seen = 0
  /** What was told since the last look. */
  const look = async () => {
    const mails = await kit.mails.all()
    const events = (await kit.events.list({ type: 'client.secret_expiring' })).slice(seen)
    seen += events.length
    return { mails, events }
  }
  const pass = async (days: number) => {
    kit.clock.advance(days * DAY)
    return await look()
  }
  const readMetric = async () => /^identity_client_secrets_expiring (\d+)$/m.exec((await (await fetch(kit.app.identity.metrics!.url!)).text()))?.[1]
  await look()

  await t.test('the owner is told 14 and 3 days before, once each, and the end removes the record', async (t) => {
    const client = await register()
    const { id, secret } = await add(client, 30)
    await add(client)
    t.match(await records.get(id), { client_id: client, until: at(30), due_at: at(16), state: 'due' })
    t.equal((await look()).mails.length, 0)
    t.equal((await pass(15.9)).mails.length, 0)
    t.equal(await readMetric(), '0')
    for (const [days, isTold] of [[0.2, true], [10.8, false], [0.2, true]] as const) {
      const { mails, events } = await pass(days)
      if (!isTold) {
        t.strictSame([mails, events], [[], []], 'nothing between the two')
        continue
      }
      t.match(events, [{ type: 'client.secret_expiring', target: { kind: 'client', id: client }, user_id: user.user_id, outcome: 'success' }])
      t.match(mails, [{ to: user.account, subject: /a secret of your app expires/ }])
      for (const text of [client, `ends with ${secret.slice(-4)}`, `/account/clients/${client}`]) t.match(mails[0]!.text, text)
      t.notOk(JSON.stringify([mails, events]).includes(secret.slice(0, -4)), 'not the secret')
      t.equal((await look()).mails.length, 0, 'once')
      t.equal(await readMetric(), '1')
    }
    t.strictSame((await pass(2.9)).mails, [])
    t.equal(await records.get(id), null)
    t.equal(await readMetric(), '0')
    await store.collection('users').update(user.user_id, { set: { language: 'de' } })
  })

  await t.test('a shorter life gets what still lies ahead, in the language of the owner', async (t) => {
    const client = await register()
    const { id } = await add(client, 10)
    t.match(await records.get(id), { due_at: at(7) })
    t.match((await pass(7)).mails, [{ subject: /ein Secret Ihrer App läuft bald ab/ }])
    const soon = await add(client, 2)
    t.match(await records.get(soon.id), { due_at: at(2) })
    t.strictSame((await pass(3)).mails, [])
    t.equal(await records.get(soon.id), null)
    t.equal(await records.get(id), null)
    const slept = await add(client, 20)
    t.equal((await pass(18)).mails.length, 1, 'after a pause the two are one')
    t.equal((await pass(1)).mails.length, 0)
    await clients.removeSecret(client, slept.id, root)
  })

  await t.test('an attempt that was interrupted between its writes tells the owner once', async (t) => {
    const client = await register()
    const { id } = await add(client, 30)
    for (const days of [16.1, 11]) {
      const before = (await records.get(id))!
      t.match(await pass(days), { mails: [{ to: user.account }], events: [{ target: { id: client } }] })
      await records.put(before)
      t.strictSame(await look(), { mails: [], events: [] }, 'it is repeated')
    }
    await clients.remove(client, root)
  })

  await t.test('the present owner, and nobody without one, or whose account is disabled', async (t) => {
    const bob = await users.create({ data: { account: 'bob@example.com', password: 'correct horse' } })
    const [given, ownerless, off] = [await register(), await register(), await register()]
    for (const client of [given, ownerless, off]) await add(client, 20)
    const records = store.collection<ClientRecord>('clients')
    await records.update(given, { set: { userId: bob.user_id } })
    await records.update(ownerless, { unset: ['userId'] })
    const eve = await users.create({ data: { account: 'eve@example.com', password: 'correct horse' } })
    await records.update(off, { set: { userId: eve.user_id } })
    await store.collection('users').update(eve.user_id, { set: { expired_at: '2020-01-01T00:00:00.000Z' } })
    const { mails, events } = await pass(7)
    t.strictSame(mails.map(({ to }) => to), ['bob@example.com'])
    t.strictSame(events.map(({ target }) => target.id).sort(), [given, ownerless, off].sort(), 'the event comes all the same')
    for (const client of [given, ownerless, off]) await clients.remove(client, root)
  })

  await t.test('the record goes with its secret, on every road, and one that was left tells nobody', async (t) => {
    const roads: Record<string, (client: string, id: string) => Promise<unknown>> = {
      'its removal': async (client, id) => await clients.removeSecret(client, id, root),
      'the client': async (client) => await clients.remove(client, root),
      'all clients of a user': async () => await clients.removeOwned(user.user_id, root),
      'a public client': async (client) => await clients.patch(client, { data: { grants: ['code', 'refresh'], tokenAuth: 'none' } }, root),
      'new secrets for a user': async () => await clients.replaceSecrets(user.user_id, root)
    }
    for (const [name, walk] of Object.entries(roads)) {
      const client = await register()
      const { id } = await add(client, 20)
      t.not(await records.get(id), null)
      await walk(client, id)
      t.equal(await records.get(id), null, name)
    }
    const client = await register()
    const { id } = await add(client, 20)
    const left = (await records.get(id))!
    await clients.removeSecret(client, id, root)
    await records.insert(left)
    t.strictSame(await pass(7), { mails: [], events: [] })
    t.equal(await records.get(id), null)
    for (let count = 0; count < 5; count++) await add(client, 20)
    await t.rejects(add(client, 20), { code: 'ErrLimit' })
    t.equal(await records.count({}), 5, 'a refused secret leaves none')
    await clients.remove(client, root)
  })

  await t.test('a helper of the kit adds one', async (t) => {
    const app = await harness.register({ name: 'Nightly', first_party: false })
    const { secret, client_id } = await kit.secret('Nightly', { expires_in: 60 })
    t.equal(client_id, app.client_id)
    const authenticate = async () => (await harness.post('token', { grant_type: 'client_credentials' }, { ...app, client_secret: secret })).status
    t.equal(await authenticate(), 200)
    kit.clock.advance(60_000)
    t.equal(await authenticate(), 401)
    await t.rejects(kit.secret('Nobody'), { message: "there is no client 'Nobody'" })
    await clients.remove(client_id, root)
  })

  await t.test('of two processes one tells', async (t) => {
    const client = await register()
    await add(client, 20)
    kit.clock.advance(7 * DAY)
    await Promise.all([secretEnds.flush(), secretEnds.flush()])
    t.equal((await look()).events.length, 1)
  })
})
