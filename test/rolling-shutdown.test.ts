import t from 'tap'
import { buildApp } from '../app.ts'
import { readConfig } from '../config.ts'
import { Balancer, BusyClients, mintMany } from './helpers/balancer.ts'
import { serviceEnv } from './helpers/process.ts'
import { within } from './helpers/upstream.ts'

const SHUTDOWNS = 8
const CLIENTS = 32

t.test('behind a balancer that polls readiness, services start and stop, and no request fails', async (t) => {
  const config = readConfig({ ...serviceEnv(t.testdir()), IDENTITY_WRITE_LIMIT: 'off' })
  const balancer = new Balancer()
  t.teardown(() => balancer.close())
  /** As in a process, a service is unready at once, and closes after a delay: here once the balancer has seen it. */
  async function start () {
    const closing = new AbortController()
    const app = await buildApp(config, { closing: closing.signal, logStream: { write () {} } })
    t.teardown(() => app.close())
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    await balancer.add(url)
    return {
      app,
      async stop () {
        closing.abort()
        await within('the balancer looks away', balancer.hasLeft(url))
        await app.close()
        balancer.remove(url)
      }
    }
  }
  let service = await start()
  const clients = new BusyClients(await balancer.listen(), await mintMany(service.app.identity, CLIENTS))
  for (let count = 0; count < SHUTDOWNS; count++) {
    const next = await start()
    await within('busy clients', clients.more(CLIENTS), 60_000)
    await within('the shutdown', service.stop(), 60_000)
    service = next
  }
  await within('busy clients', clients.more(CLIENTS), 60_000)
  await clients.stop()
  t.strictSame(balancer.failures, [])
  t.strictSame(clients.failures, [])
})
