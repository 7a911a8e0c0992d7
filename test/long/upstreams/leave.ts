import type { Test } from 'tap'
import { findFreePort } from '../../helpers/port.ts'
import { Browser } from '../../oidc/browser.ts'
import { askCode, startHarness } from '../../oidc/harness.ts'
import { isSignedOut } from '../../pages/visits.ts'
import { leave } from '../../upstreams/through.ts'
import { CLIENT, PEOPLE, type PeerKind, type Person } from './peer.ts'

const HOUR = 60 * 60_000

/** Milliseconds by which the service's clock is behind at first: it is put forward by days, and then is no later than the provider's. */
const BEHIND = 10 * 24 * HOUR

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
    upstreams: [{ id: 'peer', kind: 'oidc', issuer: peer.issuer, ...peer.client ?? CLIENT, emails: 'verified', domains: ['example.com'], only: true, create: true }]
  })
  const { kit } = harness
  const app = await harness.register()

  async function enter ({ account, password }: Person): Promise<SignedIn> {
    const [ours, theirs] = [harness.browser(), new Browser(new URL(peer.issuer).origin)]
    const { url, verifier } = askCode(app, { upstream: 'peer' })
    const form = await theirs.open((await leave(ours, url)).href)
    const { left } = await form.submit({ username: account, password })
    const page = await ours.open(left?.href ?? '/')
    const { body } = await harness.post('token', { code: page.left?.searchParams.get('code') ?? '', code_verifier: verifier, redirect_uri: app.redirect_uri, grant_type: 'authorization_code' }, app)
    if (typeof body.refresh_token !== 'string') throw new Error(`not signed in: ${form.title} ${page.title} ${page.text.slice(0, 2000)}`)
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
}
