import t from 'tap'
import { scan } from '../../lib/store/scan.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { BATCH_SIZE, type Document } from '../../lib/store/port.ts'
import { isOfRelay } from '../helpers/events.ts'
import { isListing, wrapStore } from '../helpers/wrap-store.ts'
import { askCode, createFile, getCode, startHarness } from './harness.ts'

t.test('a scan yields every match once, while records are deleted', async (t) => {
  const store = await openStore(createFile(t), { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  const grants = store.collection<Document & { user_id: string }>('grants')
  for (const [total, user_id] of [[0, 'none'], [BATCH_SIZE, 'one'], [2 * BATCH_SIZE + 1, 'two']] as const) {
    const ids = Array.from({ length: total }, (_, index) => `${user_id} ${String(index).padStart(4, '0')}`)
    await Promise.all([...ids].reverse().map((id) => grants.insert({ id, user_id })))
    const seen: string[] = []
    for await (const batch of scan(grants, { equal: { user_id } })) {
      for (const { id } of batch) {
        seen.push(id)
        await grants.delete(id)
      }
    }
    t.strictSame(seen, ids, `${total} records`)
  }
})

t.test('look-ups of sign-in and token sessions never wait for the cursors of long lists', async (t) => {
  const lists: string[] = []
  const long: string[] = []
  const inner = await openStore(createFile(t), { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  const store = wrapStore(inner, ({ collection, method, args }, run) => {
    if (isListing(method) && !isOfRelay({ collection, method, args })) lists.push(collection)
    if (method === 'stream') long.push(collection)
    return run()
  })
  const harness = await startHarness(t, { store })
  const { post, get, url, register, browser } = harness
  const app = await register({ scopes: ['read', 'account:write'] })
  const lookUps = async (what: string, expected: string[], act: () => Promise<unknown>) => {
    lists.length = 0
    await act()
    await harness.kit.app.identity.tokens.settle()
    t.strictSame([...new Set(lists)].sort(), expected, what)
  }
  const with_ = browser()
  const { body } = await post('token', await getCode(harness, app, { scope: 'openid read account:write' }, with_), app)
  const token = String(body.access_token)
  const third = await register({ first_party: false })
  await lookUps('an authorization with an existing sign-in', ['sign_in_sessions'], async () => await getCode(harness, third, { scope: 'openid read' }, with_))
  await lookUps('the list of token sessions', ['grants'], async () => await get('sessions', token))
  await lookUps('ending all other sessions', ['access_tokens', 'authorization_codes', 'clients', 'device_codes', 'grants', 'refresh_tokens', 'sign_in_sessions'], async () =>
    await fetch(`${url}/api/v1/auth/sessions`, { method: 'DELETE', headers: { authorization: `Bearer ${token}` } }))
  await lookUps('a sign-out', ['clients', 'grants', 'sign_in_sessions'], async () => {
    for await (const [session] of inner.collection<Document & { uid: string }>('sign_in_sessions').stream({ limit: 1 })) await harness.kit.app.identity.tokens.endSignIn(session?.uid ?? '')
  })
  t.equal((await get('tokeninfo', token)).status, 401, 'the session has ended')
  t.ok((await with_.open(askCode(app, { prompt: 'none' }).url)).left?.searchParams.has('error'))
  t.strictSame(long, [])
})
