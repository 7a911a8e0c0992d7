import t from 'tap'
import type { UserRecord } from '../../lib/records.ts'
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
      t.match(mailed, { subject: /your account at Test was replaced/, link: /undo-link/ })
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

eachStore(t, 'where people confirm, a declaration is an error of the configuration', async (t, start) => {
  await t.rejects(start({ upstream: { rejoin: { until } } }), { message: /rejoin: needs only or link: 'verified'/ })
  const harness = await start({ signUp: true, upstream: { create: true, link: 'verified', rejoin: { until: '2020-01-01T00:00:00Z' } } })
  await addUser(harness, 'gus')
})
