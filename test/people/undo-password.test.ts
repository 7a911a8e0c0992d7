import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import { forEachStore } from '../helpers/build.ts'
import { callAs, createUser, signIn, unique } from '../helpers/people.ts'
import { withoutIds } from '../oidc/browser.ts'
import { eachStore } from '../oidc/harness.ts'
import { enter, readXsrf } from '../pages/visits.ts'

const STOLEN = 'the stolen password'

await forEachStore(t, async (t, build) => {
  const kit = await build(t)
  const { accounts, users, store } = kit.app.identity
  const admin = await signIn(kit, { roles: ['admin'], ttl: 1_000_000 })
  const anybody = callAs(kit)

  /** A thief who knows the password has changed the address, and the owner undoes that. */
  async function undo () {
    const [account, thief] = [`${unique('ann')}@example.com`, `${unique('thief')}@evil.example`]
    const user_id = await createUser(admin, { account, password: STOLEN })
    await accounts.changeAddress(user_id, thief)
    await accounts.verifyAddress((await kit.mails.next({ to: thief })).token!, user_id)
    t.match(await anybody.post('/auth/undo', { data: { token: (await kit.mails.next({ to: account })).token } }), { status: 204 })
    return { account, thief, user_id }
  }

  await t.test('an undo ends the password that the thief knows; both mailboxes are told, and the mailed link opens the account', async (t) => {
    const { account, thief, user_id } = await undo()
    t.equal((await store.collection<UserRecord>('users').get(user_id))?.password, '')
    t.equal(await users.verify(account, STOLEN), null)
    for (const guess of ['', STOLEN]) {
      const { post, patch } = callAs(kit, (await kit.mint({ user: user_id, scopes: ['account:security', 'account:write'] })).headers)
      const refused = { status: 400, body: { message: 'current_password: is wrong' } }
      t.match(await patch('/user', { data: { password: 'of the thief', current_password: guess } }), refused)
      t.match(await post('/user/email', { data: { email: thief, current_password: guess } }), refused)
    }
    const mails = await kit.mails.all()
    t.same(mails.map(({ to }) => to).sort(), [account, thief].sort())
    const told = mails.find(({ to }) => to === thief)
    t.match(told?.subject, /was undone/)
    t.equal(told?.token, undefined, 'the other mailbox gets no link')
    const restored = mails.find(({ to }) => to === account)
    t.match(await anybody.post('/auth/reset', { data: { token: restored?.token, password: 'the new password' } }), { status: 204 })
    t.equal((await users.verify(account, 'the new password'))?.user_id, user_id)
  })

  await t.test('when that mail is lost, a forgotten password and a recovery open the account', async (t) => {
    const { account, user_id } = await undo()
    await kit.mails.all()
    await anybody.post('/auth/forgot', { data: { account } })
    t.equal((await kit.mails.next()).to, account)
    t.match(await admin.post(`/user/${user_id}/recovery`), { status: 200, body: { data: { sent: true } } })
    const { token } = await kit.mails.next({ to: account })
    t.match(await anybody.post('/auth/reset', { data: { token, password: 'the new password' } }), { status: 204 })
  })
})

eachStore(t, 'a sign-in without a password', async (t, start) => {
  const harness = await start()
  const { kit, user, browser } = harness
  const { accounts, users } = kit.app.identity
  const tab = browser()
  async function attempt (password: string): Promise<{ status: number, text: string }> {
    const page = await enter(harness, '/account', tab, { account: user.account, password })
    return { status: page.response.status, text: withoutIds(page.text).replaceAll(readXsrf(page), '') }
  }
  const wrong = await attempt('a wrong password')
  await accounts.changeAddress(user.user_id, 'thief@evil.example')
  await accounts.verifyAddress((await kit.mails.next({ to: 'thief@evil.example' })).token!, user.user_id)
  await accounts.undo((await kit.mails.next({ to: user.account })).token!)
  for (const password of [user.password, '']) t.strictSame(await attempt(password), wrong, 'answers as one with a wrong password')
  t.equal(await users.verify(user.account, user.password), null)
})
