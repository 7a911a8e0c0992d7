import type { Test } from 'tap'
import type { Locator } from 'playwright-core'
import type { Texts } from '../../lib/pages/texts/en.ts'
import { type Harness, atLocalhost, startHarness } from '../oidc/harness.ts'
import { type Tab, findViolations, takePicture, withTab } from './chromium.ts'

/** How somebody uses the pages. */
export interface Manner {
  name: string
  locale: 'en-GB' | 'de-AT'
  colorScheme: 'light' | 'dark'
  viewport: { width: number, height: number }
  /** Whether scripts run. Passkeys need them. */
  hasScript: boolean
  /** Whether every field and button is reached by Tab and used by the keyboard alone. */
  isByKeyboard?: boolean
}

const WIDTHS = [1280, 360]
const OVERFLOW = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
/** Milliseconds to wait for what a page should show. */
const PATIENCE = 30_000
/** Keys after which a field that was not reached is out of reach. */
const MOST_TABS = 60

export const APP = 'https://app.example/cb'

/** Somebody at a browser: they read what a page says, and use what it shows by its name. */
export class Person {
  readonly tab: Tab
  readonly #t: Test
  readonly #walk: string
  readonly #manner: Manner
  #stops = 0

  constructor (t: Test, tab: Tab, walk: string, manner: Manner) {
    this.tab = tab
    this.#t = t
    this.#walk = walk
    this.#manner = manner
  }

  async #reach (element: Locator): Promise<void> {
    await element.waitFor()
    const focused = element.and(this.tab.locator(':focus'))
    for (let tabs = 0; await focused.count() === 0; tabs++) {
      if (tabs === MOST_TABS) throw new Error(`${this.#walk}: Tab does not lead to ${String(element)}`)
      await this.tab.keyboard.press('Tab')
    }
  }

  async #use (element: Locator): Promise<void> {
    if (this.#manner.isByKeyboard !== true) return await element.click()
    await this.#reach(element)
    await Promise.all([this.tab.waitForEvent('load'), this.tab.keyboard.press('Enter')])
  }

  async press (name: string | RegExp): Promise<void> {
    await this.#use(this.tab.getByRole('button', { name, exact: typeof name === 'string' }))
  }

  async follow (name: string | RegExp): Promise<void> {
    await this.#use(this.tab.getByRole('link', { name, exact: typeof name === 'string' }))
  }

  async fill (label: string, text: string): Promise<void> {
    const field = this.tab.getByLabel(label, { exact: true })
    if (this.#manner.isByKeyboard !== true) return await field.fill(text)
    await this.#reach(field)
    await this.tab.keyboard.press('Control+A')
    await this.tab.keyboard.type(text)
  }

  async check (label: string): Promise<void> {
    const box = this.tab.getByLabel(label, { exact: true })
    if (this.#manner.isByKeyboard !== true) return await box.check()
    await this.#reach(box)
    await this.tab.keyboard.press('Space')
  }

  async #openMenu (): Promise<void> {
    const summary = this.tab.locator('nav summary')
    if (!await summary.isVisible()) return
    if (this.#manner.isByKeyboard !== true) return await summary.click()
    await this.#reach(summary)
    await this.tab.keyboard.press('Enter')
  }

  /** Goes to a section of the account. */
  async goTo (section: string): Promise<void> {
    await this.#openMenu()
    await this.#use(this.tab.getByRole('navigation').getByRole('link', { name: section, exact: true }))
  }

  /** Waits until the browser has left for the app. */
  async arrive (): Promise<void> {
    await this.tab.waitForURL(`${APP}?code=*`)
    await this.tab.getByRole('heading', { name: 'The app' }).waitFor()
  }

  async signOut ({ account }: Texts): Promise<void> {
    await this.#openMenu()
    await this.#use(this.tab.getByRole('navigation').getByRole('button', { name: account.signOut, exact: true }))
  }

  /**
   * Looks at the page, whose heading must be this one: it fits, and is accessible. Pictures are taken in both schemes, wide and narrow.
   */
  async look (heading: string): Promise<void> {
    const { tab } = this
    const manner = this.#manner
    const name = `${this.#walk}-${String(++this.#stops).padStart(2, '0')}`
    await tab.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor()
    this.#t.equal(await tab.getByRole('heading', { level: 1 }).count(), 1, `${name}: ${heading}`)
    // By keyboard the pages are the same ones.
    if (manner.isByKeyboard === true) return
    for (const width of WIDTHS) {
      await tab.setViewportSize({ width, height: width === 360 ? 740 : 800 })
      this.#t.equal(await tab.evaluate(OVERFLOW), 0, `${name}: no horizontal scrolling at ${width}`)
      for (const colorScheme of process.env.SCREENSHOTS ? ['light', 'dark'] as const : []) {
        await tab.emulateMedia({ colorScheme })
        await takePicture(tab, `walk-${name}-${manner.locale.slice(0, 2)}-${colorScheme}-${width}`)
      }
    }
    await tab.setViewportSize(manner.viewport)
    await tab.emulateMedia({ colorScheme: manner.colorScheme })
    // axe waits for timers, which do not run where scripts do not.
    if (manner.hasScript) this.#t.strictSame(await findViolations(tab, "axe.run({ resultTypes: ['violations'] })"), [], `${name}: axe finds nothing`)
  }
}

/** A service with all that the walks need, at localhost for passkeys. */
export async function open (t: Test, options: Parameters<typeof startHarness>[1] = {}): Promise<Harness> {
  const { oidc: { issuer } } = await atLocalhost()
  const oidc = {
    issuer,
    name: 'Northwind',
    helpAddress: 'help@northwind.example',
    termsUrl: 'https://northwind.example/terms',
    privacyUrl: 'https://northwind.example/privacy',
    ...(typeof options.oidc === 'object' ? options.oidc : {})
  }
  return await startHarness(t, { signUp: true, passwordMin: 8, upstream: { name: 'Contoso' }, ...options, oidc })
}

/** Runs a walk in a tab of its own. The app is a page of this test. */
export async function walk (t: Test, name: string, manner: Manner, run: (person: Person) => Promise<void>): Promise<void> {
  const { locale, colorScheme, viewport, hasScript } = manner
  // The policy of the pages would keep axe out.
  await withTab(t, { locale, colorScheme, viewport, javaScriptEnabled: hasScript, bypassCSP: true, reducedMotion: 'reduce' }, async (tab) => {
    await tab.route('https://app.example/**', async (route) => await route.fulfill({ contentType: 'text/html', body: '<!DOCTYPE html><html lang="en"><head><title>The app</title><link rel="icon" href="data:,"></head><body><main><h1>The app</h1></main></body></html>' }))
    tab.setDefaultTimeout(PATIENCE)
    await run(new Person(t, tab, name, manner))
  })
}

/** A virtual authenticator in the tab, as a phone or a computer has it. */
export async function addAuthenticator (tab: Tab): Promise<void> {
  await tab.addInitScript('PublicKeyCredential.isConditionalMediationAvailable = async () => false')
  const session = await tab.context().newCDPSession(tab)
  await session.send('WebAuthn.enable')
  await session.send('WebAuthn.addVirtualAuthenticator', {
    options: { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true }
  })
}
