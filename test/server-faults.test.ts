import { closeSync, existsSync, openSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { serviceEnv, startProgram } from './helpers/process.ts'
import { call, within } from './helpers/upstream.ts'

/** A port that was free a moment ago, for a service whose log cannot tell. */
async function findPort (): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Resolves when the service answers. */
async function answers (url: string): Promise<void> {
  for (;;) {
    try {
      if ((await call(`${url}/health/ready`)).status === 200) return
    } catch {
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

t.test('a full disk under the log is no reason to end, nor to hang', { skip: !existsSync('/dev/full') && 'there is no /dev/full' }, async (t) => {
  const port = await findPort()
  const url = `http://127.0.0.1:${port}`
  const full = openSync('/dev/full', 'w')
  const service = startProgram(t, 'server.ts', { env: serviceEnv(t.testdir(), { PORT: String(port) }), stdio: ['ignore', full, 'pipe'] })
  closeSync(full)
  await within('an answer', answers(url))
  for (let i = 0; i < 20; i++) t.equal((await call(`${url}/health/ready`)).status, 200)
  service.child.kill('SIGTERM')
  t.equal(await within('the end', service.ended), 0)
})
