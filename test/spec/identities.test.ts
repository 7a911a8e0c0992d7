import t from 'tap'
import { OPERATOR } from '../../cli/command.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { toWayKey } from '../../lib/way.ts'
import { createTestUpstream, type TestKit } from '../../testing/index.ts'
import { TEST_CLIENT } from '../../testing/upstream.ts'
import { forEachStore, build } from '../helpers/build.ts'
import { createCli } from '../helpers/cli.ts'
import { callAs, signIn } from '../helpers/people.ts'

const SECURITY = ['account:read', 'account:write', 'account:security']
const STEP_UP = { status: 401, headers: { 'www-authenticate': /^Bearer error="insufficient_user_authentication".* max_age="600"$/ } }
const LOST = { status: 404, body: { code: 'ErrNotFound' } }
const LAST = { status: 403, body: { message: /last way in/ } }

const KEY = Buffer.alloc(32, 7).toString('base64')

const usersOf = ({ app }: TestKit) => app.identity.store.collection<UserRecord>('users')

/** Somebody with two identities at the upstream `test`, and no password. */
async function makePerson (kit: TestKit, issuer: string, { password = false } = {}) {
  const person = await kit.mint()
  await usersOf(kit).update(person.user_id, password ? { set: { password: '$2b$04$x' } } : { unset: ['password'] })
  const ids: string[] = []
  for (const subject of ['1', '2']) {
    const { epoch } = (await usersOf(kit).get(person.user_id))!
    const own = `${person.user_id} ${subject}`
    const way = { kind: 'upstream' as const, upstream: 'test', key: toWayKey('upstream', issuer, own), material: { issuer, subject: own } }
    ids.push((await kit.app.identity.ways.add({ user_id: person.user_id, epoch }, way)).id)
  }
  return { ...person, ids: ids as [string, string], as: async (asked: Parameters<TestKit['mint']>[0]) => callAs(kit, (await kit.mint({ user: person.user_id, ...asked })).headers) }
}

await forEachStore(t, async (t, build) => {
  const provider = await createTestUpstream()
  t.teardown(provider.close)
  const kit = await build(t, { upstreams: [{ id: 'test', kind: 'oidc', name: 'Example', issuer: provider.issuer, ...TEST_CLIENT }] })
  const admin = await signIn(kit, { roles: ['admin'] })
  const happenedTo = async (user: string) => (await kit.events.list({ user })).map(({ type }) => type).filter((type) => /^(identity|user\.sessions)/.test(type))

  await t.test('a person sees their identities, and an administrator does', async (t) => {
    const ann = await makePerson(kit, provider.issuer)
    const own = await ann.as({ scopes: SECURITY })
    const identity = { identity_id: ann.ids[0], upstream: 'test', name: 'Example', issuer: provider.issuer, subject: `${ann.user_id} 1`, created_at: /Z$/ }
    const { body } = await own.get<{ data: { identities: object[] } }>('/user/identities')
    t.match(body, { data: { identities: [identity, { identity_id: ann.ids[1] }] } })
    t.strictSame(Object.keys(body.data.identities[0]!).sort(), Object.keys(identity).sort(), 'no key and no material')
    t.match(await (await ann.as({ scopes: ['account:read', 'account:write'] })).get('/user/identities'), { status: 403 })
    t.strictSame((await admin.get(`/user/${ann.user_id}/identities`)).body, body)
    t.match((await admin.get(`/user/${ann.user_id}/identities/${ann.ids[0]}`)).body, { data: identity })
    t.match(await admin.get(`/user/${admin.user_id}/identities/${ann.ids[0]}`), LOST, 'of another user')
    t.match(await admin.get('/user/nobody/identities'), LOST)
    t.strictSame((await admin.get(`/user/${admin.user_id}/identities`)).body, { data: { identities: [] } })
  })

  await t.test('users are listed and counted by an upstream of theirs', async (t) => {
    const [ann, bob] = [await makePerson(kit, provider.issuer), await kit.mint()]
    const actor = async (user_id: string) => ({ user_id, epoch: (await usersOf(kit).get(user_id))!.epoch })
    const { id: extra } = await kit.app.identity.ways.add(await actor(bob.user_id), { kind: 'upstream', upstream: 'test-2', key: toWayKey('upstream', 'x', bob.user_id), material: { issuer: 'x', subject: bob.user_id } })
    const list = async (query: string) => {
      const { body } = await admin.get<{ data: { user_id: string }[] }>(`/user/list?limit=0&${query}`)
      t.match((await admin.get(`/user/count?${query}`)).body, { data: { count: body.data.length } }, query)
      return body.data.map(({ user_id }) => user_id).filter((id) => [ann.user_id, bob.user_id].includes(id))
    }
    t.strictSame(await list('upstream=test'), [ann.user_id])
    t.strictSame(await list('upstream=test-2'), [bob.user_id])
    for (const query of ['upstream=es', 'upstream=none', 'upstream=Test', 'upstream=%20', 'upstream=.%2A', `upstream=test&account=${bob.account}`, `upstream=test&contains=${bob.account}`, 'upstream=test&factor=any']) t.strictSame(await list(query), [], query)
    t.strictSame(await list(`upstream=test&contains=${ann.account}&factor=none`), [ann.user_id])
    t.strictSame((await list('upstream=')).sort(), [ann.user_id, bob.user_id].sort(), 'empty is absent')
    await kit.app.identity.ways.add(await actor(bob.user_id), { kind: 'upstream', upstream: 'test', key: toWayKey('upstream', 'y', bob.user_id), material: { issuer: 'y', subject: bob.user_id } })
    for (const id of ['test', 'test-2']) t.ok((await list(`upstream=${id}`)).includes(bob.user_id), `${id}: one of two`)
    await kit.app.identity.heldIdentities.removeOf(bob.user_id, extra, OPERATOR)
    t.strictSame(await list('upstream=test-2'), [])
    t.ok((await list('upstream=test')).includes(bob.user_id))
    t.match(await (await signIn(kit, { roles: ['manager'] })).get('/user/list?upstream=test'), { status: 403 })
  })

  await t.test('an identity is unlinked with a fresh sign-in, and by nothing less', async (t) => {
    const [ann, bob] = [await makePerson(kit, provider.issuer), await makePerson(kit, provider.issuer, { password: true })]
    const path = `/user/identities/${ann.ids[0]}`
    t.match(await (await ann.as({ scopes: SECURITY })).delete(path), STEP_UP, 'a token that comes from no sign-in')
    const old = await ann.as({ scopes: SECURITY, acr: '1' })
    kit.clock.advance(601_000)
    t.match(await old.delete(path), STEP_UP, 'a sign-in of eleven minutes ago')
    t.match(await (await bob.as({ scopes: SECURITY, acr: '1' })).delete(path), LOST, 'of somebody else')
    t.match(await (await bob.as({ scopes: SECURITY })).delete(`/user/identities/${bob.ids[0]}`), STEP_UP, 'also where there is a password: the request cannot bring it')
    const fresh = await ann.as({ scopes: SECURITY, acr: '1' })
    t.match(await fresh.delete('/user/identities/password'), LOST, 'the password is no identity')
    t.match(await fresh.send({ method: 'DELETE', url: `${path}?end_sessions=true` }), { status: 400 })
    t.match(await fresh.delete(`${path}?end_sessions=false`), { status: 204 })
    t.match(await fresh.delete(path), LOST, 'again')
    // kratos#3387, supabase#46509: an account was left without a way in.
    t.match(await fresh.delete(`/user/identities/${ann.ids[1]}`), LAST, 'the last way in stays')
    t.strictSame(await happenedTo(ann.user_id), ['identity.unlinked'])
    const own = await bob.as({ scopes: SECURITY, acr: '1' })
    t.match(await own.delete(`/user/identities/${bob.ids[0]}`), { status: 204 })
    t.match(await own.get('/user'), { status: 401 }, 'all sessions end')
    t.match(await (await bob.as({ scopes: SECURITY, acr: '1' })).delete(`/user/identities/${bob.ids[1]}`), { status: 204 }, 'the password is left')
  })

  await t.test('an administrator unlinks an identity of somebody else', async (t) => {
    const ann = await makePerson(kit, provider.issuer)
    const own = await ann.as({ scopes: SECURITY })
    const path = `/user/${ann.user_id}/identities/${ann.ids[0]}`
    for (const role of ['manager', 'service', 'editor']) t.match(await (await signIn(kit, { roles: [role] })).delete(path), { status: 403 }, role)
    t.match(await own.delete(path), { status: 403 }, 'their own')
    const { epoch } = (await usersOf(kit).get(admin.user_id))!
    const { id } = await kit.app.identity.ways.add({ user_id: admin.user_id, epoch }, { kind: 'upstream', upstream: 'test', key: 'of the admin', material: { issuer: provider.issuer, subject: 'admin' } })
    t.match(await admin.delete(`/user/${admin.user_id}/identities/${id}`), { status: 403, body: { message: /^userId: one's own/ } }, 'a stolen token of an administrator has no proof')
    t.match(await admin.delete(`/user/${admin.user_id}/identities/${ann.ids[0]}`), { status: 403 })
    t.match(await admin.delete(path), { status: 204 })
    t.match(await own.get('/user'), { status: 401 }, 'their sessions end')
    t.match(await admin.delete(path), LOST)
    t.match(await admin.delete(`/user/${ann.user_id}/identities/${ann.ids[1]}`), LAST)
    t.strictSame(await happenedTo(ann.user_id), ['identity.unlinked', 'user.sessions_ended'])
    t.match((await kit.events.list({ user: ann.user_id, type: 'identity.unlinked' }))[0], { via: { upstream: 'test', subject: /^[\w-]{22}$/ }, actor: { user_id: admin.user_id } })
  })

  await t.test('of two that go at once one stays', async (t) => {
    const ann = await makePerson(kit, provider.issuer)
    const { heldIdentities } = kit.app.identity
    const results = await Promise.allSettled(ann.ids.map((id) => heldIdentities.removeOf(ann.user_id, id, OPERATOR)))
    t.strictSame(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    t.equal((await heldIdentities.list(ann.user_id)).length, 1)
  })
})

t.test('on the command line', async (t) => {
  const dir = t.testdir()
  const cli = createCli(dir, { IDENTITY_SECRET_KEY: KEY })
  const kit = await build(t, { database: `sqlite:${dir}/identity.db`, secretKey: KEY })
  const { user_id, account } = await kit.mint()
  const { id } = await kit.app.identity.ways.add({ user_id, epoch: 0 }, { kind: 'upstream', upstream: 'old', key: 'a key', material: { issuer: 'https://old.example', subject: '7' } })
  t.match((await cli(`user identities list --account ${account}`)).stdout, /^IDENTITY_ID +UPSTREAM +SUBJECT +CREATED +USED\n\w+ +old +7 /)
  t.match((await cli(`user identities list --account ${account} --json`)).json(), { data: [{ identity_id: id, upstream: 'old', issuer: 'https://old.example', subject: '7' }] })
  t.match((await cli('user list --upstream old')).stdout, account)
  t.equal((await cli('user list --upstream older')).stdout, 'none\n')
  t.match((await cli(`user identities remove --account ${account} --id ${id} --json`)).json(), { account, identity_id: id })
  t.equal((await cli(`user identities list --account ${account}`)).stdout, 'none\n')
  t.match(await cli(`user identities remove --account ${account} --id ${id}`), { code: 1, stderr: /no such way/ })
})
