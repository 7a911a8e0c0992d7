/** Writes the pictures of docs/console.md: pages of a console with example data, as SVG without fonts, scripts and images. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { startIdentity } from '../../testing/index.ts'
import { atLocalhost } from '../oidc/harness.ts'
import { executablePath, typeIn } from './chromium.ts'
import { CONSOLE } from './console-visits.ts'

const FOLDER = join(import.meta.dirname, '../../docs/pictures')
const WINDOW = { width: 1120, height: 800 }
const GUEST = 'guest@northwind.example'
const ROOT = { user_id: 'root', isAdmin: true }

/** Something that is seen: a box with its colours, or a line of text. */
type Shape =
  | { kind: 'box', x: number, y: number, width: number, height: number, radius: number, fill: string, stroke: string, sides: number[] }
  | { kind: 'text', x: number, y: number, width: number, size: number, weight: string, fill: string, isCode: boolean, isLink: boolean, text: string }

/** In the browser: the boxes and the lines of text of the page, from the back to the front. */
const COLLECT = readFileSync(join(import.meta.dirname, 'picture-shapes.js'), 'utf8')

const escape = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
const round = (number: number) => String(Math.round(number * 2) / 2)
const toHex = (colour: string) => colour.replace(/^rgb\((\d+), (\d+), (\d+)\)$/, (_all, ...parts: string[]) =>
  `#${parts.slice(0, 3).map((part) => Number(part).toString(16).padStart(2, '0')).join('')}`)

function draw (shape: Shape): string {
  if (shape.kind === 'text') {
    const { x, y, width, size, weight, fill, isCode, isLink, text } = shape
    const more = `${Number(weight) > 500 ? ' font-weight="600"' : ''}${isCode ? ' font-family="monospace"' : ''}${isLink ? ' text-decoration="underline"' : ''}`
    const fit = width > 0 ? `textLength="${round(width)}" lengthAdjust="spacingAndGlyphs" ` : ''
    return `<text x="${round(x)}" y="${round(y)}" ${fit}font-size="${round(size)}" fill="${toHex(fill)}"${more}>${escape(text)}</text>`
  }
  const { x, y, width, height, radius, fill, stroke, sides } = shape
  const [up = 0, , , left = 0] = sides
  const isFramed = sides.every((side) => side > 0)
  const place = `x="${round(x)}" y="${round(y)}"`
  const box = `<rect ${place} width="${round(width)}" height="${round(height)}" rx="${round(radius)}" fill="${toHex(fill)}"${isFramed ? ` stroke="${toHex(stroke)}"` : ''}/>`
  if (isFramed) return box
  const edge = left > 0 ? `<rect ${place} width="${left}" height="${round(height)}" fill="${toHex(stroke)}"/>` : ''
  const rule = up > 0 ? `<path d="M${round(x)} ${round(y)}h${round(width)}" stroke="${toHex(stroke)}"/>` : ''
  return `${fill === 'none' ? '' : box}${edge}${rule}`
}

const { oidc: { issuer } } = await atLocalhost()

function toSvg (shapes: readonly Shape[], title: string, height: number): string {
  const seen = shapes.filter(({ y }) => y < height).map((shape) => shape.kind === 'text' && shape.text.includes(issuer)
    ? { ...shape, width: 0, text: shape.text.replaceAll(issuer, 'https://id.northwind.example') }
    : shape)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WINDOW.width} ${height}" role="img" font-family="system-ui, sans-serif">
<title>${escape(title)}</title>
<rect width="100%" height="100%" fill="#f4f5f7"/>
${seen.map(draw).filter((line) => line !== '').join('\n')}
</svg>
`
}

const folder = mkdtempSync(join(tmpdir(), 'pictures-'))
const kit = await startIdentity({
  ...CONSOLE,
  database: `sqlite:${folder}/identity.db`,
  rateLimit: false,
  oidc: { issuer, name: 'Northwind ID' },
  mail: {
    send: async ({ to }) => {
      if (to === GUEST) throw Object.assign(new Error('refused'), { responseCode: 550 })
    }
  }
})
const browser = await chromium.launch({ ...executablePath !== undefined && { executablePath }, args: ['--no-sandbox', '--disable-gpu'] })
try {
  await kit.listen({ port: Number(new URL(issuer).port) })
  const { users, clients, accounts } = kit.app.identity
  const boss = { account: 'admin@northwind.example', password: 'a long password' }
  const { user_id: bossId } = await users.create({ data: boss })
  await users.patch(bossId, { data: { roles: { admin: true } } }, ROOT)
  const { user_id } = await users.create({ data: { account: 'ann.miller@northwind.example', password: 'a long password', name: 'Ann Miller' } })
  await users.patch(user_id, { data: { roles: { editor: true }, email: 'ann.miller@northwind.example', email_verified: true } }, ROOT)
  await accounts.inviteUser({ account: GUEST }, ROOT)
  await accounts.outbox?.settle()
  for (let attempt = 0; attempt < 101; attempt++) {
    await users.verify('ann.miller@northwind.example', 'wrong').catch(() => null)
    kit.clock.advance(3_600_000)
  }
  const { clientId } = await clients.create({
    data: { name: 'Harbour Logistics', redirectUris: ['https://harbour.example/callback'], scopes: ['read', 'write'], first_party: true }, credentials: true
  }, { user_id: bossId, isAdmin: true })
  const tab = await (await browser.newContext({ viewport: WINDOW, locale: 'en-GB', javaScriptEnabled: true, bypassCSP: true })).newPage()
  await tab.goto(`${issuer}/admin`)
  await typeIn(tab, boss)
  for (const [name, path, title, height] of [
    ['overview', '', 'The overview of the console', 760],
    ['person', `/people/${user_id}`, 'The page of a person who cannot sign in', 722],
    ['token', `/clients/${clientId}/token?user_id=${user_id}&scope=openid+profile+email`, 'What a token of a client would say', 1000]
  ] as const) {
    await tab.goto(`${issuer}/admin${path}`)
    const svg = toSvg(await tab.evaluate<Shape[]>(COLLECT), title, height)
    writeFileSync(join(FOLDER, `${name}.svg`), svg)
    console.log(`${name}.svg: ${Buffer.byteLength(svg)} bytes`)
  }
} finally {
  await browser.close()
  await kit.close()
  rmSync(folder, { recursive: true })
}
