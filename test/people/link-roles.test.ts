import t from 'tap'
import type { TicketRecord } from '../../lib/tickets/tickets.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { forEachStore } from '../helpers/build.ts'
import { callAs, createUser, mintAll, signIn, unique } from '../helpers/people.ts'

const GONE = { status: 410, body: { code: 'ErrTicket' } }

await forEachStore(t, async (t, build) => {
  const kit = await build(t)
  const { accounts, users, store } = kit.app.identity
  const admin = await signIn(kit, { roles: ['admin'], ttl: 1_000_000 })
  const manager = await signIn(kit, { roles: ['manager'], ttl: 1_000_000 })
  const anybody = callAs(kit)
  const use = async (token: string | undefined) => await anybody.post('/auth/reset', { data: { token, password: 'of the manager' } })
  const invite = async (by: typeof admin, account: string) => {
    const { status, body } = await by.post<{ data: { user_id: string, link: string } }>('/user/invite', { data: { account } })
    return status === 200 ? { status, user_id: body.data.user_id, token: new URL(body.data.link).searchParams.get('token') ?? '' } : { status, token: '', user_id: '' }
  }

  await t.test('a manager does not become an administrator with a link that they made before', async (t) => {
    const account = unique('newadmin')
    const { user_id, token } = await invite(manager, account)
    t.match(await admin.patch(`/user/${user_id}`, { data: { roles: { admin: true } } }), { status: 204 })
    t.match(await use(token), GONE)
    t.equal((await invite(manager, account)).status, 403, 'and sees no link of a user with roles')
    kit.clock.advance(1)
    const fresh = await invite(admin, account)
    t.match(await anybody.post('/auth/reset', { data: { token: fresh.token, password: 'of the new admin' } }), { status: 204 }, 'a later link works')
    t.match(await users.verify(account, 'of the new admin'), { roles: { admin: true } })
  })

  await t.test('only an administrator invites again whom another person invited', async (t) => {
    const account = unique('newadmin')
    const { token } = await invite(admin, account)
    t.match(await manager.post('/user/invite', { data: { account } }), { status: 403, body: { message: 'account: only an admin may invite again whom another person invited' } })
    t.match(await anybody.post('/auth/reset', { data: { token, password: 'mine' } }), { status: 204 }, "the administrator's link has not ended")
    const own = unique('guest')
    await invite(manager, own)
    t.equal((await invite(manager, own)).status, 200, 'their own invitation')
    t.equal((await invite(admin, own)).status, 200)
    const other = await signIn(kit, { roles: ['manager'] })
    t.equal((await invite(other, own)).status, 403)
    // A record of an earlier release does not say who made the invitation.
    const old = await invite(manager, unique('guest'))
    await store.collection<UserRecord>('users').update(old.user_id, { unset: ['invited_by'] })
    t.equal((await invite(manager, (await users.get(old.user_id))!.account)).status, 403)
  })

  for (const [road, give] of [
    ['PATCH', async (user_id: string, roles: object) => { t.match(await admin.patch(`/user/${user_id}`, { data: { roles } }), { status: 204 }) }],
    ['the command line', async (user_id: string, roles: object) => { await users.changeRoles(user_id, () => roles as Record<string, true>, { user_id: '', isAdmin: true }) }]
  ] as const) {
    await t.test(`a role that is given by ${road} ends every link of before, mailed ones too, and taking one does not`, async (t) => {
      const email = `${unique('ann')}@example.com`
      const user_id = await createUser(admin, { account: email })
      const ask = async () => {
        await accounts.outbox!.enqueue({ kind: 'recovery', user_id }, 3_600_000)
        return (await kit.mails.next({ to: email })).token
      }
      const first = await ask()
      await give(user_id, { editor: true })
      t.match(await use(first), GONE, 'a new role')
      const second = await ask()
      await give(user_id, { editor: { area: 'all' } })
      t.match(await use(second), GONE, 'more in a role')
      const third = await ask()
      await give(user_id, {})
      t.match(await use(third), { status: 204 }, 'a role taken away')
    })
  }

  await t.test('the undo of a change of address survives a role', async (t) => {
    const email = `${unique('ann')}@example.com`
    const user_id = await createUser(admin, { account: email })
    await accounts.changeAddress(user_id, 'thief@evil.example')
    await accounts.verifyAddress((await kit.mails.next({ to: 'thief@evil.example' })).token!, user_id)
    const { token } = await kit.mails.next({ to: email })
    await admin.patch(`/user/${user_id}`, { data: { roles: { editor: true } } })
    t.match(await anybody.post('/auth/undo', { data: { token } }), { status: 204 })
    await kit.mails.all()
  })

  await t.test('an administrator gives up the mailbox of a user: nobody can undo that, every former mailbox is told', async (t) => {
    const [account, second, third] = [`${unique('ann')}@example.com`, `${unique('two')}@example.com`, `${unique('three')}@example.com`]
    const user_id = await createUser(admin, { account })
    await accounts.changeAddress(user_id, second)
    await accounts.verifyAddress((await kit.mails.next({ to: second })).token!, user_id)
    const undo = await kit.mails.next({ to: account })
    await anybody.post('/auth/forgot', { data: { account: second } })
    const reset = await kit.mails.next({ to: second })
    t.match(await manager.patch(`/user/${user_id}`, { data: { email: third } }), { status: 403, body: { message: 'email: only an admin may set an address' } })
    const narrow = callAs(kit, (await kit.mint({ user: admin.user_id, scopes: ['users:read'] })).headers)
    t.equal((await narrow.patch(`/user/${user_id}`, { data: { email: third } })).status, 403)
    const taken = `${unique('bob')}@example.com`
    await createUser(admin, { account: taken })
    t.match(await admin.patch(`/user/${user_id}`, { data: { email: taken } }), { status: 409, body: { code: 'USER_EXIST', message: 'email: another user has this address' } })
    t.match(await admin.patch(`/user/${user_id}`, { data: { email: 'no address' } }), { status: 400, body: { message: 'email: must be an email address' } })
    t.same(await kit.mails.all(), [])
    t.match(await admin.patch(`/user/${user_id}`, { data: { email: third } }), { status: 204 })
    const user = await users.get(user_id)
    t.match(user, { account, email: third, email_verified_at: undefined }, 'nobody has proved the new one')
    const mails = await kit.mails.all()
    t.same(mails.map(({ to, token }) => [to, token]).sort(), [[account, undefined], [second, undefined]].sort())
    t.match(mails[0]?.subject, /was replaced/)
    t.match(await anybody.post('/auth/undo', { data: { token: undo.token } }), GONE)
    t.match(await use(reset.token), GONE)
    const [event] = (await kit.events.list({ user: user_id, type: 'user.email_changed' })).slice(-1)
    t.match(event, { actor: { user_id: admin.user_id } })
    await anybody.post('/auth/forgot', { data: { account } })
    t.equal((await kit.mails.next()).to, third)
  })

  await t.test('deleting a user removes the links with their address at once, whoever deletes them', async (t) => {
    const deleter = await mintAll(kit, { user: admin.user_id })
    const account = `${unique('ann')}@example.com`
    const user_id = await createUser(admin, { account })
    const tickets = store.collection<TicketRecord>('tickets')
    await accounts.changeAddress(user_id, `${unique('new')}@example.com`)
    await accounts.sendVerification(user_id)
    await accounts.forgotPassword(account, { ip: '192.0.2.1' })
    await kit.mails.all()
    const count = async () => {
      const found: TicketRecord[] = []
      for await (const batch of tickets.stream()) found.push(...batch.filter((ticket) => ticket.user_id === user_id))
      return found.length
    }
    t.equal(await count(), 3)
    t.match(await callAs(kit, deleter.headers).delete(`/user/${user_id}`), { status: 204 })
    t.equal(await count(), 0)
  })
})
