import type { Test } from 'tap'
import type { UserRecord } from '../../../lib/records/user.ts'
import type { GivenUpstream } from '../../../schemas/upstream.ts'
import { findFreePort } from '../../helpers/port.ts'
import { Browser, type Page } from '../../oidc/browser.ts'
import { askCode, startHarness } from '../../oidc/harness.ts'
import { isSignedOut } from '../../pages/visits.ts'
import { agree, leave } from '../../upstreams/through.ts'
import { CLIENT, GROUP, GROUPED, PEOPLE, type PeerKind, type Person } from './peer.ts'

const HOUR = 60 * 60_000

/** Milliseconds by which the service's clock is behind at first: it is put forward by days, and then is no later than the provider's. */
const BEHIND = 10 * 24 * HOUR

/** The claims that become roles here, by upstream. */
const CLAIMS = { groups: 'groups', 'realm-roles': 'realm_access.roles' }

/** A person with a browser that is signed in at both, and an app with offline access. */
interface SignedIn { ours: Browser, theirs: Browser, refresh: string }

/** What is left here of people who are signed out, disabled and deleted at a provider. */
export async function leaveAll (t: Test, { start }: PeerKind): Promise<void> {
  const origin = `http://localhost:${await findFreePort()}`
  const base = `${origin}/api/v1/auth/upstream/peer`
  const peer = await start(t, { redirectUri: `${base}/callback`, logoutUri: `${base}/backchannel-logout` })
  const harness = await startHarness(t, {
    time: Date.now() - BEHIND,
    signUp: true,
    oidc: { issuer: origin },
    upstreams: [
      { id: 'peer', kind: 'oidc', issuer: peer.issuer, ...peer.client ?? CLIENT, emails: 'verified', domains: ['example.com'], only: true, create: true },
      ...Object.entries(CLAIMS).map(([id, claim]): GivenUpstream => (
        { id, kind: 'oidc', issuer: peer.issuer, ...peer.client ?? CLIENT, emails: 'verified', domains: [`${id}.example`], only: true, create: true, roles: { claim, map: { [GROUP]: `of-${id}` } } }))
    ]
  })
  const { kit } = harness
  const app = await harness.register()

  /** Signs in there. Resolves to the page of ours that follows, or to the redirect to the app. */
  async function arrive ({ account, password }: Person, { ours, theirs }: Pick<SignedIn, 'ours' | 'theirs'>, url: string): Promise<Page> {
    const form = await theirs.open((await leave(ours, url)).href)
    return await agree(await ours.open((form.left ?? (await form.submit({ username: account, password })).left)?.href ?? '/'))
  }

  const find = async ({ email }: Person) => await kit.app.identity.store.collection<UserRecord>('users').getBy('addresses', email)

  const openBrowsers = () => ({ ours: harness.browser(), theirs: new Browser(new URL(peer.issuer).origin) })

  async function enter (person: Person): Promise<SignedIn> {
    const { ours, theirs } = openBrowsers()
    const { url, verifier } = askCode(app, { upstream: 'peer' })
    const page = await arrive(person, { ours, theirs }, url)
    const { body } = await harness.post('token', { code: page.left?.searchParams.get('code') ?? '', code_verifier: verifier, redirect_uri: app.redirect_uri, grant_type: 'authorization_code' }, app)
    if (typeof body.refresh_token !== 'string') throw new Error(`not signed in: ${page.title} ${page.text.slice(0, 2000)}`)
    return { ours, theirs, refresh: body.refresh_token }
  }

  async function refresh (signedIn: SignedIn): Promise<boolean> {
    const { status, body } = await harness.post('token', { grant_type: 'refresh_token', refresh_token: signedIn.refresh }, app)
    if (status === 200) signedIn.refresh = String(body.refresh_token)
    return status === 200
  }

  /** Opens the account pages, and goes to the provider and back where these send the browser. */
  async function isIn ({ ours, theirs }: SignedIn): Promise<boolean> {
    const page = await ours.open('/account')
    if (page.left === undefined) return page.title.startsWith('Profile')
    t.equal(page.left.searchParams.get('prompt'), 'none')
    const { left } = await theirs.open(page.left.href)
    return (await ours.open(left!.href)).title.startsWith('Profile')
  }

  const { ada, cara, dora } = PEOPLE

  for (const order of ['before', 'after'] as const) {
    await t.test(`a sign-out there, with a refresh ${order} it`, async (t) => {
      const signedIn = await enter(ada)
      if (order === 'before') t.ok(await refresh(signedIn))
      t.ok(await isIn(signedIn))
      await peer.administer!(ada, 'sign out')
      await kit.flush()
      t.ok(isSignedOut(await signedIn.ours.open('/account')), 'signs out here')
      t.notOk(await refresh(signedIn), 'and the app')
      kit.clock.advance(1000)
    })
  }

  await t.test('a refresh at the same time as a sign-out there', async (t) => {
    for (let count = 0; count < 5; count++) {
      const signedIn = await enter(ada)
      await Promise.all([peer.administer!(ada, 'sign out'), refresh(signedIn)])
      await kit.flush()
      t.notOk(await refresh(signedIn))
      t.ok(isSignedOut(await signedIn.ours.open('/account')))
      kit.clock.advance(1000)
    }
  })

  await t.test('somebody who stays goes on without a page', async (t) => {
    const signedIn = await enter(ada)
    kit.clock.advance(25 * HOUR)
    t.notOk(await refresh(signedIn))
    t.ok(await isIn(signedIn))
    t.ok(await refresh(signedIn))
  })

  for (const [what, person] of [['disable', cara], ['delete', dora]] as const) {
    await t.test(`${what}: at the bound everything is over`, async (t) => {
      const [signedIn, other] = [await enter(person), await enter(person)]
      t.ok(await refresh(signedIn))
      await peer.administer!(person, what)
      await kit.flush()
      t.comment(`${what}: ${isSignedOut(await signedIn.ours.open('/account')) ? 'at once' : 'at the bound'}`)
      kit.clock.advance(25 * HOUR)
      for (const one of [signedIn, other]) {
        t.notOk(await refresh(one))
        t.notOk(await isIn(one))
        t.notOk(await refresh(one), 'nor after the provider was asked')
        t.notOk(await isIn(one))
      }
    })
  }

  await t.test('the next owner of the address of somebody who was deleted', async (t) => {
    const { id } = (await find(dora))!
    await peer.administer!(dora, 'create')
    const { url } = askCode(app, { upstream: 'peer' })
    const page = await arrive(dora, openBrowsers(), url)
    t.match(page.text, /another/, 'she is not let into the account')
    await kit.app.identity.accounts.releaseAddress(id, { user_id: 'operator', isAdmin: true })
    const signedIn = await enter(dora)
    t.ok(await isIn(signedIn))
    t.not((await find(dora))!.id, id, 'once the address was taken from it, she has one of her own')
  })

  for (const [upstream, person] of Object.entries(GROUPED)) {
    await t.test(`roles by ${upstream}`, async (t) => {
      await peer.administer!(person, 'create')
      const { url } = askCode(app, { upstream })
      const enterWith = async (what: 'add to the group' | 'remove from the group') => {
        await peer.administer!(person, what)
        const page = await arrive(person, openBrowsers(), url)
        return { isIn: page.left?.searchParams.has('code') === true, hasRole: (await find(person))?.roles[`of-${upstream}`] === true }
      }
      t.strictSame(await enterWith('add to the group'), { isIn: true, hasRole: true })
      // Keycloak leaves out the groups of somebody who has none. Everybody has a role.
      const isSent = upstream !== 'groups'
      t.strictSame(await enterWith('remove from the group'), { isIn: isSent, hasRole: !isSent })
      t.strictSame(await enterWith('add to the group'), { isIn: true, hasRole: true })
    })
  }

  await t.test('a request for a fresh sign-in asks for the password there, and another one does not', async (t) => {
    const { theirs } = await enter(ada)
    const ask = async (params: Record<string, string>) => {
      const page = await theirs.open((await leave(harness.browser(), askCode(app, { upstream: 'peer', ...params }).url)).href)
      return page.left === undefined
    }
    t.equal(await ask({}), false)
    t.equal(await ask({ prompt: 'login' }), true)
    t.equal(await ask({ max_age: '0' }), true)
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    t.equal(await ask({ max_age: '1' }), true)
  })
}
