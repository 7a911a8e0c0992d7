// `npm run test:clients`: schemathesis makes requests from the OpenAPI document, single ones and sequences, with the token of an
// administrator. FUZZ_SEED and FUZZ_EXAMPLES try others and more.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { startIdentity } from '../../testing/index.ts'
import { PYTHON, check, startService } from './service.ts'

/** Tokens after which there is a new administrator: requests also delete and disable users. */
const TURN = 50

t.setTimeout(30 * 60_000)

t.test('schemathesis finds nothing', async (t) => {
  const { url, register, database, secretKey } = await startService(t)
  const app = await register({ name: 'Fuzzer', redirectUris: ['https://app.example/callback'], scopes: ['clients:read'], grants: ['client', 'code', 'refresh', 'device'] })
  const kit = await startIdentity({ t, database, secretKey })
  let count = 0
  const minter = createServer((_request, response) => {
    const user = `fuzzer-${Math.floor(count++ / TURN)}`
    kit.mint({ user, roles: ['admin'] }).then(({ access_token }) => response.end(access_token), (error) => response.destroy(error))
  }).listen(0, '127.0.0.1')
  await once(minter, 'listening')
  t.teardown(() => { minter.close() })

  const { FUZZ_SEED = '1', FUZZ_EXAMPLES } = process.env
  await check(t, PYTHON, 'schemathesis', [
    'run', `${url}/openapi.json`, '--continue-on-failure', '--seed', FUZZ_SEED, ...(FUZZ_EXAMPLES === undefined ? [] : ['--max-examples', FUZZ_EXAMPLES])
  ], { PYTHONPATH: '.', PYTHONDONTWRITEBYTECODE: '1', MINT: `http://127.0.0.1:${(minter.address() as AddressInfo).port}/`, CLIENT: `${app.client_id}:${app.client_secret}` })
  t.equal((await fetch(`${url}/health/ready`)).status, 200)
})
