import type { MongoClient } from 'mongodb'
import t from 'tap'
import { WatchedClient } from '../../../../lib/store/mongo/watched-client.ts'
import { createTimers } from '../../../helpers/timers.ts'
import { ClientStandIn } from './client-stand-in.ts'
import { settled } from './server-stand-in.ts'

const TIMEOUT = 10_000

interface SetUpOptions {
  /** Creates all clients except the first. */
  create?: (() => MongoClient | Promise<MongoClient>) | undefined
}

/** An open client. Its first ping was answered, but no later one is. */
async function setUp ({ create }: SetUpOptions = {}) {
  const outages: Error[] = []
  const clients: ClientStandIn[] = []
  const errors: Error[] = []
  const timers = createTimers()
  const references: boolean[] = []
  const watched = new WatchedClient({
    create: () => {
      if (create !== undefined && clients.length > 0) return create()
      const client = new ClientStandIn()
      client.answers = clients.length === 0
      clients.push(client)
      return client.asClient()
    },
    onError: (error) => errors.push(error as Error),
    onOutage: (error) => outages.push(error),
    timeout: TIMEOUT,
    timers: {
      ...timers,
      set: (run, delay) => {
        const timer = timers.set(run, delay)
        setImmediate(() => references.push(timer.hasRef()))
        return timer
      }
    }
  })
  await watched.open()
  clients[0]!.answers = false
  return {
    watched,
    clients,
    errors,
    outages,
    advance: timers.advance,
    references,
    current: () => clients.findIndex((client) => client.asClient() === watched.current),
    /** Advances the time second by second, which runs a check in each. */
    pass: async (seconds: number) => {
      for (let second = 0; second < seconds; second++) {
        timers.advance(1_000)
        await settled()
      }
    }
  }
}

t.test('a client that is lost is replaced by one that answers, and closed', async (t) => {
  const { watched, clients, errors, current, pass } = await setUp()
  const [lost] = clients
  lost!.see('Unknown')
  await pass(2)
  t.equal(clients.length, 1)
  await pass(1)
  t.equal(clients.length, 2)
  t.equal(current(), 0, 'which stays in use until the new one answers')
  t.equal(lost!.closed, 0)
  clients[1]!.answer()
  await settled()
  t.equal(current(), 1)
  t.equal(lost!.closed, 1)
  t.match(errors, [{ name: 'ReconnectedError', message: 'MongoDB client replaced after 3 s without an answer' }])
  lost!.see('Unknown')
  await pass(20)
  t.equal(clients.length, 2, 'and the new one is not touched')
  await watched.close()
  t.strictSame(clients.map(({ closed }) => closed), [1, 1])
})

t.test('the new client is watched like the first', async (t) => {
  const { watched, clients, current, pass } = await setUp()
  clients[0]!.see('Unknown')
  await pass(3)
  clients[1]!.answer()
  await settled()
  clients[1]!.answers = false
  clients[1]!.see('Unknown')
  await pass(4)
  t.equal(clients.length, 3)
  clients[2]!.answer()
  await settled()
  t.equal(current(), 2)
  await watched.close()
})

t.test('while the driver sees a server, calls may be slow for ten seconds', async (t) => {
  const { watched, clients, pass } = await setUp()
  clients[0]!.see('Unknown')
  clients[0]!.see('Standalone')
  await pass(9)
  t.equal(clients.length, 1)
  await pass(1)
  t.equal(clients.length, 2)
  await watched.close()
})

t.test('the server is pinged only when nothing else was answered', async (t) => {
  const { watched, clients, pass } = await setUp()
  const [client] = clients
  client!.answers = true
  const before = client!.count
  for (let second = 0; second < 10; second++) {
    watched.onAnswer()
    await pass(1)
  }
  t.equal(client!.count, before)
  await pass(10)
  t.equal(client!.count, before + 5, 'and without calls every other second')
  t.equal(clients.length, 1)
  await watched.close()
})

t.test('while the server is down there is one attempt at a time, after a pause, and each failed client is closed', async (t) => {
  const { watched, clients, current, pass } = await setUp()
  clients[0]!.see('Unknown')
  await pass(3)
  const started: number[] = []
  for (let second = 3; second < 70; second++) {
    if (clients.length > started.length + 1) started.push(second)
    t.ok(clients.filter(({ closed }) => closed === 0).length <= 2, 'the lost client and one attempt')
    await pass(1)
  }
  t.strictSame(started, [3, 14, 26, 38, 50, 62], 'ten seconds each; the pause is one second, then two')
  clients.at(-1)!.answer()
  await settled()
  t.equal(current(), clients.length - 1)
  t.strictSame(clients.map(({ closed }) => closed), [...clients.slice(1).map(() => 1), 0])
  await watched.close()
})

t.test('an answer of the old client ends the attempt', async (t) => {
  const { watched, clients, errors, current, pass } = await setUp()
  clients[0]!.see('Unknown')
  await pass(3)
  watched.onAnswer()
  clients[1]!.answer()
  await settled()
  t.equal(current(), 0)
  t.strictSame(clients.map(({ closed }) => closed), [0, 1])
  t.strictSame(errors, [])
  await pass(2)
  t.equal(clients.length, 2, 'it counts as a working client again')
  await watched.close()
})

t.test('closing during an attempt closes both clients and ends the checks', async (t) => {
  const { watched, clients, current, pass } = await setUp()
  clients[0]!.see('Unknown')
  await pass(3)
  await watched.close()
  t.ok(clients.every(({ closed }) => closed > 0))
  await pass(30)
  t.equal(clients.length, 2)
  t.equal(current(), 0)
})

t.test('calls fail at once while no server has been known for a second', async (t) => {
  const { watched, clients, outages, pass } = await setUp()
  const [client] = clients
  watched.admit()
  client!.see('Unknown')
  watched.admit()
  await pass(1)
  t.throws(() => watched.admit(), { message: 'no MongoDB server could be reached for 1 s' })
  t.match(outages, [{ message: /could be reached for 1 s/ }], 'and those in flight fail')
  await pass(1)
  t.equal(outages.length, 2, 'again, for calls that were answered meanwhile')
  client!.see('Standalone')
  watched.admit()
  await pass(1)
  t.equal(outages.length, 2)
  await watched.close()
})

t.test('a server that answers is not missed, though the driver sees none', async (t) => {
  const { watched, clients, outages, advance } = await setUp()
  clients[0]!.see('Unknown')
  for (let second = 0; second < 5; second++) {
    watched.onAnswer()
    watched.admit()
    advance(500)
  }
  await watched.close()
  t.strictSame(outages, [])
})

t.test('calls fail at once while a server answers nothing, pings included; those in flight may still be answered', async (t) => {
  const { watched, clients, outages, pass } = await setUp()
  await pass(2)
  watched.admit()
  await pass(1)
  t.throws(() => watched.admit(), { message: 'the MongoDB server has answered nothing for 3 s' })
  t.strictSame(outages, [])
  const { count } = clients[0]!
  await pass(3)
  t.equal(clients[0]!.count, count + 3, 'a ping each second tries again')
  clients[0]!.answer()
  await settled()
  watched.admit()
  await watched.close()
})

t.test('a function that takes too long is called again, and its late client is closed', async (t) => {
  const answers: PromiseWithResolvers<MongoClient>[] = []
  const create = () => {
    answers.push(Promise.withResolvers())
    return answers.at(-1)!.promise
  }
  const { watched, clients, current, pass } = await setUp({ create })
  clients[0]!.see('Unknown')
  await pass(14)
  t.equal(answers.length, 2)
  const [late, next, last] = [new ClientStandIn(), new ClientStandIn(), new ClientStandIn()]
  answers[0]!.resolve(late.asClient())
  await settled()
  t.equal(late.closed, 1)
  next.answers = true
  answers[1]!.resolve(next.asClient())
  await settled()
  t.equal(watched.current, next.asClient())
  t.equal(current(), -1)
  next.answers = false
  next.see('Unknown')
  await pass(4)
  await watched.close()
  answers[2]!.resolve(last.asClient())
  await settled()
  t.equal(last.closed, 1, 'also when the store was closed meanwhile')
})

t.test('a function that fails, or returns the lost client, is called again', async (t) => {
  let call = 0
  const good = new ClientStandIn()
  good.answers = true
  const { watched, clients, pass } = await setUp({
    create: () => {
      if (++call === 1) throw new Error('no password at hand')
      return call === 2 ? watched.current : good.asClient()
    }
  })
  clients[0]!.see('Unknown')
  await pass(4)
  t.equal(call, 2)
  t.equal(clients[0]!.closed, 0)
  await pass(2)
  t.equal(watched.current, good.asClient())
  await watched.close()
})

t.test('a first client that does not answer is closed', async (t) => {
  const timers = createTimers()
  const client = new ClientStandIn()
  const watched = new WatchedClient({ create: () => client.asClient(), timeout: TIMEOUT, timers })
  const opening = t.rejects(watched.open(), { message: 'no answer within 10000 ms' })
  timers.advance(TIMEOUT)
  await opening
  t.equal(client.closed, 1)
  await watched.close()
})

t.test('no timer keeps the process alive', async (t) => {
  const { watched, clients, references, pass } = await setUp()
  clients[0]!.see('Unknown')
  await pass(20)
  await watched.close()
  t.ok(references.length > 20)
  t.notOk(references.includes(true))
})
