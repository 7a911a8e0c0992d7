import t from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { createKeys, PUBLISHED_BEFORE_USE } from '../../lib/oidc/keys.ts'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { openStore } from '../../lib/store/index.ts'
import { askCode, eachStore, getCode } from './harness.ts'

eachStore(t, 'no secret is stored in the clear', async (t, start) => {
  const harness = await start()
  const { post, register, kit, browser, user } = harness
  const app = await register()
  const secrets: string[] = [app.client_secret, user.password]
  const visitor = browser()
  const code = await getCode(harness, app, {}, visitor)
  const { body } = await post('token', code, app)
  secrets.push(code.code, String(body.access_token), String(body.refresh_token), String((await getCode(harness, app)).code))
  secrets.push(String((await post('token', { grant_type: 'client_credentials' }, app)).body.access_token))
  const pushed = (await post('par', Object.fromEntries(new URL(askCode(app).url, 'http://x').searchParams), app)).body.request_uri as string
  secrets.push(pushed.split(':').at(-1) ?? '')
  const device = (await post('device_authorization', { scope: 'openid' }, app)).body as Record<string, string>
  secrets.push(device.device_code ?? '', device.user_code ?? '', (device.user_code ?? '').replace('-', ''))
  // Pending interactions: one of an authorization, one of a device.
  const waiting = await browser().open(askCode(app, { request_uri: pushed, redirect_uri: undefined }).url)
  const atDevice = await (await browser().open('/api/v1/auth/device')).submit({ user_code: device.user_code ?? '' })
  for (const page of [waiting, atDevice]) {
    t.equal(page.title, 'Sign in')
    secrets.push(/interaction\/([^"]+)"/.exec(page.text)?.[1] ?? '')
  }
  // One cookie holds the id of the app, which is no secret.
  secrets.push(...visitor.cookies().filter((value) => value !== app.client_id))
  t.ok(secrets.length > 12)
  t.ok(secrets.every((secret) => secret.length > 7), 'each secret was found')

  let documents = 0
  for (const { name } of COLLECTIONS) {
    for await (const batch of kit.app.identity.store.collection(name).stream()) {
      documents += batch.length
      const text = JSON.stringify(batch)
      for (const [index, secret] of secrets.entries()) t.notOk(text.includes(secret), `${name} does not hold secret ${index}`)
    }
  }
  t.ok(documents > 12)
})

t.test('keys', async (t) => {
  let time = Date.parse('2026-01-01')
  const now = () => time
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now })
  t.teardown(() => store.close())
  const box = createSecretBox(generateSecretKey())
  const replicas = [createKeys({ store, box, now }), createKeys({ store, box, now }), createKeys({ store, box, now })]
  const rings = await Promise.all(replicas.map((keys) => keys.load()))
  t.equal(new Set(rings.map(({ signing }) => signing[0]?.kid)).size, 1, 'replicas that start at once agree')
  const [first] = rings as [typeof rings[0] & object]
  t.notMatch(JSON.stringify(await store.collection('keys').get('oidc')), String(first.signing[0]?.d))

  const keys = replicas[0] as typeof replicas[0] & object
  const { kid, since } = await keys.rotate()
  t.equal(since, time + PUBLISHED_BEFORE_USE)
  const published = await keys.load()
  t.not(published.version, first.version)
  t.strictSame(published.signing.map((key) => key.kid), [first.signing[0]?.kid, kid], 'published before it signs')
  time = since
  const used = await keys.load()
  t.not(used.version, published.version)
  t.strictSame(used.signing.map((key) => key.kid), [kid, first.signing[0]?.kid], 'the old one is still published')
  t.strictSame(used.cookies.length, 2)

  await Promise.all([replicas[1]?.rotate(), replicas[2]?.rotate()])
  time += PUBLISHED_BEFORE_USE
  const last = await keys.load()
  t.strictSame(last.signing.slice(2).map((key) => key.kid), [kid, first.signing[0]?.kid], 'two rotations at once create two keys')
  await keys.rotate()
  t.equal((await keys.load()).signing.length, 5, 'keys that may have signed an access token of the last hour stay')
  time += 60 * 60_000 + PUBLISHED_BEFORE_USE
  await keys.rotate()
  t.equal((await keys.load()).signing.length, 3, 'later, keys older than the previous one are deleted')
})

t.test('keys of ES256: apart from those of RS256, and in a database of an earlier release', async (t) => {
  let time = Date.parse('2026-01-01')
  const now = () => time
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now })
  t.teardown(() => store.close())
  const box = createSecretBox(generateSecretKey())
  const replicas = [createKeys({ store, box, now }), createKeys({ store, box, now })] as const
  const [keys] = replicas
  const list = async () => {
    const { signing, ecSigning, cookies } = await keys.load()
    return [signing, ecSigning].map((ring) => ring.map(({ kid }) => kid)).concat([cookies])
  }
  const [[rsa], [ec]] = await list() as [string[], string[]]
  const records = store.collection<{ id: string, sealed: string }>('keys')
  const { ec: _, ...earlier } = JSON.parse(box.open((await records.get('oidc'))!.sealed, 'oidc')) as Record<string, unknown>
  await records.update('oidc', { set: { sealed: box.seal(JSON.stringify(earlier), 'oidc') } })
  const upgraded = await Promise.all(replicas.map(async (one) => await one.load()))
  t.equal(new Set(upgraded.map(({ ecSigning }) => ecSigning[0]?.kid)).size, 1, 'replicas agree on the new key')
  t.match(upgraded[0], { signing: [{ kid: rsa, alg: 'RS256' }], ecSigning: [{ alg: 'ES256', kty: 'EC', crv: 'P-256' }] })
  const [, [added], cookies] = await list() as [string[], string[], string[]]
  t.not(added, ec)
  const { kid, since } = await keys.rotate({ alg: 'ES256' })
  t.strictSame(await list(), [[rsa], [added, kid], cookies], 'published before it signs; the RSA key and the cookies stay')
  time = since
  t.strictSame(await list(), [[rsa], [kid, added], cookies])
  const next = await keys.rotate()
  time = next.since
  t.strictSame((await list()).slice(0, 2), [[next.kid, rsa], [kid, added]])
  const { kid: dropped } = await keys.rotate({ alg: 'ES256', dropFormer: true })
  const after = await list()
  t.strictSame(after[1], [dropped])
  t.strictSame(after.map(({ length }) => length), [1, 1, 1])
  t.notOk(after[0]!.includes(next.kid))
})
