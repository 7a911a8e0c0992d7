import type { Test } from 'tap'
import type { UserRecord } from '../../../lib/records/user.ts'
import { en } from '../../../lib/pages/texts/en.ts'
import { fillText } from '../../../lib/pages/texts/template.ts'
import { findFreePort } from '../../helpers/port.ts'
import { startHarness } from '../../oidc/harness.ts'
import { type Tab, heading, openMenu, press, typeIn, withTab } from '../../pages/chromium.ts'
import { CLIENT, PEOPLE, type PeerKind, type Person, VICTIM } from './peer.ts'

const { account: own, upstreams: words, signIn: entry } = en
const NAME = 'Peer'
const CONTINUE = fillText(words.with, { name: NAME })
const CONFIRM = fillText(words.confirm, { name: NAME })

/** Milliseconds by which the service's clock is behind at first, so that it can be put forward and is still no later than the provider's. */
const BEHIND = 15 * 60_000
const DAY = 24 * 60 * 60_000

/** Goes every way that people go with a provider. */
export async function walk (t: Test, { start, scripts = false }: PeerKind): Promise<void> {
  const origin = `http://localhost:${await findFreePort()}`
  const peer = await start(t, { redirectUri: `${origin}/api/v1/auth/upstream/peer/callback` })
  const { kit } = await startHarness(t, {
    time: Date.now() - BEHIND,
    signUp: true,
    oidc: { issuer: origin },
    upstreams: [{ id: 'peer', kind: 'oidc', name: NAME, issuer: peer.issuer, ...peer.client ?? CLIENT, emails: 'verified', create: true }]
  })
  const { users, heldIdentities } = kit.app.identity
  const records = kit.app.identity.store.collection<UserRecord>('users')
  const add = async (account: string) => await users.create({ data: { account, password: 'correct horse' } })
  const countIdentities = async (user_id: string) => (await heldIdentities.list(user_id)).length

  /** Runs in a new browser. Our pages never have a script; of complaints those about our pages count, and those about forms. */
  async function inBrowser (run: (tab: Tab) => Promise<void>): Promise<void> {
    await withTab(t, { javaScriptEnabled: scripts, locale: 'en-GB' }, async (tab) => {
      await tab.route((url) => url.origin === origin && url.pathname.endsWith('.js'), async (route) => await route.abort())
      await run(tab)
      const all = tab.complaints.splice(0)
      tab.complaints.push(...all.filter((text) => /form-action/.test(text)))
    })
  }

  const arrive = async (tab: Tab, title: string) => {
    await tab.getByRole('heading', { level: 1, name: title }).waitFor()
  }

  /** Begins with the button of a page, and signs in at the provider. */
  async function enter (tab: Tab, person: Person, title: string = own.sections.profile): Promise<void> {
    await tab.goto(`${origin}/account/sign-in`)
    await tab.getByRole('link', { name: CONTINUE }).click()
    await peer.signIn(tab, person)
    await arrive(tab, title)
  }

  async function signOut (tab: Tab): Promise<void> {
    await openMenu(tab)
    await press(tab, own.signOut)
  }

  await t.test('a new person whose address is proved, and the same person again', async (t) => {
    const { ada } = PEOPLE
    await inBrowser(async (tab) => {
      await enter(tab, ada)
      const user = await records.getBy('account', ada.email)
      t.match(user, { email: ada.email, email_verified_at: String, name: new RegExp(ada.name) })
      await signOut(tab)
      await tab.goto(`${origin}/account/sign-in`)
      const asked = tab.waitForRequest((request) => request.url().startsWith(new URL(peer.issuer).origin))
      await tab.getByRole('link', { name: CONTINUE }).click()
      t.match(new URL((await asked).url()).searchParams.get('prompt'), /^(login|select_account)$/, 'after a sign-out the provider asks who it is')
      await peer.signIn(tab, ada)
      await arrive(tab, own.sections.profile)
    })
    await inBrowser(async (tab) => await enter(tab, ada))
    t.equal(await records.count({ contains: { account: 'ada' } }), 1)
  })

  await t.test('an address that nobody has verified is nothing', async (t) => {
    const { ben } = PEOPLE
    const { user_id } = await add(VICTIM)
    await inBrowser(async (tab) => {
      if (peer.register === undefined) await enter(tab, ben, words.choose.title)
      else {
        await tab.goto(`${origin}/account/sign-in`)
        await tab.getByRole('link', { name: CONTINUE }).click()
        await peer.register(tab, ben)
        await arrive(tab, words.choose.title)
      }
      t.notMatch(await tab.content(), VICTIM)
      const field = tab.getByLabel(en.common.account, { exact: true })
      t.match(await field.inputValue(), /^peer-[0-9a-z]{8}$/)
      await field.fill('benjamin')
      await press(tab, words.choose.submit)
      await arrive(tab, own.sections.profile)
    })
    t.match(await records.getBy('account', 'benjamin'), { account: 'benjamin', email: undefined, email_verified_at: undefined })
    t.equal(await countIdentities(user_id), 0)
    await inBrowser(async (tab) => {
      await enter(tab, ben)
      t.match(await tab.locator('main').textContent(), /benjamin/, 'the subject is who they are')
    })
  })

  const { cara } = PEOPLE
  const { user_id } = await add(cara.email)

  await t.test('an account with the same address is joined after a sign-in to it', async (t) => {
    await inBrowser(async (tab) => {
      await enter(tab, cara, entry.title)
      t.match(await tab.getByRole('status').textContent(), CONFIRM)
      t.equal(await countIdentities(user_id), 0)
      await typeIn(tab, { account: cara.email, password: 'correct horse' })
      await arrive(tab, own.sections.profile)
      t.equal(await countIdentities(user_id), 1)
    })
    await inBrowser(async (tab) => {
      await enter(tab, cara)
      t.match(await tab.locator('main').textContent(), new RegExp(cara.email))
    })
  })

  await t.test('the account page disconnects the identity, and connects it by a form', async (t) => {
    await inBrowser(async (tab) => {
      await tab.goto(`${origin}/account/methods`)
      await typeIn(tab, { account: cara.email, password: 'correct horse' })
      await arrive(tab, own.sections.methods)
      await tab.getByRole('link', { name: own.disconnectIdentity }).click()
      await tab.getByLabel(own.currentPassword).fill('correct horse')
      await press(tab, own.disconnectIdentity)
      t.equal(await tab.getByRole('status').textContent(), own.done['identity-removed'])
      t.equal(await countIdentities(user_id), 0)
      await press(tab, fillText(own.connect, { name: NAME }))
      await peer.signIn(tab, cara)
      await tab.getByText(own.done.identity).waitFor()
      t.equal(await countIdentities(user_id), 1)
    })
  })

  await t.test('somebody without a password proves again by a form that it is them', async () => {
    await inBrowser(async (tab) => {
      await enter(tab, PEOPLE.ada)
      kit.clock.advance(BEHIND - 60_000)
      await tab.goto(`${origin}/account/methods`)
      await arrive(tab, entry.again)
      await press(tab, CONTINUE)
      await peer.signIn(tab, PEOPLE.ada)
      await arrive(tab, own.sections.methods)
    })
  })

  await t.test('a provider that is down has a page, and the password still signs in', async (t) => {
    await peer.stop()
    kit.clock.advance(DAY + 60_000)
    await inBrowser(async (tab) => {
      await tab.goto(`${origin}/account/sign-in`)
      await tab.getByRole('link', { name: CONTINUE }).click()
      t.equal(await tab.getByRole('alert').textContent(), words.down)
      await tab.getByRole('link', { name: en.common.goBackToSignIn }).click()
      await typeIn(tab, { account: cara.email, password: 'correct horse' })
      t.equal(await heading(tab), own.sections.profile)
    })
  })
}
