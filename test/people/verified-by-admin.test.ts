import t from 'tap'
import type { Event } from '../../schemas/event.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { forEachStore } from '../helpers/build.ts'
import { callAs, createUser, signIn, unique } from '../helpers/people.ts'

const VERIFY = { data: { email_verified: true } }

await forEachStore(t, async (t, build) => {
  const kit = await build(t)
  const admin = await signIn(kit, { roles: ['admin'] })
  const address = () => `${unique('ann')}@example.com`
  const read = async (id: string) => (await admin.get<{ data: Record<string, unknown> }>(`/user/${id}`)).body.data

  await t.test('an administrator verifies an address, as its mailed link does', async (t) => {
    const account = address()
    const user_id = await createUser(admin, { account })
    const ann = await signIn(kit, { user: user_id })
    t.match(await ann.post('/auth/verify/send'), { status: 204 })
    const { token } = await kit.mails.next({ to: account })
    t.match(await admin.patch(`/user/${user_id}`, { data: { email_verified: true, name: 'Ann' } }), { status: 204 })
    t.match(await read(user_id), { email: account, email_verified_at: String, verified_at: String, name: 'Ann' })
    t.match(await callAs(kit).post('/auth/verify', { data: { token } }), { status: 410, body: { code: 'ErrTicket' } }, 'the open link has ended')
    t.match(await kit.mails.next({ to: account }), { subject: /your email address is confirmed/ })
    await kit.flush()
    const { data } = (await admin.get<{ data: Event[] }>(`/event/list?user=${user_id}`)).body
    t.match(data.find(({ type }) => type === 'user.verified'), { user_id, actor: { user_id: admin.user_id } })
    t.match(data.find(({ type }) => type === 'user.updated'), { changed: ['name'] })
    const stored = await read(user_id)
    kit.clock.advance(60_000)
    t.match(await admin.patch(`/user/${user_id}`, VERIFY), { status: 204 }, 'the request may be repeated')
    t.strictSame(await read(user_id), stored, 'and then changes nothing')
    t.match(await admin.patch(`/user/${user_id}`, { data: { email: account, email_verified: true } }), { status: 204 }, 'also with the address')
    t.match(await admin.patch(`/user/${user_id}`, { data: { email_verified: true, name: 'Anna' } }), { status: 204 }, 'and with another change')
    t.match(await read(user_id), { name: 'Anna', email: account, email_verified_at: stored.email_verified_at, email_verified_by: 'operator' })
    await kit.flush()
    const { data: all } = (await admin.get<{ data: Event[] }>(`/event/list?user=${user_id}`)).body
    t.equal(all.filter(({ type }) => type === 'user.verified').length, 1, 'it is verified once')
    t.strictSame((await kit.mails.all()).filter(({ to }) => to === account), [], 'and nobody is told again')
    t.match(await ann.get('/user'), { status: 200 }, 'no token ends')
  })

  await t.test('an administrator sets an address and verifies it in one request, or afterwards', async (t) => {
    const [first, second] = [address(), address()]
    const user_id = await createUser(admin, { account: unique('plain') })
    t.match(await admin.patch(`/user/${user_id}`, { data: { email: first, email_verified: true } }), { status: 204 })
    t.match(await read(user_id), { email: first, email_verified_at: String })
    // A mail that is composed after the next change would find another address.
    const sent = await kit.mails.all()
    t.match(await admin.patch(`/user/${user_id}`, { data: { email: second } }), { status: 204 })
    t.match(await read(user_id), { email: second, email_verified_at: undefined }, 'another one is not verified')
    t.strictSame([...sent, ...await kit.mails.all()].map(({ to, subject }) => [to, /: (.*)$/.exec(subject)?.[1]]), [
      [first, 'your email address is confirmed'], [first, 'your email address was replaced']
    ], 'the mailbox that loses the account is told, and no other')
    t.match(await admin.patch(`/user/${user_id}`, VERIFY), { status: 204 })
    t.match(await read(user_id), { email: second, email_verified_at: String })
    t.match(await kit.mails.next({ to: second }), { subject: /your email address is confirmed/ })
    await kit.flush()
    const { data } = (await admin.get<{ data: Event[] }>(`/event/list?user=${user_id}`)).body
    t.strictSame(data.map(({ type }) => type).filter((type) => type !== 'mail.sent').toReversed(), ['user.created', 'user.email_changed', 'user.verified', 'user.email_changed', 'user.verified'])
  })

  await t.test('nobody else may, nothing else is accepted, and no account without an address', async (t) => {
    const user_id = await createUser(admin, { account: address() })
    const manager = await signIn(kit, { roles: ['manager'] })
    const service = await signIn(kit, { roles: ['service'] })
    const owner = await signIn(kit, { user: user_id })
    const narrow = await signIn(kit, { user: admin.user_id, scopes: ['users:read'] })
    for (const one of [manager, service]) t.match(await one.patch(`/user/${user_id}`, VERIFY), { status: 403, body: { message: 'email_verified: only an admin may set it' } })
    for (const one of [owner, narrow]) t.match(await one.patch(`/user/${user_id}`, VERIFY), { status: 403 })
    t.match(await owner.patch('/user', VERIFY), { status: 400 }, 'not by their own profile')
    t.match(await admin.patch(`/user/${user_id}`, { data: { email_verified: false } }), { status: 400, body: { message: /email_verified/ } })
    const plain = await createUser(admin, { account: unique('plain') })
    t.match(await admin.patch(`/user/${plain}`, VERIFY), { status: 400, body: { message: 'email_verified: the user has no address' } })
    t.notOk('email_verified_at' in await read(user_id))
  })

  await t.test('an address that another user has verified is refused, and nothing is changed', async (t) => {
    const account = address()
    const user_id = await createUser(admin, { account })
    const users = kit.app.identity.store.collection<UserRecord>('users')
    // As a record of an earlier release, which is not in the index of addresses.
    await users.update(user_id, { unset: ['addresses'] })
    const holder = await createUser(admin, { account: unique('holder') })
    await users.update(holder, { set: { email: account, email_verified_at: '2026-01-01T00:00:00.000Z', addresses: [account] } })
    t.match(await admin.patch(`/user/${user_id}`, { data: { email_verified: true, name: 'x' } }), {
      status: 409, body: { code: 'USER_EXIST', message: 'email_verified: another user has this address' }
    })
    t.match(await read(user_id), { name: '', email: undefined })
  })
})
