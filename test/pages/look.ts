import { brotliCompressSync } from 'node:zlib'
import type { Test } from 'tap'
import { pageHeaders } from '../../lib/pages/headers.ts'
import { type PageName, type Pages, renderPage } from '../../lib/pages/index.ts'
import { type Look, createLook } from '../../lib/pages/look.ts'
import { BUILT_IN, type Language } from '../../lib/pages/texts/language.ts'
import { OVERFLOW, SMALL, type Tab, findViolations, setDetails, startChromium, takePicture, withTab } from './chromium.ts'

export const action = '/form'
export const client = { name: 'Harbour Logistics' }
export const shared = { action, client }
export const LONG = 'Gesellschaft-zur-Erforschung-sehr-langer-Namen-und-ihrer-Darstellung'.repeat(3)

export type Row = { [Name in PageName]: [file: string, name: Name, data: Pages[Name], service?: string] }[PageName]

/** A logo in two colours, wider than high. */
const LOGO = `data:image/svg+xml;base64,${btoa('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 40"><rect width="120" height="40" fill="#24508f"/><circle cx="20" cy="20" r="12" fill="#fff"/></svg>')}`

const lookOf = (name: string | undefined) => createLook({ getHome: () => '/account', ...(name !== undefined && { name, logo: LOGO, accent: '#b3261e #f2b8b5', helpAddress: 'help@northwind.example', termsUrl: 'https://northwind.example/terms', privacyUrl: 'https://northwind.example/privacy' }) })

/** Shows all parts of a passkey, as the script shows some of them. */
const SHOW_PASSKEY = "document.querySelectorAll('[data-passkey] [hidden]').forEach((part) => { part.hidden = false })"

const ADDRESS = 'https://id.example/page'

/** The maximum size of a page in bytes: as text, and compressed. */
const SIZE = { plain: 16 * 1024, sent: 5 * 1024 }

/** Checks the size of a page. A QR code, an image and a list are as large as what they show. */
function checkSize (t: Test, what: string, page: string): void {
  const text = page.replaceAll(/"data:[^"]*"/g, '""').replaceAll(/<path d="[^"]*"/g, '<path d=""').replaceAll(/<ul class="entries"[^>]*>.*<\/ul>/gs, '')
  const [plain, sent] = [Buffer.byteLength(text), brotliCompressSync(text).length]
  t.ok(plain <= SIZE.plain && sent <= SIZE.sent, `${what}: ${plain} bytes, ${sent} compressed`)
}

/** Returns a function that shows a page in the tab with the headers of the service. */
async function serve (tab: Tab, look: Look): Promise<(body: string) => Promise<unknown>> {
  let body = ''
  await tab.route('https://id.example/**', async (route) => await route.fulfill({ headers: { ...pageHeaders({ look }), 'content-type': 'text/html; charset=utf-8' }, body }))
  return async (text) => {
    body = text
    return await tab.goto(ADDRESS)
  }
}

/** In the dark only the rules about colours are checked: the others read the elements and their order, which no colour and no language changes. */
const AXE = {
  light: "axe.run({ resultTypes: ['violations'] })",
  dark: "axe.run({ resultTypes: ['violations'], runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } })"
}

const WIDTHS = { wide: { width: 1280, height: 900 }, phone: { width: 390, height: 844 }, narrow: { width: 320, height: 568 } }

/** A page as it is looked at. */
export interface Sight {
  row: string
  render: (language: Language) => string
  /** Whether a picture of its phone has the menu open. */
  hasMenu?: boolean
}

interface SightOptions {
  /** Of the headers of the pages. */
  look?: Look
  /** The windows in which the pages have to fit. */
  widths?: Readonly<Record<string, { width: number, height: number }>>
  /** The windows of which pictures are taken with everything closed. */
  pictures?: readonly string[]
  hasLimit?: boolean
}

/**
 * Checks that each page fits, wide, narrow and zoomed, in every language; and that it is accessible, and its colours have enough
 * contrast in the dark, in one.
 */
export async function checkSights (
  t: Test, sights: readonly Sight[], { look = createLook(), widths = WIDTHS, pictures = ['phone'], hasLimit = true }: SightOptions = {}
): Promise<void> {
  startChromium(t)
  // The policy would block axe. The flows test the style under the policy. Transitions would delay a change of colours.
  await withTab(t, { bypassCSP: true, reducedMotion: 'reduce' }, async (tab) => {
    const show = await serve(tab, look)
    for (const { row, render, hasMenu = false } of sights) {
      for (const language of BUILT_IN) {
        const what = `${row}-${language}`
        const isFirst = language === 'en'
        await tab.setViewportSize(WIDTHS.wide)
        const page = render(language)
        if (hasLimit) checkSize(t, what, page)
        await show(page)
        await tab.evaluate(setDetails(true))
        await tab.evaluate(SHOW_PASSKEY)
        t.equal(await tab.locator('h1').count(), 1, `${what}: one heading of the first level`)
        for (const colorScheme of isFirst ? ['dark', 'light'] as const : ['light'] as const) {
          await tab.emulateMedia({ colorScheme })
          await takePicture(tab, `${what}-${colorScheme}-wide`)
          if (isFirst) t.strictSame(await findViolations(tab, AXE[colorScheme]), [], `${what}, ${colorScheme}: axe reports no violation`)
        }
        for (const [size, viewport] of Object.entries(widths)) {
          await tab.setViewportSize(viewport)
          t.equal(await tab.evaluate(OVERFLOW), 0, `${what}, ${size}: no horizontal scrolling`)
          t.strictSame(await tab.evaluate(SMALL), [], `${what}, ${size}: targets are large enough`)
          if (!pictures.includes(size)) continue
          if (hasMenu) await takePicture(tab, `${what}-light-menu`)
          await tab.evaluate(setDetails(false))
          await takePicture(tab, `${what}-light-${size}`)
          await tab.evaluate(setDetails(true))
        }
        // Like a zoom of 200% on a phone 320 CSS pixels wide.
        await tab.setViewportSize({ width: 640, height: 800 })
        await tab.addStyleTag({ content: 'html { font-size: 200% !important }' })
        t.equal(await tab.evaluate(OVERFLOW), 0, `${what}: no horizontal scrolling at twice the text size`)
      }
    }
  })
}

/** The same of pages by their names. */
export const checkLook = async (t: Test, rows: readonly Row[]): Promise<void> => await checkSights(t, rows.map(([row, name, data, service]) => ({
  row, hasMenu: row === 'account-profile', render: (language) => renderPage(name, data as never, lookOf(service), language, 'next=email')
})))
