import t from 'tap'
import { startIdentity } from '../../testing/index.ts'
import { askCode, eachStore } from '../oidc/harness.ts'
import { importLines } from '../helpers/import.ts'
import { readError, through } from './through.ts'

const START = '/api/v1/auth/upstream/test'

eachStore(t, 'identities that were imported before their provider was configured', async (t, start) => {
  const harness = await start({ upstream: {} })
  const { kit } = harness
  const { identity } = kit.app
  const app = await harness.register()
  kit.upstream({ sub: 'moved' })
  const former = await startIdentity({ t, store: identity.store })
  const { issuer } = kit.upstream
  const { verdicts } = await importLines(former.app.identity, [
    { id: 'm-1', account: 'moved', identities: [{ issuer, subject: 'moved' }] },
    { id: 'm-2', account: 'abroad', identities: [{ issuer: 'https://other.example', subject: 'abroad' }] }
  ])
  t.strictSame(verdicts.map(({ result }) => result), ['created', 'created'])
  const listNone = async ({ identity }: typeof kit.app) => (await Array.fromAsync(identity.listWithoutWay())).flat().map(({ user_id }) => user_id)
  const invite = async ({ identity }: typeof kit.app) => (
    (await Array.fromAsync(identity.imports.inviteImported('old', { user_id: '', isAdmin: true }))).map(({ user_id, reason }) => `${user_id} ${reason}`))
  t.strictSame(await listNone(former.app), ['m-1', 'm-2'])
  t.strictSame(await invite(former.app), ['m-1 has no address', 'm-2 has no address'])
  await former.close()

  await t.test('sign in once it is', async (t) => {
    const browser = harness.browser()
    const page = await through(browser, await browser.open(askCode(app).url))
    t.match(page.left?.searchParams.get('code'), /./, readError(page))
    t.match((await kit.events.list({ type: 'sign_in.succeeded' })).at(-1), { user_id: 'm-1', via: { upstream: 'test' } })
    t.match((await browser.open('/account')).title, /Profile/, 'and on the pages of the account')
  })

  await t.test('and nobody else does with the same subject of another provider', async (t) => {
    kit.upstream({ sub: 'abroad' })
    t.match(readError(await through(harness.browser(), START)), /find an account for this sign-in/)
  })

  await t.test('are ways in', async (t) => {
    t.strictSame(await listNone(kit.app), ['m-2'])
    t.strictSame(await invite(kit.app), ['m-1 has a sign-in method', 'm-2 has no address'])
  })
})
