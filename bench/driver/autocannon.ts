import autocannon from 'autocannon'
import { expose } from '../expose.ts'

// A second driver, to hold the first one against (check.ts).

const calls = {
  async run ({ port, token, seconds, connections }: { port: number, token: string, seconds: number, connections: number }) {
    const cpu = process.cpuUsage()
    const start = performance.now()
    const { requests, latency, non2xx, errors } = await autocannon({
      url: `http://127.0.0.1:${port}/api/v1/auth/tokeninfo`, headers: { authorization: `Bearer ${token}` }, duration: seconds, connections
    })
    if (non2xx + errors > 0) throw new Error(`${non2xx} other answers, ${errors} errors`)
    const { user, system } = process.cpuUsage(cpu)
    return { rate: requests.average, p50: latency.p50, p99: latency.p99, driver: (user + system) / 1000 / (performance.now() - start) }
  }
}

export type AutocannonCalls = typeof calls

expose(calls)
process.send!({ ready: {} })
