import t from 'tap'
import type { TestKit } from '../../testing/index.ts'
import { forEachStore } from '../helpers/build.ts'
import { callAs, createUser, signIn, unique } from '../helpers/people.ts'

const LONG = 1_000_000
const HOUR = 3_600_000
const GONE = { status: 410, body: { code: 'ErrTicket' } }

async function start (kit: TestKit) {
  await kit.reset()
  const admin = await signIn(kit, { roles: ['admin'], ttl: LONG })
  const anybody = callAs(kit)
  const create = async (account = `${unique('ann')}@example.com`) => {
    const user_id = await createUser(admin, { account, password: 'the first password' })
    return await signIn(kit, { user: user_id, ttl: LONG })
  }
  return { kit, admin, anybody, create, address: () => `${unique('new')}@example.com` }
}

type Setting = Awaited<ReturnType<typeof start>>

/** Has a user change their address to this one; resolves to the mail with the undo, if there is one. */
async function change ({ kit }: Pick<Setting, 'kit'>, user: { account: string, post: Setting['anybody']['post'] }, email: string) {
  t.match(await user.post('/user/email', { data: { email, current_password: 'the first password' } }), { status: 204 })
  const { token } = await kit.mails.next({ to: email })
  t.match(await user.post('/auth/verify', { data: { token } }), { status: 204 })
  return (await kit.mails.all()).find(({ subject }) => subject.includes('your email address was changed'))
}

const verify = async (kit: TestKit, account: string, password = 'the first password') => (await kit.app.identity.users.verify(account, password))?.user_id

t.test('addresses', async (t) => {
  await forEachStore(t, async (t, build) => {
    // One service for all: a test begins with an empty store.
    const kit = await build(t)
    await t.test('a mailed link verifies the account itself, and touches neither verified_at nor expired_at', async (t) => {
      const { admin, anybody } = await start(kit)
      const account = `${unique('ann')}@example.com`
      const user_id = await createUser(admin, { account }, { expired_at: '2200-01-01T00:00:00Z' })
      const ann = await signIn(kit, { user: user_id })
      t.match(await ann.post('/auth/verify/send'), { status: 204 })
      const { token } = await kit.mails.next({ to: account })
      t.match(await anybody.post('/auth/verify', { data: { token } }), { status: 204 })
      t.match((await admin.get<{ data: { verified_at?: string } }>(`/user/${user_id}?fields=expired`)).body.data, {
        email: account, email_verified_at: String, verified_at: undefined, expired_at: '2200-01-01T00:00:00.000Z'
      })
      t.match(await anybody.post('/auth/verify', { data: { token } }), GONE, 'once')
      t.match(await ann.post('/auth/verify/send'), { status: 400, body: { message: 'email: is verified already' } })
    })

    await t.test('an address changes when its link is used; the account and the new address sign in, and nobody else can have either', async (t) => {
      const setting = await start(kit)
      const { admin, anybody, create, address } = setting
      const ann = await create()
      const email = address()
      await ann.post('/user/email', { data: { email } })
      t.equal(await verify(kit, email), undefined, 'nothing before the link is used')
      const { token } = await kit.mails.next({ to: email })
      await ann.post('/auth/verify', { data: { token } })
      t.equal(await verify(kit, email), ann.user_id)
      t.equal(await verify(kit, ann.account), ann.user_id)
      for (const taken of [email, ann.account]) {
        t.match(await admin.post('/user', { data: { account: taken, password: 'another password' } }), { status: 409, body: { code: 'USER_EXIST' } }, taken)
        const bob = await create()
        t.match(await bob.post('/user/email', { data: { email: taken } }), { status: 204 }, 'the answer says nothing')
      }
      t.same((await kit.mails.all()).map(({ to, subject }) => [to, /was changed/.test(subject)]), [[ann.account, true]], 'and no mail follows')
      await anybody.post('/auth/forgot', { data: { account: ann.account } })
      t.equal((await kit.mails.next()).to, email, 'links go to the verified address only')
    })

    await t.test('of two users who prove the same address, the first has it', async (t) => {
      const { create, address } = await start(kit)
      const [ann, bob] = [await create(), await create('bob')]
      const email = address()
      for (const user of [ann, bob]) await user.post('/user/email', { data: { email } })
      const mails = await kit.mails.all()
      const findToken = ({ account }: { account: string }) => mails.find(({ text }) => text.includes(`The account ${account} `))?.token
      t.match(await bob.post('/auth/verify', { data: { token: findToken(bob) } }), { status: 204 })
      t.match(await ann.post('/auth/verify', { data: { token: findToken(ann) } }), GONE)
      t.equal(await verify(kit, email), bob.user_id)
    })

    await t.test('the account of a record of an earlier release is its key', async (t) => {
      const { create } = await start(kit)
      const ann = await create()
      const bob = await create()
      const users = kit.app.identity.store.collection('users')
      await users.update(ann.user_id, { unset: ['addresses'] })
      await bob.post('/user/email', { data: { email: ann.account } })
      t.same(await kit.mails.all(), [])
      const email = `${unique('new')}@example.com`
      await bob.post('/user/email', { data: { email } })
      const { token } = await kit.mails.next({ to: email })
      await users.update(bob.user_id, { unset: ['addresses'] })
      t.match(await bob.post('/auth/verify', { data: { token } }), { status: 204 })
      t.match(await users.get(bob.user_id), { addresses: [bob.account, email] }, 'the first change adds the account')
    })

    await t.test('a change needs the current password, and its wrong one changes nothing', async (t) => {
      const { create, address } = await start(kit)
      const ann = await create()
      const narrowed = callAs(kit, (await kit.mint({ user: ann.user_id, scopes: ['account:security'] })).headers)
      const email = address()
      t.match(await narrowed.post('/user/email', { data: { email } }), { status: 400, body: { message: /current_password: is required/ } })
      t.match(await narrowed.post('/user/email', { data: { email, current_password: 'wrong' } }), { status: 400, body: { message: 'current_password: is wrong' } })
      t.same(await kit.mails.all(), [])
      t.match(await narrowed.post('/user/email', { data: { email, current_password: 'the first password' } }), { status: 204 })
      const weak = callAs(kit, (await kit.mint({ user: ann.user_id, scopes: ['account:write'] })).headers)
      t.equal((await weak.post('/user/email', { data: { email, current_password: 'the first password' } })).status, 403)
      t.match(await ann.post('/user/email', { data: { email: 'ann' } }), { status: 400, body: { message: 'email: must be an email address' } })
    })

    await t.test('a change is undone from the former address for 72 hours, which ends every session and link and mails a new one there', async (t) => {
      const setting = await start(kit)
      const { anybody, create, address } = setting
      const ann = await create()
      const thief = address()
      const undo = await change(setting, ann, thief)
      t.match(undo, { to: ann.account, link: /\/account\/undo\?token=/ })
      await anybody.post('/auth/forgot', { data: { account: thief } })
      const stolen = await kit.mails.next({ to: thief })
      kit.clock.advance(HOUR / 2)
      t.match(await anybody.post('/auth/undo', { data: { token: undo!.token } }), { status: 204 })
      t.equal((await ann.get('/user')).status, 401, 'sessions')
      t.match(await anybody.post('/auth/reset', { data: { token: stolen.token, password: 'of the thief' } }), GONE, 'links')
      t.equal(await verify(kit, thief), undefined)
      const restored = await kit.mails.next({ to: ann.account })
      t.match(await anybody.post('/auth/reset', { data: { token: restored.token, password: 'the second password' } }), { status: 204 })
      t.equal(await verify(kit, ann.account, 'the second password'), ann.user_id)
      t.match(await anybody.post('/auth/undo', { data: { token: undo!.token } }), GONE, 'once')
      const other = await create()
      const late = await change(setting, other, address())
      kit.clock.advance(72 * HOUR)
      t.match(await anybody.post('/auth/undo', { data: { token: late!.token } }), GONE, 'after 72 hours')
    })

    await t.test('the first of several changes undoes them all; a later one cannot undo that', async (t) => {
      const setting = await start(kit)
      const { anybody, create, address } = setting
      const ann = await create()
      const [one, two] = [address(), address()]
      const first = await change(setting, ann, one)
      const second = await change(setting, ann, two)
      t.equal(second!.to, one)
      t.match(await anybody.post('/auth/undo', { data: { token: first!.token } }), { status: 204 })
      t.same((await kit.mails.all()).map(({ to }) => to).sort(), [ann.account, two].sort())
      t.match(await anybody.post('/auth/undo', { data: { token: second!.token } }), GONE)
      const bob = await create()
      const [three, four] = [address(), address()]
      const owner = await change(setting, bob, three)
      const thief = await change(setting, bob, four)
      t.match(await anybody.post('/auth/undo', { data: { token: thief!.token } }), { status: 204 })
      t.match(await kit.app.identity.users.get(bob.user_id), { email: three })
      t.match(await anybody.post('/auth/undo', { data: { token: owner!.token } }), { status: 204 }, 'an earlier one still can be')
    })

    await t.test('an address that an administrator sets ends the undo of every former mailbox, and one that they only confirm ends none', async (t) => {
      const setting = await start(kit)
      const { admin, anybody, create, address } = setting
      for (const [data, status] of [[{ email: address() }, 410], [{ email_verified: true }, 204]] as const) {
        const ann = await create()
        const undo = await change(setting, ann, address())
        t.match(await admin.patch(`/user/${ann.user_id}`, { data }), { status: 204 })
        t.equal((await anybody.post('/auth/undo', { data: { token: undo!.token } })).status, status)
      }
    })

    await t.test('a link to a former mailbox is dead when the address has changed', async (t) => {
      const setting = await start(kit)
      const { anybody, create, address } = setting
      const ann = await create()
      await anybody.post('/auth/forgot', { data: { account: ann.account } })
      const old = await kit.mails.next({ to: ann.account })
      await change(setting, ann, address())
      t.match(await anybody.post('/auth/reset', { data: { token: old.token, password: 'from the old mailbox' } }), GONE)
    })
  })
})
