import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Json } from '../../lib/store/port.ts'
import { createTestUpstream } from '../../testing/index.ts'
import { TEST_CLIENT } from '../../testing/upstream.ts'
import type { Page } from '../oidc/browser.ts'
import { type Harness, eachStore } from '../oidc/harness.ts'
import { addUser, enter } from '../pages/visits.ts'
import { agree, answerOf, leave, readError, through } from './through.ts'

t.setTimeout(180_000)

const START = '/api/v1/auth/upstream/test'
const TAKEN = /contact support to connect this one, and give them this code: ([\w-]{22})$/
const DOMAIN = { domains: ['corp.example'], only: true, create: true }

/** The people of a provider, and what becomes of them here. */
function openPeople ({ kit, browser }: Harness) {
  const users = kit.app.identity.store.collection<UserRecord>('users')
  const read = async (account: string) => (await users.getBy('account', account))!
  return {
    users,
    read,
    subjects: async (account: string) => (await kit.app.identity.heldIdentities.list((await read(account)).id)).map(({ subject }) => subject),
    /** Signs somebody in whom the provider calls so. */
    async enterAs (sub: string, email: string, start = START): Promise<Page> {
      kit.upstream({ sub, email, email_verified: true })
      return await through(browser(), start)
    },
    refused: async (account: string) => (await kit.events.list({ user: (await read(account)).id, type: 'identity.refused' })),
    /** An account whose owner has proved the address, with a password of theirs. */
    async addProved (harness: Harness, account: string, fields: Record<string, Json> = {}) {
      const user = await addUser(harness, account)
      const set = { email: account, email_verified_at: new Date(kit.clock.now()).toISOString(), addresses: [account], operator_password: false, ...fields }
      await users.update(user.user_id, { set })
      return user
    }
  }
}

for (const mode of ['only', 'verified'] as const) {
  // OpenID Connect Core 5.7: only issuer and subject identify. Whoever buys the domain of a company that is gone gets its addresses.
  eachStore(t, `the next owner of an address, with ${mode}`, async (t, start) => {
    const harness = await start({ signUp: true, upstream: mode === 'only' ? DOMAIN : { create: true, link: 'verified' } })
    const { kit, browser } = harness
    const { read, subjects, enterAs, refused } = openPeople(harness)
    const isRefused = (page: Page) => mode === 'only' ? TAKEN.test(readError(page)) : /was connected to another Test account before/.test(page.text)

    await t.test('does not get the account of the one before', async (t) => {
      const mail = 'olga@corp.example'
      t.match((await enterAs('olga', mail)).title, /Profile/)
      const { id } = await read(mail)
      const page = await enterAs('olga the second', mail)
      t.ok(isRefused(page), page.text)
      t.strictSame(await subjects(mail), ['olga'])
      const [event] = await refused(mail)
      t.match(event, { user_id: id, outcome: 'failure', via: { upstream: 'test', subject: /^[\w-]{22}$/, former: /^[\w-]{22}$/ }, actor: { user_id: undefined } })
      t.not(event!.via!.subject, event!.via!.former)
      if (mode === 'only') t.equal(TAKEN.exec(readError(page))?.[1], event!.via!.subject, 'an administrator finds the event by what the person reads')
      t.match((await enterAs('olga', mail)).title, /Profile/, 'nor is the one before locked out')
    })

    await t.test('nor after years, nor after the account lost its identity', async (t) => {
      const mail = 'pia@corp.example'
      await enterAs('pia', mail)
      kit.clock.advance(3 * 365 * 24 * 3_600_000)
      t.ok(isRefused(await enterAs('pia the second', mail)))
      const { id } = await read(mail)
      const { ways } = await read(mail)
      await kit.app.identity.ways.change(id, () => ({ remove: Object.keys(ways!), isEnd: true }))
      t.strictSame(await subjects(mail), [])
      t.ok(isRefused(await enterAs('pia the second', mail)), 'the record remembers')
      t.notOk((await refused(mail)).at(-1)!.via!.former, 'the account does not have it any more')
      const page = await enterAs('pia', mail)
      t.match(page.title, /Profile/, 'the address comes back to its first owner')
      t.strictSame(await subjects(mail), ['pia'])
      t.notOk((await read(mail)).lost_identities, 'and is lost no more')
    })

    await t.test('two people who swap addresses stay who they are', async (t) => {
      await enterAs('quin', 'quin@corp.example')
      await enterAs('rosa', 'rosa@corp.example')
      t.match((await enterAs('quin', 'rosa@corp.example')).text, /quin@corp\.example/)
      t.match((await enterAs('rosa', 'quin@corp.example')).text, /rosa@corp\.example/)
      t.strictSame([await subjects('quin@corp.example'), await subjects('rosa@corp.example')], [['quin'], ['rosa']])
      t.ok(isRefused(await enterAs('a third one', 'rosa@corp.example')))
    })

    await t.test('an undo took the identity: it does not come back by itself', async (t) => {
      const mail = 'sam@corp.example'
      const { user_id } = await openPeople(harness).addProved(harness, mail)
      t.match((await enterAs('a stranger', mail)).title, /Profile/)
      const undo = await browser().open((await kit.mails.next({ to: mail })).link!)
      t.match((await undo.submit()).title, /undone/)
      t.match((await read(mail)).lost_identities, [{ upstream: 'test', key: String, undone: true }])
      const again = await enterAs('a stranger', mail)
      t.match(mode === 'only' ? readError(again) : again.text, mode === 'only' ? TAKEN : /An account with your email address already exists/)
      t.strictSame(await subjects(mail), [])
      t.equal((await kit.events.list({ user: user_id, type: 'identity.linked' })).length, 1)
    })

    await t.test('a record of an earlier release: nobody knows which identity an undo took', async (t) => {
      const mail = 'tim@corp.example'
      await openPeople(harness).addProved(harness, mail, { link_undone: true })
      const page = await enterAs('tim', mail)
      t.match(mode === 'only' ? readError(page) : page.text, mode === 'only' ? TAKEN : /An account with your email address already exists/)
      t.strictSame(await subjects(mail), [])
    })

    await t.test('a record of an earlier release does not name the issuer: its material does', async (t) => {
      const mail = 'uwe@corp.example'
      await enterAs('uwe', mail)
      const { users } = openPeople(harness)
      const { id, ways } = await read(mail)
      await users.update(id, { set: { ways: Object.fromEntries(Object.entries(ways!).map(([way, { issuer: _issuer, ...rest }]) => [way, rest])) } })
      t.ok(isRefused(await enterAs('uwe the second', mail)))
      t.match((await enterAs('uwe', mail)).title, /Profile/)
      await kit.app.identity.ways.change(id, () => ({ remove: Object.keys(ways!) }))
      t.match((await read(mail)).lost_identities, [{ upstream: 'test', issuer: kit.upstream.issuer, key: String }])
    })
  })
}

eachStore(t, 'the next owner of an address, where people confirm', async (t, start) => {
  const second = await createTestUpstream()
  t.teardown(second.close)
  const shared = { kind: 'oidc' as const, emails: 'verified' as const, create: true, link: 'verified' as const, ...TEST_CLIENT }
  const harness = await start({
    signUp: true,
    upstream: { create: true, link: 'confirm' },
    upstreams: [{ id: 'moved', name: 'Moved', issuer: second.issuer, ...shared }]
  })
  const { kit, browser } = harness
  const { users, read, subjects, enterAs, addProved } = openPeople(harness)
  const START_MOVED = '/api/v1/auth/upstream/moved'

  await t.test('the page says what it does, and a sign-in to the account connects', async (t) => {
    const user = await addProved(harness, 'ada@corp.example')
    const page = await enterAs('ada', user.account)
    t.match(page.text, /Sign in to it once to connect Test/)
    t.match((await page.submit({ account: user.account, password: user.password })).title, /Profile/)
    const other = await enterAs('ada the second', user.account)
    t.match(other.text, /It was connected to another Test account before\. If it’s your account, sign in to it once/)
    t.match(readError(await other.submit({ account: user.account, password: 'wrong' })), /Wrong email/)
    t.strictSame(await subjects(user.account), ['ada'])
    t.match((await other.submit({ account: user.account, password: user.password })).title, /Profile/)
    t.strictSame((await subjects(user.account)).sort(), ['ada', 'ada the second'], 'the person has proved that they are both')
  })

  await t.test('a subject that changes between two steps is not connected', async (t) => {
    const user = await addProved(harness, 'bea@corp.example')
    const tab = browser()
    kit.upstream({ sub: 'bea', email: user.account, email_verified: true })
    const asked = await through(tab, START)
    t.match(asked.text, /Sign in to it once/)
    kit.upstream({ sub: 'another one', email: 'another@corp.example', email_verified: true })
    const late = await answerOf(await leave(tab, START))
    t.match((await agree(await tab.open(late))).title, /Profile/, 'a new person')
    await asked.submit({ account: user.account, password: user.password })
    t.strictSame(await subjects(user.account), [], 'what waited is gone')
    t.strictSame(await subjects('another@corp.example'), ['another one'])
  })

  await t.test('a provider that moves under another id and issuer is another provider', async (t) => {
    const user = await addProved(harness, 'cleo@corp.example')
    const page = await enterAs('cleo', user.account)
    await page.submit({ account: user.account, password: user.password })
    second({ sub: 'cleo there', email: user.account, email_verified: true })
    t.match((await through(browser(), START_MOVED)).title, /Profile/)
    t.strictSame((await subjects(user.account)).sort(), ['cleo', 'cleo there'])
    second({ sub: 'the next cleo', email: user.account, email_verified: true })
    t.match((await through(browser(), START_MOVED)).text, /was connected to another Moved account before/)
  })

  await t.test('the same issuer under another id is the same provider', async (t) => {
    const user = await addProved(harness, 'dora@corp.example')
    second({ sub: 'dora', email: user.account, email_verified: true })
    await through(browser(), START_MOVED)
    const { id, ways } = await read(user.account)
    await users.update(id, { set: { ways: Object.fromEntries(Object.entries(ways!).map(([way, held]) => [way, { ...held, upstream: 'old' }])), upstreams: ' old ' } })
    second({ sub: 'the next dora', email: user.account, email_verified: true })
    t.match((await through(browser(), START_MOVED)).text, /was connected to another Moved account before/)
    await users.update(id, { set: { ways: Object.fromEntries(Object.entries(ways!).map(([way, held]) => [way, { ...held, issuer: 'https://old.example' }])) } })
    t.match((await through(browser(), START_MOVED)).text, /was connected to another Moved account before/, 'and another issuer under the same id')
  })

  await t.test('an account that has lost too many remembers that, and no more', async (t) => {
    const user = await addProved(harness, 'eli@corp.example')
    const { ways } = kit.app.identity
    const lose = async (upstream: string, count: number) => {
      for (let index = 0; index < count; index++) {
        const key = `${upstream}${index}`.padEnd(43, 'x')
        const { id } = await ways.add({ user_id: user.user_id, epoch: null }, { kind: 'upstream', upstream, issuer: 'https://gone.example', key, material: { issuer: 'https://gone.example', subject: key } })
        await ways.change(user.user_id, () => ({ remove: [id] }))
      }
    }
    await lose('gone', 8)
    t.equal((await read(user.account)).lost_identities?.length, 8)
    await lose('another', 1)
    t.equal((await read(user.account)).lost_identities?.length, 9, 'each upstream has its own')
    second({ sub: 'eli', email: user.account, email_verified: true })
    t.match((await through(browser(), START_MOVED)).title, /Profile/)
    await lose('gone', 9)
    t.strictSame((await read(user.account)).lost_identities, [{ upstream: 'gone' }, { upstream: 'another', issuer: 'https://gone.example', key: 'another0'.padEnd(43, 'x') }])
    await lose('gone', 1)
    t.equal((await read(user.account)).lost_identities?.length, 2)
  })

  await t.test('the account pages go on as before', async (t) => {
    const page = await enter(harness)
    t.match(page.title, /Profile/)
  })
})
