import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { pageHeaders } from '../../lib/pages/headers.ts'
import { renderPage } from '../../lib/pages/index.ts'
import { computeContrast } from '../../lib/pages/colours.ts'
import { createLook } from '../../lib/pages/look.ts'
import { SURFACES } from '../../lib/pages/style.ts'
import { build } from '../helpers/build.ts'

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const SVG = '<?xml version="1.0"?>\n<!-- by us -->\n<svg xmlns="http://www.w3.org/2000/svg"/>'

t.test('a logo is inlined with the type of its content', async (t) => {
  const dir = t.testdir({ 'logo.svg': SVG, 'page.svg': '<html><svg></svg>', 'big.png': '' })
  writeFileSync(join(dir, 'big.png'), Buffer.concat([Buffer.from(PIXEL, 'base64'), Buffer.alloc(64 * 1024)]))
  const look = createLook({ name: 'Acme', logo: join(dir, 'logo.svg') })
  t.equal(look.logo, `data:image/svg+xml;base64,${btoa(SVG)}`)
  const page = renderPage('error', { message: () => 'x' }, look, 'en')
  t.match(page, `<header><img src="${look.logo}" alt="Acme"></header>`)
  t.match(pageHeaders({ look })['content-security-policy'], '; img-src data:;', 'and the policy allows it')
  const dark = createLook({ name: 'Acme', logo: join(dir, 'logo.svg'), logoDark: `data:image/png;base64,${PIXEL}` })
  const source = `<source srcset="data:image/png;base64,${PIXEL}" media="(prefers-color-scheme: dark)">`
  t.match(renderPage('error', { message: () => 'x' }, dark, 'en'), `<header><picture>${source}<img src="${dark.logo}" alt="Acme"></picture></header>`)
  t.equal(createLook({ logo: `data:image/svg+xml;base64,${PIXEL}` }).logo, `data:image/png;base64,${PIXEL}`, 'whatever it claims')
  for (const [logo, message] of [
    [join(dir, 'none.png'), 'option oidc.logo: cannot be read (ENOENT)'],
    [dir, 'option oidc.logo: cannot be read (EISDIR)'],
    [join(dir, 'big.png'), 'option oidc.logo: is larger than 65536 bytes'],
    [join(dir, 'page.svg'), 'option oidc.logo: is not a PNG, JPEG, GIF, WebP or SVG image'],
    [`data:text/html;base64,${btoa('<script>alert(1)</script>')}`, 'option oidc.logo: is not a PNG, JPEG, GIF, WebP or SVG image'],
    ['data:image/png,%89PNG', 'option oidc.logo: is not a data URL with base64']
  ] as const) t.throws(() => createLook({ logo }), { message })
})

t.test('an accent colour needs contrast to the backgrounds', async (t) => {
  const look = createLook({ accent: '#C2410C' })
  t.match(look.style, '--button:#c2410c;--button-hover:#a5370a;--button-text:#ffffff;--link:#c2410c;')
  t.not(look.styleSource, createLook().styleSource)
  t.match(pageHeaders({ look })['content-security-policy'], `style-src ${look.styleSource};`)
  t.match(createLook({ accent: '#24508f #a9c5f2' }).style, /prefers-color-scheme:dark\)\{:root\{--button:#a9c5f2;--button-hover:#b6cef4;--button-text:#000000/)
  for (const [accent, message] of [
    ['#24508f', /^option oidc\.accent: #24508f has a contrast of 2\.\d\d to the dark background #191d23, and needs 3; give one colour for each background/],
    ['#ffee00', /^option oidc\.accent: #ffee00 has a contrast of 1\.\d\d to the light background #ffffff/]
  ] as const) t.throws(() => createLook({ accent }), { message })
})

t.test('the help address is an address or a page, and terms and privacy notice are pages', async (t) => {
  const [termsUrl, privacyUrl] = ['https://example.org/terms', 'https://example.org/privacy?lang=en']
  t.strictSame(createLook({ helpAddress: 'help@example.org', termsUrl, privacyUrl }).links, {
    help: { text: 'help@example.org', href: 'mailto:help@example.org' }, terms: termsUrl, privacy: privacyUrl
  })
  t.strictSame(createLook({ helpAddress: 'https://example.org/@help' }).links, { help: { text: 'https://example.org/@help', href: 'https://example.org/@help' } })
  t.strictSame(createLook().links, {}, 'nothing is shown of what is not configured')
  for (const helpAddress of ['help', 'javascript:alert(1)', 'a@b?subject=x', 'mailto:a@b.example', 'https://a.example/" onclick="x', 'a@b@c']) {
    await t.rejects(build(t, { oidc: { helpAddress } }), { message: 'option oidc.helpAddress: must be an email address, or an http or https URL' }, helpAddress)
  }
  for (const option of ['termsUrl', 'privacyUrl']) {
    await t.rejects(build(t, { oidc: { [option]: 'javascript:alert(1)' } }), { message: `option oidc.${option}: must be an http or https URL` })
    await t.rejects(build(t, { oidc: { [option]: 'https://:80/' } }), { message: `option oidc.${option}: must be a valid URL` })
  }
})

t.test('links have the accent, changed as far as a text needs contrast, and the ring around the focus keeps its colour', async (t) => {
  for (const accent of ['#c2410c', '#b3261e #f2b8b5', '#0a7d6d #12a594', '#8a8a00 #8a8a00']) {
    const { style } = createLook({ accent })
    const [light = '', dark = ''] = [...style.matchAll(/--link:(#[0-9a-f]{6});\}/g)].map(([, colour]) => colour)
    for (const surface of SURFACES.light) t.ok(computeContrast(light, surface) >= 4.5, `${accent}: ${light} on ${surface}`)
    for (const surface of SURFACES.dark) t.ok(computeContrast(dark, surface) >= 4.5, `${accent}: ${dark} on ${surface}`)
    t.equal(style.match(/--focus:/g)?.length, createLook().style.match(/--focus:/g)?.length, 'no other ring')
  }
})

t.test("the operator's links are below every page, and the legal ones are in the forms of a sign-up", async (t) => {
  const links = { helpAddress: 'help@acme.example', termsUrl: 'https://acme.example/terms?a=1&b=2', privacyUrl: 'https://acme.example/privacy' }
  const ask = (kind: 'forgot' | 'sign-up', given: object) => renderPage('ask-link', { kind, action: '/form' }, createLook(given), 'en')
  const forgot = ask('forgot', links)
  t.match(forgot, '<a href="mailto:help@acme.example">help@acme.example</a>')
  t.match(forgot, '<a href="https://acme.example/terms?a=1&amp;b=2">Terms of use</a>')
  t.match(forgot, '<a href="https://acme.example/privacy">Privacy</a>')
  t.notMatch(forgot, 'you agree')
  t.match(ask('sign-up', links), 'you agree to the <a href="https://acme.example/terms?a=1&amp;b=2">terms of use</a>. Read how we use your data in the <a href')
  t.match(ask('sign-up', { termsUrl: links.termsUrl }), 'you agree to the')
  t.notMatch(ask('sign-up', { termsUrl: links.termsUrl }), 'how we use your data')
  const choose = (purpose: 'sign-up' | 'reset') => renderPage('set-password', { action: '/form', token: 'x', purpose, account: 'ann', min: 8 }, createLook(links), 'en')
  t.match(choose('sign-up'), 'you agree to the')
  t.notMatch(choose('reset'), 'you agree to the')
  t.match(ask('forgot', { helpAddress: 'https://acme.example/help' }), '<a href="https://acme.example/help">Help</a>')
  t.notMatch(ask('sign-up', {}), /<footer>|you agree/)
})

t.test('a wrong logo or colour is found at the start', async (t) => {
  await t.rejects(build(t, { oidc: { accent: 'red' } }), { message: /^option oidc\.accent: / })
  await t.rejects(build(t, { oidc: { accent: '#ffffff' } }), { message: /^option oidc\.accent: #ffffff has a contrast of 1\.00/ })
  await t.rejects(build(t, { oidc: { logo: '/no/such/file' } }), { message: 'option oidc.logo: cannot be read (ENOENT)' })
})
