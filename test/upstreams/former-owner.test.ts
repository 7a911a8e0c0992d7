import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Change } from '../../lib/store/port.ts'
import { toWayKey } from '../../lib/way.ts'
import { showIdentity } from '../../lib/ways/identity.ts'
import type { Upstream } from '../../schemas/upstream.ts'
import { type Harness, askCode, eachStore } from '../oidc/harness.ts'
import type { Page } from '../oidc/browser.ts'
import { enter, post, readXsrf } from '../pages/visits.ts'
import { type TestGithub, startGithub } from './github.ts'
import { readError } from './through.ts'

t.setTimeout(180_000)

const SALES = 'sales@corp.example'
const ANN = { account: SALES, password: 'a horse of mine' }
const GONE = /no longer valid|was used|expired/

function openPeople ({ kit, browser, register }: Harness, github: TestGithub) {
  const users = kit.app.identity.store.collection<UserRecord>('users')
  return {
    users,
    /** The present owner of the mailbox signs up by our mail. */
    async signUp (): Promise<UserRecord> {
      await kit.app.identity.accounts.signUp(SALES, { ip: '192.0.2.1' })
      const { link, subject } = await kit.mails.next({ to: SALES })
      t.match(subject, /create your account|sign up|confirm/i)
      await (await browser().open(link!)).submit({ password: ANN.password })
      return (await users.getBy('account', SALES))!
    },
    /** Somebody whose GitHub account has the address makes an account here, under a name that they choose. */
    async make (id: number, account: string, address = SALES, tab = browser()): Promise<{ tab: typeof tab, user: UserRecord, page: Page }> {
      github.says(id, address)
      const page = await (await github.enter(tab)).submit({ account })
      return { tab, page, user: (await users.getBy('account', account))! }
    },
    /** What an app gets of the person who is signed in in this browser. */
    async readClaims (tab: ReturnType<Harness['browser']>): Promise<Record<string, unknown>> {
      const app = await register()
      const { url, verifier } = askCode(app, { scope: 'openid email profile' })
      const { left } = await tab.open(url)
      const tokens = await fetch(`${tab.origin}/api/v1/auth/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${Buffer.from(`${app.client_id}:${app.client_secret}`).toString('base64')}` },
        body: new URLSearchParams({ grant_type: 'authorization_code', code: left!.searchParams.get('code')!, code_verifier: verifier, redirect_uri: app.redirect_uri })
      })
      const { access_token: token } = await tokens.json() as { access_token: string }
      return await (await fetch(`${tab.origin}/api/v1/auth/userinfo`, { headers: { authorization: `Bearer ${token}` } })).json() as Record<string, unknown>
    }
  }
}

// The mirror of the next owner of an address: GitHub keeps a primary address verified for years after its person has left the company.
eachStore(t, 'the former owner of a mailbox, after its present owner', async (t, start) => {
  const github = await startGithub(t)
  await t.rejects(start({ signUp: true, upstreams: [{ ...github.settings, link: 'verified' }] }), /link: verified needs an authority on addresses, and github has only seen them/)
  const harness = await start({ signUp: true, upstreams: [github.settings] })
  const { kit, browser } = harness
  const { users, signUp, make } = openPeople(harness, github)
  const ann = await signUp()

  await t.test('is not in her account by a click, but asked to sign in to it', async (t) => {
    github.says(1, SALES)
    const tab = browser()
    const page = await github.enter(tab)
    t.match(page.text, /An account with your email address already exists/)
    t.match((await tab.open('/account')).title, /Sign in/)
    t.equal((await users.get(ann.id))!.ways, undefined)
    t.equal((await page.submit({ account: SALES, password: 'guessed' })).response.status, 400)
    t.equal((await users.get(ann.id))!.ways, undefined)
  })

  await t.test('nor would be under settings that were changed since they were checked', async (t) => {
    const { identities, require } = kit.app.identity.upstreams!
    for (const link of ['verified', 'confirm'] as const) {
      const upstream: Upstream = { ...require('github'), link, only: true, domains: ['corp.example'] }
      const owner = await identities.settle({ upstream, claimed: { issuer: 'x', subject: '1', seen: SALES, name: '', both: false } })
      t.match(owner, { confirm: { user_id: ann.id } })
    }
  })

  await t.test('nor where an administrator has said that their identity takes the place of hers', async (t) => {
    const { identities, require } = kit.app.identity.upstreams!
    const claimed = { issuer: 'x', subject: '1', seen: SALES, name: '', both: false }
    const { subject } = showIdentity({ key: toWayKey('upstream', 'x', '1') })
    await users.update(ann.id, { set: { expected_identities: [{ upstream: 'github', subject }] }, increment: { revision: 1 } })
    t.match(await identities.settle({ upstream: require('github'), claimed }), { confirm: { user_id: ann.id, isOther: true } })
    const { seen: address, ...others } = claimed
    t.match(await identities.settle({ upstream: require('github'), claimed: { ...others, address } }), { proved: { user_id: ann.id } }, 'as the word of an authority would')
    await users.update(ann.id, { unset: ['ways', 'way_keys', 'upstreams', 'lost_identities', 'expected_identities'], increment: { revision: 1 } })
    await kit.mails.all()
  })

  await t.test('but she is, with her own GitHub account, after she has signed in to hers', async (t) => {
    github.says(2, SALES)
    const tab = browser()
    t.match((await (await github.enter(tab)).submit(ANN)).title, /Profile/)
    t.match((await github.enter(browser())).text, new RegExp(SALES))
    t.match(await users.get(ann.id), { email: SALES, email_verified_by: 'mail', upstreams: ' github ' })
  })

  await t.test('and whose address there changes to hers stays who they are', async (t) => {
    const { user } = await make(3, 'mallory', 'mallory@evil.example')
    await kit.mails.all()
    github.says(3, SALES)
    t.match((await github.enter(browser())).text, /mallory/)
    t.match(await users.get(user.id), { account: 'mallory', email: undefined, addresses: undefined })
    t.strictSame(await kit.mails.all(), [], 'nothing is mailed')
  })
})

eachStore(t, 'the former owner of a mailbox, before its present owner', async (t, start) => {
  const github = await startGithub(t)
  const harness = await start({ signUp: true, upstreams: [github.settings] })
  const { kit, browser } = harness
  const { users, signUp, make, readClaims } = openPeople(harness, github)
  const { tab, user, page } = await make(1, 'leaver')
  t.match(page.title, /Profile/, 'goes on at once')
  const sent = await kit.mails.next({ to: SALES })

  await t.test('has an account without it, whatever its provider says', async (t) => {
    for (const field of ['email', 'email_verified_at', 'email_verified_by', 'addresses']) t.notOk(field in (await users.get(user.id))!, field)
    t.notMatch(JSON.stringify(await users.get(user.id)), /sales/)
    t.match(await readClaims(tab), { preferred_username: 'leaver', email: undefined, email_verified: undefined })
    t.match(sent.text, /You signed in to .* with GitHub, and your new account leaver has no email address yet/)
  })

  await t.test('gets nothing by her reading the mail', async (t) => {
    const hers = browser()
    const shown = await hers.open(sent.link!)
    t.match(shown.text, /leaver/)
    t.match((await shown.submit()).title, /Sign in/, 'without a session it leads to the sign-in')
    t.equal((await users.get(user.id))!.email, undefined)
  })

  await t.test('keeps nobody from signing up, and is not in what she makes', async (t) => {
    const ann = await signUp()
    t.not(ann.id, user.id)
    t.match(ann, { email: SALES, email_verified_by: 'mail' })
    t.match((await github.enter(browser())).text, /leaver/)
    t.notMatch((await tab.open('/account')).text, /sales@/)
    const hers = await enter(harness, '/account', browser(), ANN)
    t.match(await readClaims(hers.browser), { email: SALES, email_verified: true })
    t.match((await hers.browser.open(sent.link!)).text, /Only the account above can confirm this change/)
    t.match((await (await tab.open(sent.link!)).submit()).text, GONE, 'even in the session of its account, the link ends when somebody else has the address')
    t.equal((await users.get(user.id))!.email, undefined)
  })
})

eachStore(t, 'an address that a provider has seen', async (t, start) => {
  const github = await startGithub(t)
  const harness = await start({ signUp: true, upstreams: [github.settings] })
  const { kit, browser } = harness
  const { users, make, readClaims } = openPeople(harness, github)
  let count = 0
  const arrive = async () => {
    const address = `person${++count}@home.example`
    const made = await make(count, `person${count}`, address)
    return { ...made, address, sent: await kit.mails.next({ to: address }) }
  }

  await t.test('is theirs after our mail, in a session of that account', async (t) => {
    const { tab, user, address, sent } = await arrive()
    const shown = await tab.open(sent.link!)
    t.match(shown.text, new RegExp(address))
    await shown.submit()
    t.match(await users.get(user.id), { account: 'person1', email: address, email_verified_at: String, email_verified_by: 'mail', addresses: [address] })
    t.match(await readClaims(tab), { preferred_username: 'person1', email: address, email_verified: true })
    t.match((await tab.open(sent.link!)).text, GONE, 'once')
    t.strictSame((await kit.events.list({ user: user.id })).map(({ type }) => type).filter((type) => type.startsWith('user.')), ['user.signed_up', 'user.email_changed'])
  })

  await t.test('is nobody else\'s by that mail', async (t) => {
    const [one, other] = [await arrive(), await arrive()]
    const shown = await other.tab.open(one.sent.link!)
    t.match(shown.text, /Only the account above can confirm this change/)
    await post(shown, '/account/verify', { token: one.sent.token!, xsrf: readXsrf(await other.tab.open('/account')) })
    for (const { user } of [one, other]) t.equal((await users.get(user.id))!.email, undefined)
  })

  await t.test('is nothing when the link has expired, or the account has changed', async (t) => {
    const late = await arrive()
    kit.clock.advance(60 * 60_000)
    t.match((await late.tab.open(late.sent.link!)).text, GONE)
    const changes: Change[] = [{ increment: { epoch: 1, revision: 1 } }, { set: { has_factor: true }, increment: { revision: 1 } }, { set: { email: 'another@home.example' }, increment: { revision: 1 } }]
    for (const change of changes) {
      const { tab, user, sent } = await arrive()
      await users.update(user.id, change)
      t.match((await tab.open(sent.link!)).text, GONE)
    }
  })

  await t.test('gets no mail once somebody has it, and a person comes in without one', async (t) => {
    const tab = browser()
    const address = `person${++count}@home.example`
    github.says(count, address)
    const page = await github.enter(tab)
    await kit.app.identity.users.create({ data: { account: address, password: 'a horse too' } })
    t.match((await page.submit({ account: `person${count}` })).title, /Profile/)
    t.strictSame(await kit.mails.all(), [])
  })

  await t.test('gets a bounded number of mails, and people come in beyond it', async (t) => {
    const address = 'many@home.example'
    for (let one = 0; one < 22; one++) t.match((await make(1000 + one, `many${one}`, address)).page.title, /Profile/)
    t.equal((await kit.mails.all()).length, 20)
  })

  await t.test('is no account name', async (t) => {
    github.says(2000, 'named@home.example')
    const page = await (await github.enter(browser())).submit({ account: 'named@home.example' })
    t.equal(page.response.status, 400)
    t.equal(await users.getBy('addresses', 'named@home.example'), null)
  })
})

eachStore(t, 'domains of a provider that has only seen addresses', async (t, start) => {
  const github = await startGithub(t)
  const narrow = await start({ signUp: true, upstreams: [{ ...github.settings, domains: ['corp.example'] }] })
  const people = openPeople(narrow, github)
  github.says(1, 'zoe@elsewhere.example')
  t.match(readError(await github.enter(narrow.browser())), /sign in here with your email address at this provider/)
  const { user } = await people.make(2, 'zoe')
  t.notMatch(JSON.stringify(user), /corp\.example/, 'they narrow, and prove nothing')
})

eachStore(t, 'an app where an account takes an address of a domain', async (t, start) => {
  const github = await startGithub(t)
  const closed = await start({ signUp: true, signUpDomains: ['corp.example'], upstreams: [github.settings] })
  github.says(3, SALES)
  t.match(readError(await github.enter(closed.browser())), /need a verified email address/, 'the word of a provider that has seen one makes none')
  t.equal(await closed.kit.app.identity.users.count({}), 1)
})
