import t from 'tap'
import { BEGIN, openRules } from '../../helpers/services.ts'

// What no route shows; test/spec/client*.test.ts has the rules of the interface.

const ADMIN = { user_id: 'admin', isAdmin: true }
const ANN = { user_id: 'ann', isAdmin: false }
const NOT_FOUND = { code: 'ErrNotFound', message: 'clientId: no such client' }
const data = { redirectUris: ['https://a.example/'], scopes: ['a'], name: 'n' }

t.test('create: what bootstrap and the command line give', async (t) => {
  const { clients, records } = await openRules(t)
  await clients.create({ data: { ...data, image: 'https://a.example/i', first_party: true } }, ADMIN, { id: 'given' })
  const record = { createdAt: BEGIN, modifiedAt: BEGIN, ...data, userId: 'ann', epoch: 0, revision: 0 }
  t.strictSame(await records.clients.get('given'), { id: 'given', ...record, words: ['n', 'given'], userId: 'admin', image: 'https://a.example/i', first_party: true })
  for (const actor of [ANN, { ...ADMIN, user_id: 'ann' }]) {
    const { clientId } = await clients.create({ data: { ...data, ...(actor.isAdmin && { first_party: false }) } }, actor)
    t.strictSame(await records.clients.get(clientId), { id: clientId, ...record, words: ['n', clientId.toLowerCase()] }, 'fields that are not given are absent')
  }
})

t.test('a list shows to each caller only the permitted fields', async (t) => {
  const { clients } = await openRules(t)
  const { clientId } = await clients.create({ data }, ANN)
  await clients.create({ data }, ADMIN)
  const shown = { clientId, createdAt: BEGIN, modifiedAt: BEGIN, ...data }
  const read = async (actor: typeof ANN, user?: string) => {
    const listed: object[] = []
    for await (const batch of clients.list(user === undefined ? {} : { user }, actor)) listed.push(...batch)
    // As JSON, which leaves out fields that are undefined.
    return JSON.parse(JSON.stringify(listed)) as object[]
  }
  t.strictSame(await read(ANN), [shown])
  t.strictSame(await read(ANN, 'admin'), [shown])
  t.strictSame(await read(ADMIN, 'ann'), [{ ...shown, userId: 'ann' }])
  t.equal((await read(ADMIN)).length, 2)
})

t.test('a new secret increments the epoch, so that a token that is being minted is revoked too', async (t) => {
  const { clients, records } = await openRules(t)
  const { clientId } = await clients.create({ data, credentials: true }, ANN)
  const before = await clients.require(clientId, ANN)
  await clients.patch(clientId, { data: { name: 'new' } }, ANN)
  t.match(await records.clients.get(clientId), { epoch: 0, name: 'new' })
  t.equal((await clients.require(clientId, ANN)).clientSecret, before.clientSecret)
  await clients.patch(clientId, { regen_secret: true }, ANN)
  t.match(await records.clients.get(clientId), { epoch: 1, name: 'new' })
  t.not((await clients.require(clientId, ANN)).clientSecret, before.clientSecret)
})

t.test('a client that is removed between the read and the write is not found', async (t) => {
  let gone = false
  const { clients, records } = await openRules(t, {
    around: async ({ collection, method, args }, run) => {
      if (gone && collection === 'clients' && ['update', 'delete'].includes(method)) await records.clients.delete(args[0] as string)
      return await run()
    }
  })
  for (const act of [
    (id: string) => clients.patch(id, { data: { name: 'x' } }, ANN),
    (id: string) => clients.remove(id, ANN)
  ]) {
    gone = false
    const { clientId } = await clients.create({ data }, ANN)
    gone = true
    await t.rejects(act(clientId), NOT_FOUND)
    t.equal(await records.clients.count(), 0)
  }
})

t.test('a scope that its owner gave stays theirs when the resource withdraws it from self-service', async (t) => {
  const { clients, resources } = await openRules(t)
  const { resourceId } = await resources.create({ data: { id: 'https://orders.example', name: 'Orders', scopes: { 'orders:read': 'read orders' }, selfService: ['orders:read'] } })
  const scopes = ['orders:read']
  const { clientId } = await clients.create({ data: { ...data, scopes }, credentials: true }, ANN)
  await resources.patch(resourceId, { data: { selfService: [] } })
  t.ok((await clients.require(clientId, ANN)).clientSecret)
  await clients.patch(clientId, { data: { scopes, name: 'renamed' } }, ANN)
  await t.rejects(clients.create({ data: { ...data, scopes } }, ANN), { code: 'ErrPerm' })

  const { clientId: vouched } = await clients.create({ data: { ...data, scopes }, credentials: true }, { ...ADMIN, user_id: 'ann' })
  await t.rejects(clients.require(vouched, ANN), { code: 'ErrPerm' })
  await resources.patch(resourceId, { data: { selfService: scopes } })
  await t.rejects(clients.patch(vouched, { data: { name: 'mine' } }, ANN), { code: 'ErrPerm' })
})
