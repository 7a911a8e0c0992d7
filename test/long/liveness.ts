import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { serviceEnv, startProgram } from '../helpers/process.ts'
import { call } from '../helpers/upstream.ts'

const CONNECTIONS = 1_000
/** Milliseconds of load, and of its first part, in which the code of a new process is not compiled yet. */
const LOAD = 20_000
const COLD = 5_000
/** Timeout of an orchestrator's probe in milliseconds. */
const TIMEOUT = 1_000

/**
 * Calls `/health/live` while the service refuses the requests of a thousand connections. False when an answer takes more than a
 * second after the first five.
 */
export async function run (): Promise<string | boolean> {
  const dir = mkdtempSync(join(tmpdir(), 'liveness-'))
  const endings: (() => unknown)[] = [() => rmSync(dir, { recursive: true, force: true })]
  const t = { teardown: (fn: () => unknown) => endings.unshift(fn) }
  try {
    const service = startProgram(t, 'server.ts', { env: serviceEnv(dir, { IDENTITY_BCRYPT_COST: '12', IDENTITY_HASH_QUEUE: '1' }) })
    const [, token = '', url = ''] = await service.seen(/^ {2}curl -H 'Authorization: Bearer ([\w-]{43})' (http:\/\/127\.0\.0\.1:\d+)\//m)
    const load = new Worker(new URL('../fixtures/refused-load-thread.ts', import.meta.url), { workerData: { url, connections: CONNECTIONS, headers: { authorization: `Bearer ${token}` } } })
    await once(load, 'message')
    const [cold, waits]: [number[], number[]] = [[], []]
    const start = performance.now()
    for (let begin = start; begin < start + LOAD; begin = performance.now()) {
      const { status } = await call(`${url}/health/live`)
      if (status !== 200) throw new Error(`/health/live answered ${status}`)
      const list = begin < start + COLD ? cold : waits
      list.push(performance.now() - begin)
    }
    load.postMessage('stop')
    const [statuses] = await once(load, 'message') as [Record<string, number>]
    waits.sort((one, other) => one - other)
    const longest = waits.at(-1) ?? Infinity
    const line = `/health/live: ${waits.length} answers, median ${Math.round(waits[waits.length >> 1] ?? 0)} ms, longest ${Math.round(longest)} ms (${Math.round(Math.max(...cold))} ms in the first ${COLD / 1000} s), beside ${JSON.stringify(statuses)}`
    if (longest <= TIMEOUT && (statuses[503] ?? 0) > CONNECTIONS) return line
    console.log(line)
    return false
  } finally {
    for (const end of endings) await end()
  }
}
