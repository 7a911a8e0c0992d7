import t, { type Test } from 'tap'
import { openMongoStore } from '../../../../lib/store/mongo.ts'
import { createTimers } from '../../../helpers/timers.ts'
import { ClientStandIn } from './client-stand-in.ts'
import { settled } from './server-stand-in.ts'

// Stand-ins for a host's clients: they answer pings until the test says otherwise.

const TIMEOUT = 10_000

function createClient (): ClientStandIn {
  const client = new ClientStandIn()
  client.answers = true
  return client
}

async function open (t: Test, client: ClientStandIn | (() => ClientStandIn)) {
  const timers = createTimers()
  const store = await openMongoStore('mongodb://db.example.com/identity', {
    collections: [],
    now: Date.now,
    timeout: TIMEOUT,
    timers,
    client: typeof client === 'function' ? () => client().asClient() : client.asClient()
  })
  t.teardown(() => store.close())
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      timers.advance(1_000)
      await settled()
    }
  }
  return { store, pass }
}

t.test('a function is called again when its client is lost, and the store is unready in between', async (t) => {
  const clients: ClientStandIn[] = []
  const { store, pass } = await open(t, () => {
    clients.push(createClient())
    return clients.at(-1)!
  })
  await store.ping()
  clients[0]!.answers = false
  clients[0]!.see('Unknown')
  const unready = t.rejects(store.ping(), { code: 'ErrDb' })
  await pass(4)
  await unready
  t.equal(clients.length, 2)
  await t.resolves(store.ping())
  t.strictSame(clients.map(({ closed }) => closed), [1, 0])
  await store.close()
  t.strictSame(clients.map(({ closed }) => closed), [1, 1])
})

t.test('a host\'s own client that stays lost is reported unready, and never closed', async (t) => {
  const client = createClient()
  const { store, pass } = await open(t, client)
  const before = client.count
  await pass(20)
  t.equal(client.count, before, 'nothing is sent on it without a call')
  client.answers = false
  const unready = store.ping().then(() => null, (error: unknown) => error)
  client.fail(new Error('server selection timed out'))
  t.match(await unready, { code: 'ErrDb', cause: { message: /hand in a function/, cause: { message: 'server selection timed out' } } })
  const silent = store.ping().then(() => null, (error: unknown) => error)
  await pass(10)
  t.match(await silent, { code: 'ErrDb', cause: { message: /hand in a function/, cause: { message: 'no answer within 9000 ms' } } })
  client.answer()
  await t.resolves(store.ping(), 'and ready when it answers again')
  await store.close()
  t.equal(client.closed, 0)
})
