import t from 'tap'
import { startIdentity } from '../../testing/index.ts'

t.test('kit.passkey adds a passkey, and signs in over HTTP without a browser', async (t) => {
  const kit = await startIdentity({ t, oidc: { issuer: 'http://localhost' } })
  await kit.app.identity.users.create({ data: { account: 'ann', password: 'correct horse' } })
  const passkey = await kit.passkey('Ann', { counter: 5 })
  t.equal(passkey.recoveryCodes.length, 10)
  t.equal((await kit.passkey('ann')).recoveryCodes.length, 0)
  const { status, cookie } = await passkey.signIn()
  t.equal(status, 303)
  const page = await kit.inject({ url: '/account/factors/new', headers: { cookie } })
  t.equal(page.statusCode, 200)
  t.ok(JSON.parse(passkey.answer(page.payload)).response.signature, 'it answers what a page asks')
  t.throws(() => passkey.answer('<p>'), { message: 'the page has no passkey' })
  t.equal((await passkey.signIn({ origin: 'https://evil.example' })).status, 400)
  t.match((await passkey.signIn({ uv: false })).page, 'Enter your password too')
  t.equal((await passkey.signIn({ counter: 1 })).status, 303)
  const types = (await kit.events.list()).map(({ type }) => type).filter((type) => /^(factor|sign_in)/.test(type))
  t.strictSame(types, ['factor.added', 'factor.added', 'sign_in.succeeded', 'factor.failed', 'sign_in.succeeded'])
  await t.rejects(kit.passkey('nobody'), { message: /^there is no user/ })
})

t.test('without a name there are no passkeys', async (t) => {
  const kit = await startIdentity({ t })
  await t.rejects(kit.passkey('ann'), { message: /^passkeys are off: start the kit with oidc/ })
})
