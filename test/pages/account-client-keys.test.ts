import { createPublicKey } from 'node:crypto'
import t from 'tap'
import { type TestKey, assert, createTestKey, toFields } from '../helpers/assertions.ts'
import { type Answer, eachStore } from '../oidc/harness.ts'
import { addUser, enter, post } from './visits.ts'

eachStore(t, 'the keys of an own client: list, new ones, a removal', async (t, start) => {
  const harness = await start()
  const { user, kit, browser, post: call } = harness
  const { clients } = kit.app.identity
  const ann = { user_id: user.user_id, isAdmin: false }
  const app = await harness.register({ first_party: false, name: 'Mine' })
  const path = `/account/clients/${app.client_id}`
  const tab = browser()
  await enter(harness, '/account', tab)
  const list = async () => (await clients.listKeys(app.client_id, ann)).map(({ kid }) => kid)
  const add = async (key: unknown) => await post(await tab.open(path), path, { action: 'add-key', key: typeof key === 'string' ? key : JSON.stringify(key) })

  const [one, two] = [createTestKey('ES256', 'one'), createTestKey('RS256', 'two')]
  t.match((await tab.open(path)).text, 'Keys take effect when the app is set to use them')
  t.match((await add(one.jwk)).text, 'The key was added.')
  t.match((await add({ keys: [two.jwk, createTestKey('EdDSA', 'three').jwk] })).text, '<code>three</code>')
  const pem = createPublicKey(createTestKey('ES256').privateKey).export({ format: 'pem', type: 'spki' })
  t.equal((await add(pem)).response.status, 200)
  t.strictSame((await list()).slice(0, 3), ['one', 'two', 'three'])
  t.equal((await list()).length, 4)

  const secret = createTestKey('ES256').privateKey
  for (const [key, text, status = 400] of [
    [one.jwk, 'already has this key'],
    [{ ...createTestKey('ES256').jwk, kid: 'one' }, 'already has this key'],
    [{ kty: 'oct', k: 'c2VjcmV0' }, 'This is a private key'],
    [secret.export({ format: 'jwk' }), 'This is a private key'],
    [secret.export({ format: 'pem', type: 'pkcs8' }), 'This is a private key'],
    [{ keys: ['four', 'five'].map((kid) => createTestKey('ES256', kid).jwk) }, 'can have 5 keys', 429],
    [{ keys: [] }, 'This key can’t be used'],
    [{ keys: null }, 'This key can’t be used'],
    ['null', 'This key can’t be used'],
    ['<b>', 'This key can’t be used']
  ] as const) {
    const refused = await add(key)
    t.match(refused.text, text, JSON.stringify(key))
    t.match(refused.text, 'aria-invalid="true"')
    t.equal(refused.response.status, status)
    t.notMatch(refused.text, String(secret.export({ format: 'jwk' }).d), 'a private key is not repeated')
    t.notMatch(refused.text, String(secret.export({ format: 'pem', type: 'pkcs8' })).split('\n')[1]!)
  }
  t.equal((await list()).length, 4)

  await clients.patch(app.client_id, { data: { tokenAuth: 'private_key_jwt' } }, ann)
  await clients.removeSecret(app.client_id, 'first', ann)
  const issuer = String((await (await fetch(`${harness.url}/.well-known/openid-configuration`)).json() as { issuer: string }).issuer)
  const sign = async (key: TestKey) => await call('token', { grant_type: 'client_credentials', ...toFields(await assert(app.client_id, issuer, key)) })
  const [kept, ended] = await Promise.all([sign(one), sign(two)])
  const page = await tab.open(path)
  t.match(page.text, 'The app authenticates with a key')
  t.match(page.text, 'Last used <time')
  t.notMatch(page.text, 'No secrets left', 'a program with a key needs none')
  t.match((await tab.open('/account/clients')).text, 'With a key')

  const id = (await clients.listKeys(app.client_id, ann))[1]!.id
  const asked = await post(page, path, { action: 'remove-key', key: id })
  t.match(asked.text, 'Remove the key <bdi>two</bdi>?')
  t.ok((await list()).includes('two'), 'not before the answer')
  t.match((await post(asked, path, { action: 'remove-key', key: id, confirm: 'yes' })).text, 'The key was removed.')
  t.notOk((await list()).includes('two'))
  const seen = async ({ body }: Answer) => (await harness.get('tokeninfo', String(body.access_token))).status
  t.strictSame([await seen(kept), await seen(ended)], [200, 401])
  for (const fields of [{}, { confirm: 'yes' }] as Record<string, string>[]) t.equal((await post(asked, path, { action: 'remove-key', key: id, ...fields })).response.status, 404)

  const bob = await enter(harness, '/account', browser(), await addUser(harness, 'bob'))
  const changes: Record<string, string>[] = [{ action: 'add-key', key: JSON.stringify(createTestKey('ES256').jwk) }, { action: 'remove-key', key: 'one', confirm: 'yes' }]
  for (const fields of changes) t.equal((await post(bob, path, fields)).response.status, 404)
  kit.clock.advance(11 * 60_000)
  const before = await list()
  for (const fields of changes) t.equal((await post(page, path, fields)).title, 'Confirm it’s you', 'only after a fresh sign-in')
  t.strictSame(await list(), before)
  await clients.patch(app.client_id, { data: { first_party: true } }, { ...ann, isAdmin: true })
  const again = await enter(harness, '/account', browser())
  for (const fields of changes) t.match(await post(again, path, fields), { response: { status: 403 }, text: /has verified this app/ })
})
