import { hash } from 'node:crypto'
import t from 'tap'
import { pageHeaders } from '../../lib/pages/headers.ts'
import { renderPage } from '../../lib/pages/index.ts'
import { createLook } from '../../lib/pages/look.ts'
import { STYLE, SURFACES } from '../../lib/pages/style.ts'

type Colours = Record<string, string>

const readColours = (css: string): Colours => Object.fromEntries([...css.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name = '', value = '']) => [name, value]))

const [light = '', dark = ''] = /:root \{(.*?)\}.*?prefers-color-scheme: dark\) \{\s*:root \{(.*?)\}/s.exec(STYLE)?.slice(1) ?? []
const SCHEMES = { light: readColours(light), dark: readColours(dark) }

/** WCAG 2.2, relative luminance. */
function luminance (colour: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((start) => {
    const value = parseInt(colour.slice(start, start + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

/** WCAG 2.2, contrast ratio. */
function contrast (one: string, other: string): number {
  const [high = 0, low = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a)
  return (high + 0.05) / (low + 0.05)
}

/** Each foreground colour with its backgrounds: text (WCAG 1.4.3) and other graphics (1.4.11). */
const PAIRS: [least: number, foreground: string, ...backgrounds: string[]][] = [
  [4.5, 'text', 'background', 'surface', 'hover'],
  [4.5, 'muted', 'background', 'surface'],
  [4.5, 'link', 'background', 'surface'],
  [4.5, 'button-text', 'button', 'button-hover'],
  [4.5, 'mark-text', 'mark'],
  [4.5, 'error', 'error-background', 'surface'],
  [3, 'border', 'background', 'surface', 'hover'],
  [3, 'button', 'surface'],
  [3, 'focus', 'surface']
]

t.test('every colour has enough contrast with its background', async (t) => {
  t.equal(contrast('#000000', '#ffffff'), 21)
  t.strictSame(Object.keys(SCHEMES.dark), Object.keys(SCHEMES.light), 'both schemes define every colour')
  for (const [scheme, colours] of Object.entries(SCHEMES)) {
    for (const [least, foreground, ...backgrounds] of PAIRS) {
      for (const background of backgrounds) {
        const ratio = contrast(colours[foreground] ?? '', colours[background] ?? '')
        t.ok(ratio >= least, `${scheme}: ${foreground} on ${background} is ${ratio.toFixed(2)}, at least ${least}`)
      }
    }
  }
  const used = new Set([...STYLE.matchAll(/var\(--([\w-]+)\)/g)].map(([, name = '']) => name))
  t.strictSame([...used].filter((name) => !PAIRS.flat().includes(name)), ['divider'], 'only decoration is in no pair')
  for (const [scheme, colours] of Object.entries(SCHEMES)) {
    t.strictSame(SURFACES[scheme as keyof typeof SURFACES], [colours.surface, colours.background], 'an accent is compared with these')
  }
  t.notMatch(STYLE.replace(/:root \{.*?\}/gs, ''), /#[0-9a-f]{3,8}\b|rgb|hsl/, 'no colours beside the named ones')
})

t.test('transitions respect prefers-reduced-motion', async (t) => {
  const still = STYLE.replace(/@media \(prefers-reduced-motion: no-preference\) \{.*?\n\}/s, '')
  t.not(still, STYLE)
  t.notMatch(still, /transition|animation/)
})

t.test('the policy allows this style sheet and nothing else', async (t) => {
  const [, inline = ''] = /<style>(.*?)<\/style>/s.exec(renderPage('error', { message: () => 'x' }, createLook(), 'en')) ?? []
  t.equal(inline, createLook().style)
  t.equal(inline.replaceAll(/\s/g, ''), STYLE.replaceAll(/\s/g, ''), 'but for spaces')
  t.notMatch(STYLE, /url\(|@import|<|\\/)
  const policy = pageHeaders({ look: createLook() })['content-security-policy'] ?? ''
  t.match(policy, `style-src 'sha256-${hash('sha256', inline, 'base64')}';`)
  t.notMatch(policy, /unsafe|\*|script-src|img-src (?!data:;)/)
})

t.test("a form may redirect to the scheme of the app's URI and to no other", async (t) => {
  for (const [uri, sources] of [
    [undefined, "'self'"],
    ['https://app.example/cb', "'self' https:"],
    ['http://127.0.0.1:4000/cb', "'self' http:"],
    ['http://[::1]:4000/cb', "'self' http:"],
    ['com.example.app:/cb', "'self' com.example.app:"],
    ["https://a.example/; script-src 'unsafe-inline'", "'self' https:"],
    ['no URI', "'self'"],
    [17, "'self'"]
  ] as const) t.match(pageHeaders({ look: createLook(), redirectUri: uri })['content-security-policy'], `form-action ${sources};`, String(uri))
})
