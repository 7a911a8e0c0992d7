import t, { type Test } from 'tap'
import { Browser } from '../oidc/browser.ts'
import { type Harness, eachStore } from '../oidc/harness.ts'
import { enter, isSignedOut } from '../pages/visits.ts'
import { FORMS, openScene } from './forms.ts'

t.setTimeout(400_000)

/** An attacker's browser. Once it has a victim, the victim's browser sends its requests with the victim's cookies, as a form on another site would. */
class AttackingBrowser extends Browser {
  victim: Browser | undefined

  override async fetch (url: string, options: RequestInit = {}): Promise<Response> {
    if (this.victim === undefined) return await super.fetch(url, options)
    const { headers: { origin: _own, ...headers } = {}, ...request } = options as { headers?: Record<string, string> }
    return await this.victim.fetch(url, { ...request, headers })
  }
}

/** The browsers in which a form of a stranger may be sent. The headers `Origin` and `Sec-Fetch-Site` are absent, as in programs. */
const VICTIMS: Record<string, (harness: Harness, person: { account: string, password: string }) => Promise<Browser>> = {
  'a browser without cookies': async ({ browser }) => browser(),
  async 'a browser that has begun to sign in' ({ browser }) {
    const tab = browser()
    await tab.open('/account')
    return tab
  },
  async 'a browser of somebody who is signed in' (harness, person) {
    const tab = harness.browser()
    await enter(harness, '/account', tab, person)
    return tab
  }
}

/** Whose account pages the browser opens; undefined where it is asked to sign in. */
async function readAccount (tab: Browser): Promise<string | undefined> {
  const page = await tab.open('/account')
  return isSignedOut(page) ? undefined : /<p class="who"><bdi>([^<]*)/.exec(page.text)?.[1] ?? page.title
}

/** Sends every form of every page in each of its states from an attacker's browser, and then has each victim's browser send another such form. */
async function walk (t: Test, start: Parameters<typeof openScene>[0]): Promise<void> {
  let tabs: AttackingBrowser[] = []
  const { scene } = await openScene(start, (origin) => {
    const tab = new AttackingBrowser(origin)
    tabs.push(tab)
    return tab
  })
  // Browsers of others than the attacker.
  const others: Harness = { ...scene, browser: () => new Browser(scene.url) }
  const signsIn = new Set<string>()
  for (const [route, cases] of Object.entries(FORMS)) {
    for (const [what, , prepare] of cases) {
      const name = `${route}: ${what}`
      tabs = []
      const act = await prepare(scene)
      const before = await Promise.all(tabs.map(readAccount))
      await act()
      const after = await Promise.all(tabs.map(readAccount))
      // Only a form that signs its sender in to another account is worth sending from somebody else's browser.
      if (!after.some((account, index) => account !== undefined && account !== before[index])) continue
      signsIn.add(route)
      for (const [kind, create] of Object.entries(VICTIMS)) {
        tabs = []
        const attack = await prepare(scene)
        const person = await scene.add()
        const victim = await create(others, person)
        const own = await readAccount(victim)
        for (const tab of tabs) tab.victim = victim
        await attack().catch(() => undefined)
        t.equal(await readAccount(victim), own, `${name}, in ${kind}`)
        if (own === undefined) {
          await enter(others, '/account', victim, person)
          t.equal(await readAccount(victim), person.account, 'whose owner then signs in as themselves')
        }
      }
    }
  }
  t.strictSame([...signsIn].sort(), [
    '/account/invitation', '/account/reset', '/account/sign-in', '/account/sign-in/upstream', '/account/sign-up', '/api/v1/auth/interaction/:uid',
    '/api/v1/auth/interaction/:uid/reset', '/api/v1/auth/interaction/:uid/sign-up', '/api/v1/auth/interaction/:uid/upstream'
  ], 'these forms sign somebody in')
}

eachStore(t, 'no form that a stranger has a browser send signs it in to his account', async (t, start) => {
  await walk(t, start)
})
