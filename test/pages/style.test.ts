import { hash } from 'node:crypto'
import t from 'tap'
import { pageHeaders } from '../../lib/pages/headers.ts'
import { renderPage } from '../../lib/pages/index.ts'
import { STYLE } from '../../lib/pages/style.ts'

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

/** What is written on what, and what is drawn on what: 1.4.3 and 1.4.11. */
const PAIRS: [least: number, front: string, ...grounds: string[]][] = [
  [4.5, 'text', 'ground', 'sheet', 'over'],
  [4.5, 'quiet', 'ground', 'sheet'],
  [4.5, 'link', 'sheet'],
  [4.5, 'deed-text', 'deed', 'deed-over'],
  [4.5, 'mark-text', 'mark'],
  [4.5, 'wrong', 'wrong-ground', 'sheet'],
  [3, 'line', 'sheet', 'over'],
  [3, 'deed', 'sheet'],
  [3, 'focus', 'sheet']
]

t.test('every colour can be told from what it is on', async (t) => {
  t.equal(contrast('#000000', '#ffffff'), 21)
  t.strictSame(Object.keys(SCHEMES.dark), Object.keys(SCHEMES.light), 'both schemes have all of them')
  for (const [scheme, colours] of Object.entries(SCHEMES)) {
    for (const [least, front, ...grounds] of PAIRS) {
      for (const ground of grounds) {
        const ratio = contrast(colours[front] ?? '', colours[ground] ?? '')
        t.ok(ratio >= least, `${scheme}: ${front} on ${ground} is ${ratio.toFixed(2)}, at least ${least}`)
      }
    }
  }
  const used = new Set([...STYLE.matchAll(/var\(--([\w-]+)\)/g)].map(([, name = '']) => name))
  t.strictSame([...used].filter((name) => !PAIRS.flat().includes(name)), ['rule'], 'only what merely decorates is in no pair')
  t.notMatch(STYLE.replace(/:root \{.*?\}/gs, ''), /#[0-9a-f]{3,8}\b|rgb|hsl/, 'no colour beside the named ones')
})

t.test('what moves, moves only for those who like it', async (t) => {
  const still = STYLE.replace(/@media \(prefers-reduced-motion: no-preference\) \{.*?\n\}/s, '')
  t.not(still, STYLE)
  t.notMatch(still, /transition|animation/)
})

t.test('the policy lets in this style and nothing else', async (t) => {
  const [, inline = ''] = /<style>(.*?)<\/style>/s.exec(renderPage('error', { message: 'x' })) ?? []
  t.equal(inline, STYLE)
  t.notMatch(STYLE, /url\(|@import|<|\\/)
  const policy = pageHeaders()['content-security-policy'] ?? ''
  t.match(policy, `style-src 'sha256-${hash('sha256', inline, 'base64')}';`)
  t.notMatch(policy, /unsafe|\*|data:|img-src|script-src/)
})

t.test('a form may lead to where the app is, and to no other scheme', async (t) => {
  for (const [uri, sources] of [
    [undefined, "'self'"],
    ['https://app.example/cb', "'self' https:"],
    ['http://127.0.0.1:4000/cb', "'self' http:"],
    ['http://[::1]:4000/cb', "'self' http:"],
    ['com.example.app:/cb', "'self' com.example.app:"],
    ["https://a.example/; script-src 'unsafe-inline'", "'self' https:"],
    ['no URI', "'self'"],
    [17, "'self'"]
  ] as const) t.match(pageHeaders(uri)['content-security-policy'], `form-action ${sources};`, String(uri))
})
