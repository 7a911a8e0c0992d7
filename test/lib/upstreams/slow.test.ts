import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { createSecretBox, generateSecretKey } from '../../../lib/crypto/secrets.ts'
import { createOutbound } from '../../../lib/outbound/fetcher.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createUpstreams } from '../../../lib/upstreams/upstreams.ts'
import { recordOutages } from '../../helpers/outages.ts'
import { listen } from '../../helpers/upstream.ts'

const HOST = '127.0.0.1'

/** Answers that never end, in the ways in which a provider can be slow. */
const SLOW: Record<string, (response: ServerResponse) => void> = {
  'never answers': () => {},
  'never ends its answer': (response) => { response.writeHead(200, { 'content-type': 'application/json' }).write('{') },
  'sends a byte now and then' (response) {
    response.writeHead(200, { 'content-type': 'application/json' })
    const timer = setInterval(() => { response.write(' ') }, 5)
    response.on('close', () => { clearInterval(timer) })
  }
}

t.test('a slow provider is given up at the deadline, and leaves its place to others', async (t) => {
  let answer = SLOW['never answers']!
  const server = createServer((_request, response) => { answer(response) })
  await listen(server, 0)
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  const outbound = createOutbound({ allow: [HOST] })
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await Promise.all([outbound.close(), store.close()])
  })
  const { outages, told } = recordOutages()
  let down = 0
  const { begin } = createUpstreams({
    store,
    box: createSecretBox(generateSecretKey()),
    now: Date.now,
    outbound,
    upstreams: [{ id: 'slow', kind: 'oidc', issuer: `http://${HOST}:${(server.address() as AddressInfo).port}`, clientId: 'c', clientSecret: 's', create: false, link: 'confirm', sync: 'first' }],
    deadline: 50,
    outages,
    onDown: () => { down++ }
  })
  const asked = { secret: 's', redirectUri: 'https://id.example/callback', intent: { kind: 'sign_in' as const, place: {} } }
  for (const [name, slow] of Object.entries(SLOW)) {
    answer = slow
    // More than may wait for it at once: each has given its place back.
    for (let count = 0; count < 3; count++) {
      const results = await Promise.allSettled(Array.from({ length: 20 }, async () => await begin('slow', asked)))
      t.strictSame([...new Set(results.map((result) => result.status === 'rejected' ? result.reason.refusal : 'begun'))], ['down'], name)
    }
  }
  t.equal(down, 3 * 3 * 20)
  t.match(told, [/^upstream slow: /], 'one line for all of them')
})
