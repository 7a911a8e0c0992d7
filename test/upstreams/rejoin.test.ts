import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import { DEFAULT_ROLE_NAMES } from '../../lib/roles.ts'
import { mayRejoin } from '../../lib/upstreams/rejoin.ts'
import type { Upstream } from '../../schemas/upstream.ts'
import { eachStore } from '../oidc/harness.ts'
import { addUser } from '../pages/visits.ts'
import { readError, through } from './through.ts'

t.setTimeout(180_000)

const START = '/api/v1/auth/upstream/test'
const TAKEN = /give them this code/
const DAY = 24 * 3_600_000
const until = new Date(Date.now() + 20 * DAY).toISOString()

for (const mode of ['only', 'verified'] as const) {
  eachStore(t, `a provider whose subjects all change, with ${mode}`, async (t, start) => {
    const shared = { create: true, rejoin: { until } }
    const harness = await start({ signUp: true, upstream: mode === 'only' ? { ...shared, domains: ['corp.example'], only: true } : { ...shared, link: 'verified' } })
    const { kit, browser } = harness
    const users = kit.app.identity.store.collection<UserRecord>('users')
    const find = async (account: string) => (await users.getBy('account', account))!
    const subjects = async (account: string) => (await kit.app.identity.heldIdentities.list((await find(account)).id)).map(({ subject }) => subject)
    const enterAs = async (sub: string, email: string) => {
      kit.upstream({ sub, email, email_verified: true })
      return await through(browser(), START)
    }
    /** Somebody who has come by the provider as it was. */
    async function addPerson (name: string): Promise<string> {
      const mail = `${name}@corp.example`
      t.match((await enterAs(name, mail)).title, /Profile/)
      return mail
    }
    const isRefused = async (sub: string, mail: string) => {
      const page = await enterAs(sub, mail)
      return mode === 'only' ? TAKEN.test(readError(page)) : /was connected to another Test account before/.test(page.text)
    }

    await t.test('once an account, the former identity goes, and the person is told', async (t) => {
      const mail = await addPerson('ada')
      const { id } = await find(mail)
      const before = await kit.mint({ user: id, scopes: ['account:read'] })
      const page = await enterAs('ada there', mail)
      t.match(page.title, /Profile/, readError(page))
      t.strictSame(await subjects(mail), ['ada there'])
      t.match(await find(mail), { id, rejoined_at: String, lost_identities: [{ upstream: 'test', issuer: kit.upstream.issuer }] })
      t.equal((await kit.inject({ url: '/api/v1/user', headers: before.headers })).statusCode, 401, 'all sessions end')
      const mailed = await kit.mails.next({ to: mail })
      t.match(mailed, { subject: /your account at Test was replaced/, link: /\/undo\?/ })
      t.match(await kit.events.list({ user: id, type: 'identity.linked' }), [{}, { via: { upstream: 'test' } }])
      t.equal((await kit.events.list({ user: id, type: 'identity.unlinked' })).length, 1)
      t.ok(await isRefused('ada elsewhere', mail), 'not twice')
      t.ok(await isRefused('ada', mail), 'nor back')
      t.strictSame(await subjects(mail), ['ada there'])
      await (await browser().open(mailed.link!)).submit()
      t.strictSame(await subjects(mail), [])
      t.ok(mode === 'verified' || await isRefused('ada there', mail), 'an undo counts')
    })

    await t.test('never for somebody with a role of ours', async (t) => {
      const mail = await addPerson('bea')
      await users.update((await find(mail)).id, { set: { roles: { manager: true } } })
      const page = await enterAs('bea there', mail)
      t.match(mode === 'only' ? readError(page) : page.text, mode === 'only' ? TAKEN : /was connected to another Test account before/)
      t.strictSame(await subjects(mail), ['bea'])
    })

    await t.test('never where an undo took an identity, or an administrator has named one', async (t) => {
      const undone = await addPerson('cleo')
      await users.update((await find(undone)).id, { set: { lost_identities: [{ upstream: 'test', issuer: 'x', key: 'x', undone: true }] } })
      t.ok(await isRefused('cleo there', undone))
      const named = await addPerson('dora')
      await users.update((await find(named)).id, { set: { expected_identities: [{ upstream: 'test', subject: 'x'.repeat(22) }] } })
      t.ok(await isRefused('dora there', named))
    })

    await t.test('never for an account that has lost its identity', async (t) => {
      const mail = await addPerson('eli')
      const { id, ways } = await find(mail)
      await kit.app.identity.ways.change(id, () => ({ remove: Object.keys(ways!) }))
      t.ok(await isRefused('eli there', mail))
    })

    await t.test('a setting that was forgotten on does nothing', async (t) => {
      const mail = await addPerson('fay')
      kit.clock.advance(20 * DAY + 1000)
      t.ok(await isRefused('fay there', mail))
      t.strictSame(await subjects(mail), ['fay'])
    })
  })
}

t.test('each condition of a new subject counts by itself', (t) => {
  const now = Date.now()
  const issuer = 'https://login.corp.example'
  const upstream: Upstream = { id: 'corp', kind: 'oidc', issuer, clientId: 'c', clientSecret: 's', create: true, link: 'verified', sync: 'first', rejoin: { until } }
  const proven = { upstream, claimed: { issuer, subject: 'ann there', name: '', both: false } }
  const way = { kind: 'upstream', upstream: 'corp', issuer, key: 'k', at: '' } as const
  const known = { roles: {}, ways: { w: way } }
  const may = (more: Partial<UserRecord> = {}, other: Partial<Upstream> = {}, roles = DEFAULT_ROLE_NAMES) => (
    mayRejoin({ ...known, ...more }, { ...proven, upstream: { ...upstream, ...other } }, { now, roles }))
  const at = (ago: number) => new Date(now - ago).toISOString()
  t.ok(may())
  t.notOk(may({}, { rejoin: undefined as never }), 'nothing is declared')
  t.notOk(may({}, { rejoin: { until: at(1000) } }), 'no more')
  for (const role of Object.values(DEFAULT_ROLE_NAMES)) t.notOk(may({ roles: { [role]: true } }), role)
  t.ok(may({ roles: { gardener: true } }), 'a role of the operator')
  t.notOk(may({ rejoined_at: at(30 * DAY - 1000) }), 'twice')
  t.ok(may({ rejoined_at: at(30 * DAY + 1000) }), 'in another change')
  t.notOk(may({ link_undone: true }), 'an undo of an earlier release')
  t.notOk(may({ expected_identities: [{ upstream: 'corp', subject: 's' }] }), 'an administrator has named one')
  t.ok(may({ expected_identities: [{ upstream: 'hub', subject: 's' }] }), 'of another provider')
  t.notOk(may({ lost_identities: [{ upstream: 'corp', key: 'x', undone: true }] }), 'an undo took one')
  t.notOk(may({ lost_identities: [{ upstream: 'corp' }] }), 'one that stands for any')
  t.ok(may({ lost_identities: [{ upstream: 'corp', key: 'x' }] }), 'one that the person has lost')
  t.notOk(may({ ways: {} }), 'no other identity goes')
  t.notOk(may({ ways: { w: { ...way, upstream: 'hub', issuer: 'https://hub.example' } } }), 'nor one of another provider')
  t.end()
})

eachStore(t, 'where people confirm, a declaration is an error of the configuration', async (t, start) => {
  await t.rejects(start({ upstream: { rejoin: { until } } }), { message: /rejoin: needs only or link: 'verified'/ })
  const harness = await start({ signUp: true, upstream: { create: true, link: 'verified', rejoin: { until: '2020-01-01T00:00:00Z' } } })
  await addUser(harness, 'gus')
})
