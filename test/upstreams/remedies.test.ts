import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Json } from '../../lib/store/port.ts'
import { createTestUpstream } from '../../testing/index.ts'
import { TEST_CLIENT } from '../../testing/upstream.ts'
import { createCli } from '../helpers/cli.ts'
import { build } from '../helpers/build.ts'
import { callAs, signIn } from '../helpers/people.ts'
import { type Harness, eachStore } from '../oidc/harness.ts'
import { addUser } from '../pages/visits.ts'
import { readError, through } from './through.ts'

t.setTimeout(180_000)

const START = '/api/v1/auth/upstream/test'
const OPERATOR = { user_id: 'operator', isAdmin: true }
const ONLY = /with Test only/
const GONE = /no longer valid|was used|expired/

function openPeople (harness: Harness) {
  const { kit, browser } = harness
  const users = kit.app.identity.store.collection<UserRecord>('users')
  return {
    users,
    read: async (user_id: string) => (await users.get(user_id))!,
    find: async (account: string) => (await users.getBy('account', account))!,
    enter: async ({ account, password }: { account: string, password: string }) => await (await browser().open('/account/sign-in')).submit({ account, password, direct: 'yes' }),
    async enterAs (sub: string, email: string) {
      kit.upstream({ sub, email, email_verified: true })
      return await through(browser(), START)
    },
    subjects: async (user_id: string) => (await kit.app.identity.heldIdentities.list(user_id)).map(({ subject }) => subject),
    async addProved (account: string, fields: Record<string, Json> = {}) {
      const user = await addUser(harness, account)
      const set = { email: account, email_verified_at: new Date(kit.clock.now()).toISOString(), addresses: [account], operator_password: false, ...fields }
      await users.update(user.user_id, { set })
      return user
    },
    /** What the page and the event call the identity that was refused last. */
    async refusedSubject (user_id: string): Promise<string> {
      return (await kit.events.list({ user: user_id, type: 'identity.refused' })).at(-1)!.via!.subject!
    }
  }
}

const ONLY_CORP = { domains: ['corp.example'], only: true, create: true }

eachStore(t, 'another person has the address now', async (t, start) => {
  const harness = await start({ signUp: true, upstream: ONLY_CORP })
  const { kit, browser } = harness
  const { users, read, find, enter, enterAs, subjects, addProved } = openPeople(harness)
  const { accounts, users: service } = kit.app.identity

  await t.test('the new person gets an account of their own, and the former one keeps theirs', async (t) => {
    const mail = 'olga@corp.example'
    await enterAs('olga', mail)
    const { id } = await find(mail)
    await users.update(id, { set: { roles: { editor: true } } })
    const before = await kit.mint({ user: id, scopes: ['account:read'] })
    t.match(readError(await enterAs('the next olga', mail)), /give them this code/)
    t.strictSame(await accounts.releaseAddress(id, OPERATOR), { account: id.toLowerCase() })
    const former = await read(id)
    t.match(former, { account: id.toLowerCase(), held_by: 'test', roles: { editor: true } })
    for (const field of ['email', 'email_verified_at', 'addresses', 'address_changes']) t.notOk(Object.hasOwn(former, field), field)
    t.equal((await kit.inject({ url: '/api/v1/user', headers: before.headers })).statusCode, 401, 'all sessions end')
    t.match((await enterAs('the next olga', mail)).text, /olga@corp\.example/)
    const next = await find(mail)
    t.not(next.id, id)
    t.match(next, { email: mail, email_verified_at: String, roles: {} })
    t.strictSame([await subjects(id), await subjects(next.id)], [['olga'], ['the next olga']])
    t.match((await enterAs('olga', mail)).text, new RegExp(id.toLowerCase()), 'issuer and subject still decide')
    t.match(await kit.events.list({ user: id, type: 'user.email_released' }), [{ outcome: 'success' }])
    await t.rejects(accounts.releaseAddress(id, OPERATOR), { code: 'ErrParam' }, 'there is no address any more')
  })

  await t.test('a leaver with a password stays held', async (t) => {
    const user = await addProved('pia@corp.example')
    t.match(readError(await enter(user)), ONLY)
    const { account } = await accounts.releaseAddress(user.user_id, OPERATOR)
    t.match(readError(await enter({ ...user, account })), ONLY, 'otherwise the old password works from that day')
    t.match(readError(await enter(user)), /Wrong email/, 'and the address leads to nobody')
    await service.patch(user.user_id, { data: { email: 'pia@private.example' } }, OPERATOR)
    t.match((await enter({ ...user, account })).title, /Profile/, 'an administrator takes the mark away')
  })

  await t.test('somebody whom nothing holds keeps the password', async (t) => {
    const user = await addProved('quin@private.example')
    const { account } = await accounts.releaseAddress(user.user_id, OPERATOR)
    t.match((await enter({ ...user, account })).title, /Profile/)
    t.notOk((await read(user.user_id)).held_by)
  })

  await t.test('open links and each undo that names the address end, and others stay', async (t) => {
    const user = await addProved('rosa@private.example', { account: 'rosa' })
    const change = async (email: string) => {
      await accounts.changeAddress(user.user_id, email)
      await accounts.verifyAddress((await kit.mails.next({ to: email })).token!, user.user_id)
    }
    await change('rosa@second.example')
    const undoFirst = await kit.mails.next({ to: 'rosa@private.example' })
    await change('rosa@private.example')
    const undoSecond = await kit.mails.next({ to: 'rosa@second.example' })
    await accounts.forgotPassword('rosa', { ip: '192.0.2.1' })
    const reset = await kit.mails.next({ to: 'rosa@private.example' })
    await accounts.changeAddress(user.user_id, 'rosa@third.example')
    const pending = await kit.mails.next({ to: 'rosa@third.example' })
    await accounts.releaseAddress(user.user_id, OPERATOR)
    t.match(await read(user.user_id), { account: 'rosa', undos: [{ kind: 'address', before: { email: 'rosa@second.example' } }] })
    await t.rejects(accounts.undo(undoFirst.token!), { code: 'ErrTicket' }, 'it would bring the address back')
    t.match((await browser().open(reset.link!)).text, GONE)
    await t.rejects(accounts.verifyAddress(pending.token!, user.user_id), { code: 'ErrTicket' })
    await accounts.undo(undoSecond.token!)
    t.match(await read(user.user_id), { email: 'rosa@second.example' })
  })

  await t.test('the undo of a link that was mailed to the address ends', async (t) => {
    const mail = 'sam@corp.example'
    await enterAs('sam', mail)
    const user = await addProved('sam-2@corp.example')
    await enterAs('sam-2', 'sam-2@corp.example')
    const undo = await kit.mails.next({ to: 'sam-2@corp.example' })
    await accounts.releaseAddress(user.user_id, OPERATOR)
    await t.rejects(accounts.undo(undo.token!), { code: 'ErrTicket' })
    t.strictSame(await subjects(user.user_id), ['sam-2'])
  })

  await t.test('a name that is another address stays, and a name that somebody has taken is no obstacle', async (t) => {
    const user = await addProved('tom@private.example', { account: 'tom@old.example', addresses: ['tom@old.example', 'tom@private.example'] })
    t.strictSame(await accounts.releaseAddress(user.user_id, OPERATOR), { account: 'tom@old.example' })
    t.match(await read(user.user_id), { account: 'tom@old.example', addresses: ['tom@old.example'] })
    await addUser(harness, user.user_id.toLowerCase())
    const { account } = await accounts.releaseAddress(user.user_id, OPERATOR)
    t.match(account, new RegExp(`^${user.user_id.toLowerCase()}-[a-z0-9]{8}$`))
    await addUser(harness, 'tom@private.example')
    await addUser(harness, 'tom@old.example')
  })
})

eachStore(t, 'the same person has a new subject', async (t, start) => {
  const second = await createTestUpstream()
  t.teardown(second.close)
  const harness = await start({
    signUp: true, upstream: ONLY_CORP, upstreams: [{ id: 'never', kind: 'oidc', name: 'Never', issuer: second.issuer, link: 'never', ...TEST_CLIENT }]
  })
  const { kit } = harness
  const { read, find, enterAs, subjects, addProved, refusedSubject } = openPeople(harness)
  const { heldIdentities, ways } = kit.app.identity

  await t.test('it may join, and nobody else', async (t) => {
    const mail = 'ada@corp.example'
    await enterAs('ada', mail)
    const { id } = await find(mail)
    const before = await kit.mint({ user: id, scopes: ['account:read'] })
    t.match(readError(await enterAs('ada there', mail)), /give them this code/)
    const subject = await refusedSubject(id)
    await heldIdentities.replaceOf(id, { upstream: 'test', subject }, OPERATOR)
    t.match(await read(id), { expected_identities: [{ upstream: 'test', subject }] })
    t.strictSame(await subjects(id), [])
    t.equal((await kit.inject({ url: '/api/v1/user', headers: before.headers })).statusCode, 401, 'all sessions end')
    const mailed = await kit.mails.next({ to: mail })
    t.match(mailed, { subject: /your account at Test was replaced/, link: /\/account\/sign-in$/ })
    t.match((await kit.events.list({ user: id, type: 'identity.replaced' })), [{ via: { upstream: 'test', subject } }])
    t.match(readError(await enterAs('ada', mail)), /give them this code/, 'the former one')
    t.match(readError(await enterAs('a third one', mail)), /give them this code/, 'and another one')
    t.strictSame(await subjects(id), [])
    const page = await enterAs('ada there', mail)
    t.match(page.title, /Profile/, readError(page))
    t.strictSame(await subjects(id), ['ada there'])
    t.notOk((await read(id)).expected_identities, 'once')
    for (const sub of ['ada', 'a third one']) t.match(readError(await enterAs(sub, mail)), /give them this code/, sub)
    t.match((await enterAs('ada there', mail)).title, /Profile/)
  })

  await t.test('an administrator may be wrong, and says it again', async (t) => {
    const mail = 'bea@corp.example'
    await enterAs('bea', mail)
    const { id } = await find(mail)
    await enterAs('bea there', mail)
    const right = await refusedSubject(id)
    await heldIdentities.replaceOf(id, { upstream: 'test', subject: 'x'.repeat(22) }, OPERATOR)
    t.match(readError(await enterAs('bea there', mail)), /give them this code/)
    await heldIdentities.replaceOf(id, { upstream: 'test', subject: right }, OPERATOR)
    t.match((await enterAs('bea there', mail)).title, /Profile/)
    await t.rejects(heldIdentities.replaceOf(id, { upstream: 'test', subject: right }, OPERATOR), { code: 'ErrParam', message: /is an identity of the user already/ })
    t.strictSame(await subjects(id), ['bea there'])
  })

  await t.test('after an undo the person comes back this way', async (t) => {
    const user = await addProved('cleo@corp.example')
    await enterAs('cleo', user.account)
    const undo = await harness.browser().open((await kit.mails.next({ to: user.account })).link!)
    await undo.submit()
    t.match(readError(await enterAs('cleo', user.account)), /give them this code/)
    await heldIdentities.replaceOf(user.user_id, { upstream: 'test', subject: await refusedSubject(user.user_id) }, OPERATOR)
    t.match((await enterAs('cleo', user.account)).title, /Profile/)
    t.notOk((await read(user.user_id)).lost_identities)
  })

  await t.test('an identity that the person connects themselves takes the place too', async (t) => {
    const mail = 'dora@corp.example'
    await enterAs('dora', mail)
    const { id } = await find(mail)
    await heldIdentities.replaceOf(id, { upstream: 'test', subject: 'y'.repeat(22) }, OPERATOR)
    await ways.add({ user_id: id, epoch: null }, { kind: 'upstream', upstream: 'other', issuer: 'https://other.example', key: 'dora', material: { issuer: 'https://other.example', subject: 'dora' } })
    t.ok((await read(id)).expected_identities, 'one of another upstream says nothing')
    await ways.add({ user_id: id, epoch: null }, { kind: 'upstream', upstream: 'test', issuer: kit.upstream.issuer, key: 'dora there', material: { issuer: kit.upstream.issuer, subject: 'dora there' } })
    t.notOk((await read(id)).expected_identities)
  })

  await t.test('what is refused', async (t) => {
    const [user, admin] = [await kit.mint(), await signIn(kit, { roles: ['admin'] })]
    const path = `/user/${user.user_id}/identities/replace`
    const expected = { upstream: 'test', subject: 'x'.repeat(22) }
    for (const role of ['manager', 'service', 'editor']) {
      const other = await signIn(kit, { roles: [role] })
      t.match(await other.post(path, { data: expected }), { status: 403 }, role)
      t.match(await other.post(`/user/${user.user_id}/email/release`), { status: 403 }, role)
    }
    t.match(await callAs(kit, user.headers).post(path, { data: expected }), { status: 403 }, 'their own')
    t.match(await admin.post(`/user/${admin.user_id}/identities/replace`, { data: expected }), { status: 403, body: { message: /their own/ } })
    t.match(await admin.post(`/user/${admin.user_id}/email/release`), { status: 403, body: { message: /their own/ } })
    t.match(await admin.post(path, { data: { ...expected, upstream: 'none' } }), { status: 400, body: { message: /^upstream: no such upstream/ } })
    t.match(await admin.post(path, { data: { ...expected, upstream: 'never' } }), { status: 400, body: { message: /^upstream: .*never/ } })
    t.match(await admin.post(path, { data: { ...expected, subject: 'too short' } }), { status: 400, body: { message: /subject/ } })
    t.match(await admin.post('/user/nobody/identities/replace', { data: expected }), { status: 404 })
    t.match(await admin.post('/user/nobody/email/release'), { status: 404 })
    t.match(await admin.post(path, { data: expected }), { status: 204 })
    await openPeople(harness).users.update(user.user_id, { set: { email: 'x@private.example' } })
    t.match(await admin.post(`/user/${user.user_id}/email/release`), { status: 200, body: { data: { account: user.account } } })
  })
})

t.test('on the command line', async (t) => {
  const dir = t.testdir()
  const KEY = Buffer.alloc(32, 7).toString('base64')
  const provider = await createTestUpstream()
  t.teardown(provider.close)
  const { writeFileSync } = await import('node:fs')
  writeFileSync(`${dir}/secret`, 'a secret', { mode: 0o600 })
  const upstreams = [{ id: 'test', kind: 'oidc', name: 'Test', issuer: 'https://login.example', clientId: 'c', clientSecretFile: `${dir}/secret` }]
  writeFileSync(`${dir}/upstreams.json`, JSON.stringify(upstreams))
  const cli = createCli(dir, { IDENTITY_SECRET_KEY: KEY, IDENTITY_UPSTREAMS_FILE: `${dir}/upstreams.json` })
  const kit = await build(t, { database: `sqlite:${dir}/identity.db`, secretKey: KEY })
  const { user_id } = await kit.app.identity.users.create({ data: { account: 'ann@example.com', password: 'a horse too' } })
  const subject = 'x'.repeat(22)
  t.match((await cli(`user identities replace --account ann@example.com --upstream test --subject ${subject} --json`)).json(), { user_id, account: 'ann@example.com', upstream: 'test', subject })
  t.match(await cli('user identities replace --account ann@example.com --upstream test --subject short'), { code: 2, stderr: /subject/ })
  t.match(await cli(`user identities replace --account ann@example.com --upstream other --subject ${subject}`), { code: 1, stderr: /no such upstream/ })
  t.match((await cli('user email release --account ann@example.com --json')).json(), { user_id, account: user_id.toLowerCase() })
  t.match(await cli('user email release --account ann@example.com'), { code: 1, stderr: /no user has this account/ })
  t.match(await cli(`user email release --account ${user_id.toLowerCase()}`), { code: 1, stderr: /has no address/ })
})
