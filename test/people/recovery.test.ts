import t from 'tap'
import { createTickets } from '../../lib/tickets/tickets.ts'
import type { TestKit } from '../../testing/index.ts'
import { forEachStore } from '../helpers/build.ts'
import { callAs, createUser, signIn, unique } from '../helpers/people.ts'

const GONE = { status: 410, body: { code: 'ErrTicket', statusCode: 410, error: 'Gone', message: 'token: the link is unknown, was used or replaced, or has expired' } }
const HOUR = 3_600_000

interface Setting { kit: TestKit, anybody: ReturnType<typeof callAs>, admin: Awaited<ReturnType<typeof signIn>>, email: string, user_id: string }

/** A user whose account is an address, with the password `first`. */
async function start (kit: TestKit): Promise<Setting> {
  await kit.reset()
  const admin = await signIn(kit, { roles: ['admin'], ttl: 100_000_000 })
  const email = `${unique('ann')}@example.com`
  return { kit, anybody: callAs(kit), admin, email, user_id: await createUser(admin, { account: email, password: 'the first password' }) }
}

const verify = async ({ kit }: Pick<Setting, 'kit'>, account: string, password: string) => await kit.app.identity.users.verify(account, password) !== null

t.test('recovery', async (t) => {
  await forEachStore(t, async (t, build) => {
    // One service for all: a test begins with an empty store.
    const kit = await build(t)
    await t.test('a link sets a new password once, ends every session and every other link, and verifies the address', async (t) => {
      const setting = await start(kit)
      const { anybody, email, user_id, admin } = setting
      const ann = await signIn(kit, { user: user_id, refresh: true })
      for (let count = 0; count < 3; count++) t.match(await anybody.post('/auth/forgot', { data: { account: email.toUpperCase() } }), { status: 204, body: null })
      const [one, two, three] = await kit.mails.all()
      t.match(one, { to: email, subject: '127.0.0.1: set a new password', link: /\/account\/reset\?token=[\w-]{43}$/, token: /^[\w-]{43}$/ })
      t.match(await anybody.post('/auth/reset', { data: { token: two!.token, password: '' } }), { status: 400, body: { code: 'ErrParam' } }, 'a refused password spends nothing')
      t.match(await anybody.post('/auth/reset', { data: { token: two!.token, password: 'the second password' } }), { status: 204, body: null })
      t.ok(await verify(setting, email, 'the second password'))
      t.notOk(await verify(setting, email, 'the first password'))
      t.equal((await ann.get('/user')).status, 401, 'the session has ended')
      for (const { token } of [one!, two!, three!]) t.match(await anybody.post('/auth/reset', { data: { token, password: 'the third password' } }), GONE)
      t.match((await admin.get(`/user/${user_id}`)).body.data, { email, email_verified_at: String })
      t.match(await kit.mails.next({ to: email }), { subject: /password was changed/, link: /\/account\/forgot$/, token: undefined }, 'a notice has the way to another one')
      t.equal((await kit.mails.all()).length, 0)
    })

    await t.test('the newest link works, and five in all, when many are made in one millisecond', async (t) => {
      const { kit, email, user_id } = await start(await build(t))
      const tickets = createTickets({ store: kit.app.identity.store, now: kit.clock.now })
      const links: string[] = []
      for (let count = 0; count < 20; count++) {
        links.push(await tickets.issue({ purpose: 'reset', user_id, user_epoch: 0, address: email, mailed: true }))
        t.equal((await tickets.require(links.at(-1)!, 'reset')).user_id, user_id)
      }
      const found = await Promise.allSettled(links.map(async (link) => await tickets.require(link, 'reset')))
      t.equal(found.filter(({ status }) => status === 'fulfilled').length, 5)
    })

    await t.test('a link ends after an hour, after a change of the password, when the user is disabled, and when six are made', async (t) => {
      const setting = await start(kit)
      const { anybody, email, user_id, admin } = setting
      const askFor = async () => {
        await anybody.post('/auth/forgot', { data: { account: email } })
        return (await kit.mails.next({ to: email })).token
      }
      const reset = async (token: string | undefined) => await anybody.post('/auth/reset', { data: { token, password: 'the second password' } })
      const first = await askFor()
      kit.clock.advance(HOUR)
      t.match(await reset(first), GONE, 'after an hour')
      const before = await askFor()
      await admin.patch(`/user/${user_id}`, { data: { password: 'by the administrator' } })
      t.match(await reset(before), GONE, 'after a change of the password')
      await kit.mails.all()
      const enabled = await askFor()
      await admin.patch(`/user/${user_id}`, { disable: true })
      t.match(await reset(enabled), GONE, 'disabled')
      await admin.patch(`/user/${user_id}`, { disable: false })
      t.match(await reset(enabled), GONE, 'and enabled again')
      kit.clock.advance(HOUR)
      const { accounts } = kit.app.identity
      const links = []
      for (let count = 0; count < 6; count++) {
        kit.clock.advance(1)
        await accounts.outbox!.enqueue({ kind: 'recovery', user_id }, HOUR)
        links.push((await kit.mails.next({ to: email })).token)
      }
      t.match(await reset(links[0]), GONE, 'the oldest of six')
      t.match(await reset(links[1]), { status: 204 }, 'the oldest of five')
    })

    await t.test('reading a link spends nothing', async (t) => {
      const setting = await start(kit)
      const { anybody, email } = setting
      await anybody.post('/auth/forgot', { data: { account: email } })
      const { token } = await kit.mails.next({ to: email })
      for (let count = 0; count < 10; count++) t.match(await kit.app.identity.accounts.inspectLink(token!), { purpose: 'reset', account: email })
      t.match(await anybody.post('/auth/reset', { data: { token, password: 'the second password' } }), { status: 204 })
    })

    await t.test('known, unknown, disabled and expired accounts get the same answer', async (t) => {
      const setting = await start(kit)
      const { anybody, email, admin } = setting
      const disabled = `${unique('bob')}@example.com`
      await admin.patch(`/user/${await createUser(admin, { account: disabled })}`, { disable: true })
      const expired = `${unique('carl')}@example.com`
      await createUser(admin, { account: expired }, { expired_at: '2020-01-01T00:00:00Z' })
      for (const account of [email, disabled, expired, unique('nobody'), `${unique('nobody')}@example.com`]) {
        t.match(await anybody.post('/auth/forgot', { data: { account } }), { status: 204, body: null })
      }
      t.same((await kit.mails.all()).map(({ to }) => to), [email], 'one mail, to the one who may sign in')
      t.equal(await kit.app.identity.store.collection('deliveries').count(), 0)
    })

    await t.test('five mails an hour go to one address, and one network address asks for thirty', async (t) => {
      const setting = await start(kit)
      const { anybody, email } = setting
      for (let count = 0; count < 7; count++) t.equal((await anybody.post('/auth/forgot', { data: { account: email } })).status, 204)
      t.equal((await kit.mails.all()).length, 5)
      for (let count = 7; count < 30; count++) t.equal((await anybody.post('/auth/forgot', { data: { account: unique('x') } })).status, 204)
      t.match(await anybody.post('/auth/forgot', { data: { account: email } }), { status: 429, headers: { 'retry-after': '3600' } })
      kit.clock.advance(HOUR)
      t.equal((await anybody.post('/auth/forgot', { data: { account: email } })).status, 204)
      t.equal((await kit.mails.all()).length, 1)
    })

    await t.test('an administrator starts a recovery and learns no password; without an address they get the link', async (t) => {
      const setting = await start(kit)
      const { anybody, email, user_id, admin } = setting
      t.strictSame((await admin.post(`/user/${user_id}/recovery`)).body, { data: { sent: true } })
      t.match(await kit.mails.next({ to: email }), { subject: /set a new password/, token: String })
      const nameless = await createUser(admin)
      const { body } = await admin.post<{ data: { sent: boolean, link: string } }>(`/user/${nameless}/recovery`)
      t.match(body.data, { sent: false, link: /\/account\/reset\?token=/ })
      const token = new URL(body.data.link).searchParams.get('token')
      t.match(await anybody.post('/auth/reset', { data: { token, password: 'the second password' } }), { status: 204 })
      t.notHas((await admin.get<{ data: object }>(`/user/${nameless}`)).body.data, { email_verified_at: String }, 'a link that was shown proves no mailbox')
      const manager = await signIn(kit, { roles: ['manager'] })
      t.match(await manager.post(`/user/${user_id}/recovery`), { status: 200, body: { data: { sent: true } } })
      t.equal((await manager.post(`/user/${nameless}/recovery`)).status, 403, 'a manager sees no link')
      t.equal((await manager.post(`/user/${admin.user_id}/recovery`)).status, 403, 'of an administrator')
      t.equal((await admin.post('/user/nobody/recovery')).status, 404)
      await admin.patch(`/user/${nameless}`, { disable: true })
      t.equal((await admin.post(`/user/${nameless}/recovery`)).status, 400)
    })
  })
})
