import t from 'tap'
import { createCli } from '../helpers/cli.ts'
import { startIdentity } from '../../testing/index.ts'
import { askCode, createFile, getCode, signIn, startHarness } from './harness.ts'

t.test('keys rotate --drop-former ends what a stolen signing or cookie key could do', async (t) => {
  const database = createFile(t)
  const secretKey = Buffer.alloc(32, 1).toString('base64')
  const harness = await startHarness(t, { database, secretKey })
  const { kit, url, browser } = harness
  const app = await harness.register()
  const tab = browser()
  const tokens = (await harness.post('token', await getCode(harness, app, {}, tab), app)).body as Record<string, string>
  const kids = async (of = 'RS256') => ((await harness.get('jwks')).body.keys as { kid: string, alg: string }[]).filter(({ alg }) => alg === of).map(({ kid }) => kid)
  const { kid } = JSON.parse(Buffer.from(tokens.id_token!.split('.')[0]!, 'base64url').toString())
  t.strictSame(await kids(), [kid])
  const [curve] = await kids('ES256')
  t.ok((await signIn({ ...harness, user: { ...harness.user, password: 'none' } }, askCode(app).url, tab)).left, 'the browser is signed in')
  const restart = async (previous: typeof kit) => {
    await previous.close()
    const next = await startIdentity({ t, database, secretKey, rateLimit: false })
    await next.listen({ port: Number(new URL(url).port) })
    return next
  }
  const run = createCli('', { DATABASE_URL: database, IDENTITY_SECRET_KEY: secretKey })

  t.equal((await run('keys rotate')).code, 0)
  const second = await restart(kit)
  t.strictSame((await kids()).includes(kid), true, 'a plain rotation publishes it further')
  t.ok((await tab.open(askCode(app).url)).left, 'and browsers stay signed in')

  const dropped = (await run('keys rotate --drop-former --json')).json()
  await restart(second)
  t.strictSame(await kids(), [dropped.kid])
  t.match([await kids('ES256'), (await kids('ES256')).includes(curve!)], [{ length: 1 }, false], 'that of ES256 too')
  t.equal((await tab.open(askCode(app).url)).title, 'Sign in', 'a cookie with the signature of the former key is worth nothing')
  const renewed = (await harness.post('token', { grant_type: 'refresh_token', refresh_token: tokens.refresh_token! }, app)).body as Record<string, string>
  t.equal(JSON.parse(Buffer.from(renewed.id_token!.split('.')[0]!, 'base64url').toString()).kid, dropped.kid, 'token sessions go on, and the new key is used at once')
  t.ok((await signIn(harness, askCode(app).url, browser())).left, 'and people sign in')
})
