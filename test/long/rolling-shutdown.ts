import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../config.ts'
import { openServices } from '../../lib/identity.ts'
import { Balancer, BusyClients, mintMany } from '../helpers/balancer.ts'
import { serviceEnv, startProgram } from '../helpers/process.ts'

const SHUTDOWNS = 8
const CLIENTS = 32
/** Milliseconds between the signal and the close. The balancer polls 50 times in between, so it sees the change. */
const DELAY = 1_000

/** Sends SIGTERM to processes behind a balancer, with a shutdown delay. Rejects when a request fails. */
export async function run (): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'rolling-shutdown-'))
  const endings: (() => unknown)[] = [() => rmSync(dir, { recursive: true, force: true })]
  const t = { teardown: (fn: () => unknown) => endings.unshift(fn) }
  try {
    const env = serviceEnv(dir, { IDENTITY_SHUTDOWN_DELAY: String(DELAY), IDENTITY_WRITE_LIMIT: 'off' })
    const balancer = new Balancer()
    t.teardown(() => balancer.close())
    const start = async () => {
      const service = startProgram(t, 'server.ts', { env })
      const [, url = ''] = await service.seen(/"msg":"Server listening at (http:[^"]+)"/)
      await balancer.add(url)
      return { service, url }
    }
    let current = await start()
    const services = await openServices(readConfig(env).services)
    const tokens = await mintMany(services, CLIENTS)
    await services.close()
    const clients = new BusyClients(await balancer.listen(), tokens)
    for (let count = 0; count < SHUTDOWNS; count++) {
      const next = await start()
      await clients.more(CLIENTS)
      current.service.child.kill('SIGTERM')
      const code = await current.service.ended
      if (code !== 0) throw new Error(`a service ended with ${code}`)
      balancer.remove(current.url)
      current = next
    }
    await clients.stop()
    const failures = [...balancer.failures, ...clients.failures]
    if (failures.length > 0) throw new Error(`${failures.length} of ${clients.answered} requests failed:\n${failures.slice(0, 10).join('\n')}`)
    return `${SHUTDOWNS} shutdowns behind a balancer, ${clients.answered} requests of ${CLIENTS} clients, none failed`
  } finally {
    for (const end of endings) await end()
  }
}
