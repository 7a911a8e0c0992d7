import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import axe from 'axe-core'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import type { Test } from 'tap'

const PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/usr/bin/google-chrome-stable',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome']

/** The installed Chromium; undefined where there is none. */
export const executablePath = process.env.CHROMIUM_PATH ?? PATHS.find((path) => existsSync(path))

/** The reason to skip tests in a browser, or false. */
export const skip = executablePath === undefined && 'no Chromium found: set CHROMIUM_PATH'

/** The folder for screenshots, which git ignores. They are for people, and are taken when SCREENSHOTS is set. */
const SCREENSHOTS = join(import.meta.dirname, '../../.screenshots')

let browser: Promise<Browser> | undefined

/** Starts the Chromium of a test file. It is closed when the test ends. */
export function startChromium (t: Test): void {
  browser = chromium.launch({
    ...(executablePath !== undefined && { executablePath }),
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']
  })
  t.teardown(async () => await (await browser)?.close())
}

export interface Tab extends Page {
  /** The browser's complaints: script errors, policy violations, failed responses. */
  complaints: string[]
}

/** Runs with a new browser context. Complaints that the run leaves in the list fail the test. */
export async function withTab (t: Test, options: BrowserContextOptions, run: (tab: Tab) => Promise<void>): Promise<void> {
  const context = await (await browser as Browser).newContext({ viewport: { width: 1280, height: 900 }, ...options })
  context.setDefaultTimeout(120_000)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (/^(error|warning)$/.test(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  // The DevTools protocol reports violations that page scripts cannot see.
  const session = await context.newCDPSession(page)
  await session.send('Audits.enable')
  session.on('Audits.issueAdded', ({ issue }) => {
    const details = issue.details.contentSecurityPolicyIssueDetails
    if (details !== undefined) complaints.push(`policy: ${details.violatedDirective} ${details.blockedURL ?? ''}`)
  })
  try {
    await run(Object.assign(page, { complaints }))
    t.strictSame(complaints, [], 'the browser has no complaints')
  } finally {
    await context.close()
  }
}

export const heading = async (tab: Page) => await tab.getByRole('heading', { level: 1 }).textContent()
export const press = async (tab: Page, name: string) => await tab.getByRole('button', { name }).click()

/** Opens the menu of an account page, which is folded on a phone only. */
export async function openMenu (tab: Page): Promise<void> {
  const summary = tab.locator('nav summary')
  if (await summary.isVisible()) await summary.click()
}

/**
 * What axe finds on the page, each with the elements. The page's policy must allow scripts.
 * @param run the call of axe
 */
export async function findViolations (tab: Tab, run = 'axe.run()'): Promise<unknown[]> {
  if (await tab.evaluate("!('axe' in window)")) await tab.evaluate(axe.source)
  const { violations } = await tab.evaluate<axe.AxeResults>(run)
  return violations.map(({ id, nodes }) => [id, ...nodes.map((node) => node.html)])
}

/** How far a page reaches beyond its window, sideways, in pixels. */
export const OVERFLOW = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'

/** Visible targets that are too small. Links within a sentence may be as high as its lines (WCAG 2.2, 2.5.8). */
export const SMALL = `[...document.querySelectorAll('input:not([type=hidden], .hidden), button, a, summary, select, textarea')]
  .filter((element) => element.tagName !== 'A' || element.parentElement.textContent.trim() === element.textContent.trim())
  .map((element) => [element.getBoundingClientRect().height, element.outerHTML])
  .filter(([height]) => height > 0 && height < 44).map(([, outer]) => outer)`

/** Opens or closes all that can be folded. axe reads it only while it is open. */
export const setDetails = (isOpen: boolean) => `document.querySelectorAll('details').forEach((details) => { details.open = ${isOpen} })`

/** Fills in the sign-in form and submits it. */
export async function typeIn (tab: Page, { account, password }: { account: string, password: string }): Promise<void> {
  await tab.getByLabel('Email or username').fill(account)
  await tab.getByLabel('Password').fill(password)
  await tab.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** Takes a picture of the whole page. */
export async function takePicture (page: Page, name: string): Promise<void> {
  if (!process.env.SCREENSHOTS) return
  mkdirSync(SCREENSHOTS, { recursive: true })
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true })
}
