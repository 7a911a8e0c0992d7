import { once } from 'node:events'
import { type AddressInfo, type Socket, connect, createServer } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openStore } from '../../../../lib/store/index.ts'
import { getTurn } from '../../../../lib/store/sqlite/turn.ts'
import { COLLECTIONS, type Thing } from '../conformance/suite.ts'

t.test('a turn lasts until the event loop polls for I/O', async (t) => {
  const turn = getTurn()
  await Promise.resolve()
  await new Promise<void>((resolve) => process.nextTick(resolve))
  t.equal(getTurn(), turn)
  await nextTurn()
  await nextTurn()
  t.ok(getTurn() > turn)
})

t.test('a request that arrives after a commit sees it, in whichever phase of the event loop the previous look-up was', async (t) => {
  const path = `${t.testdir()}/store.db`
  const store = await openStore(`sqlite:${path}`, { collections: COLLECTIONS, now: Date.now })
  const things = store.collection<Thing>('things')
  // The store writes too: it gives the content a new version after each change by another program.
  const raw = new DatabaseSync(path, { timeout: 10_000 })
  const look = () => (things.getLinked('a', {}) as { document: Thing }).document.rank
  await things.insert({ id: 'a', rank: 0 })
  const client = await startEcho(t, () => String(look()))
  const other = await startEcho(t, () => 'woken')
  t.teardown(async () => {
    raw.close()
    await store.close()
  })
  const places: Record<string, (run: () => void) => unknown> = {
    'in a timer': (run) => setTimeout(run, 1),
    'in an immediate': (run) => setImmediate(run),
    'in an immediate after a timer': (run) => setTimeout(() => setImmediate(run), 1),
    'in a timer after an immediate': (run) => setImmediate(() => setTimeout(run, 1)),
    'in a callback of I/O': (run) => {
      other.once('data', run)
      other.write('x')
    }
  }
  let rank = 0
  for (let round = 0; round < 5; round++) {
    for (const [name, place] of Object.entries(places)) {
      const answer = once(client, 'data')
      place(() => {
        look()
        raw.exec(`UPDATE things SET doc = json_set(doc, '$.rank', ${++rank})`)
        client.write('x')
      })
      t.equal(String((await answer)[0]), String(rank), name)
    }
  }
})

/** A connection to a server in this process that answers each message. */
async function startEcho (t: Test, answer: () => string): Promise<Socket> {
  const server = createServer((socket) => socket.on('data', () => socket.write(answer())))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(client, 'connect')
  t.teardown(() => {
    client.destroy()
    server.close()
  })
  return client
}
