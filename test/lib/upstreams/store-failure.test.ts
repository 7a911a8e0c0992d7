import t from 'tap'
import { createSecretBox, generateSecretKey } from '../../../lib/crypto/secrets.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createUpstreams } from '../../../lib/upstreams/upstreams.ts'
import type { Upstream } from '../../../schemas/upstream.ts'
import { recordOutages } from '../../helpers/outages.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'

const upstream: Upstream = { id: 'github', kind: 'github', clientId: 'c', clientSecret: 's', create: false, link: 'confirm', sync: 'first' }

t.test('a store that fails is not reported as a provider that does', async (t) => {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  t.teardown(() => inner.close())
  const { outages, told } = recordOutages()
  let isAway = true
  const { begin } = createUpstreams({
    store: wrapStore(inner, async (_call, run) => { if (isAway) throw new Error('the store is away'); return await run() }),
    box: createSecretBox(generateSecretKey()),
    now: Date.now,
    outbound: { read: async () => { throw new Error('nothing is called') } },
    upstreams: [upstream],
    outages
  })
  const asked = { secret: 's', redirectUri: 'https://id.example/callback', intent: { kind: 'sign_in' as const, place: {} } }
  await t.rejects(begin('github', asked), { name: 'Error', message: 'the store is away' })
  t.strictSame(told, [])
  isAway = false
  t.match(await begin('github', asked), /^https:\/\/github\.com\/login\/oauth\/authorize\?/)
})
