import { join } from 'node:path'
import t from 'tap'
import { type MailKind, composeMail } from '../../lib/mail/compose.ts'
import { createMailLook } from '../../lib/mail/look.ts'
import { createSmtp } from '../../lib/mail/smtp.ts'
import { en } from '../../lib/mail/texts/en.ts'
import { OUR_LANGUAGES } from '../../lib/pages/texts/language.ts'
import { build } from '../helpers/build.ts'
import { findProblems, listFeatures } from '../helpers/mail-support.ts'
import { settleMails } from '../helpers/mails.ts'
import { startSmtp } from '../helpers/smtp.ts'

const png = (width: number, height: number, size = 0) => {
  const content = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(8 + size)])
  content.writeUInt32BE(width, 16)
  content.writeUInt32BE(height, 20)
  return content
}
const gif = Buffer.concat([Buffer.from('GIF89a'), Buffer.from([44, 1, 90, 0]), Buffer.alloc(20)])
const jpeg = Buffer.concat([Buffer.from('ffd8ffe000060000aaaaffc4000400ffffc2000b08003c00c8', 'hex'), Buffer.alloc(20)])
const toUrl = (content: Buffer) => `data:image/png;base64,${content.toString('base64')}`
const SVG = `data:image/svg+xml;base64,${btoa('<svg xmlns="http://www.w3.org/2000/svg"/>')}`

const links = { helpAddress: 'help@example.org', termsUrl: 'https://example.org/terms', privacyUrl: 'https://example.org/privacy?a=1&b=2' }
const look = createMailLook({ logo: toUrl(png(400, 160)), accent: '#b3261e #f2b8b5', ...links })
const LINK = `https://id.example/account/reset?token=${'x'.repeat(43)}`
const KINDS = Object.keys(en).filter((kind) => kind !== 'layout') as MailKind[]
const compose = (kind: MailKind, parts: Partial<Parameters<typeof composeMail>[1]> = {}) =>
  composeMail(kind, { to: 'ann@example.com', link: LINK, language: 'en', languages: OUR_LANGUAGES, values: { service: 'Acme' }, look, ...parts })

/** What may degrade, and how the mail still looks right. */
const ACCEPTED: Record<string, { programs: string[], reason: string }> = {
  'css-at-media-max-width': { programs: ['gmail', 'outlook'], reason: 'the paddings stay those of a wide screen; 320 px still fit' },
  'css-at-media-prefers-color-scheme': { programs: ['gmail', 'outlook.windows'], reason: 'the light colours stay, or the program darkens them itself' },
  'css-color-scheme': { programs: ['gmail', 'outlook'], reason: 'as above' },
  'html-meta-color-scheme': { programs: ['gmail', 'outlook', 'apple-mail.ios'], reason: 'the CSS property says the same' },
  'css-selector-class': { programs: ['gmail'], reason: 'classes only repeat properties for dark and narrow screens' },
  'css-important': { programs: ['gmail', 'outlook.windows'], reason: 'the same' },
  'html-style': { programs: ['gmail', 'outlook.windows'], reason: 'every property that matters is inline too' },
  'html-body': { programs: ['gmail', 'outlook'], reason: 'it only removes margins; the background is on a table cell' },
  'css-border-radius': { programs: ['outlook.windows'], reason: 'corners are square' },
  'css-border': { programs: ['outlook.windows'], reason: 'a border of 1 px of a table cell is within the limits' },
  'html-border': { programs: ['outlook.windows'], reason: 'it is 0' },
  'css-padding': { programs: ['outlook.windows'], reason: 'it is on table cells; the link of the button has mso-padding-alt' },
  'css-margin': { programs: ['gmail', 'outlook'], reason: 'none is negative or auto' },
  'css-max-width': { programs: ['outlook.windows'], reason: 'it is on a table, inside a table of this width for Outlook' },
  'css-width': { programs: ['outlook.windows'], reason: 'it is on tables; the logo has the attribute as well' },
  'css-height': { programs: ['outlook.windows'], reason: 'the logo has the attribute as well' },
  'html-width': { programs: ['outlook.windows'], reason: 'the width of the logo is in pixels' },
  'html-height': { programs: ['outlook.windows'], reason: 'the height of the logo is in pixels' },
  'html-align': { programs: ['outlook.macos'], reason: 'it is on table cells, or center' },
  'css-display': { programs: ['gmail', 'outlook.windows'], reason: 'block and inline-block only; Outlook takes the size of the button from its cell' },
  'css-font-size': { programs: ['outlook.windows'], reason: 'in px' },
  'css-font-weight': { programs: ['outlook.windows'], reason: '600 and 700 are bold' },
  'css-line-height': { programs: ['outlook.windows'], reason: 'lines are a little farther apart' },
  'css-text-decoration': { programs: ['gmail', 'outlook.windows'], reason: 'a button may be underlined in a foreign account' },
  'css-word-break': { programs: ['gmail', 'outlook', 'apple-mail'], reason: 'words are broken where a line is too short for them; the link is broken anywhere' },
  'image-gif': { programs: ['outlook.windows'], reason: 'an animation stands still' }
}

t.test('every feature that a mail uses is one that Gmail, Outlook and Apple Mail have, or degrades well', async (t) => {
  const square = createMailLook({ logo: toUrl(png(64, 64)), ...links })
  const used = new Set([look, square, createMailLook()].flatMap((look) => KINDS.flatMap((kind) => [...listFeatures(compose(kind, { look }).html, ['png', 'jpg', 'gif'])])))
  t.ok(used.size > 40, 'features are found')
  t.strictSame(findProblems(used, ACCEPTED), [])
  t.strictSame(Object.keys(ACCEPTED).filter((feature) => !used.has(feature)), [], 'nothing is accepted that is not used')
  t.strictSame(findProblems(listFeatures('<p style="display: flex; gap: 1rem">x</p><svg></svg>', ['svg']), {}).map((problem) => problem.split(':')[0]),
    ['image-svg', 'css-display', 'css-gap', 'css-unit-rem', 'html-svg'], 'the check sees what mail programs do not have')
})

t.test('a mail is small and loads nothing; its logo is an attachment', async (t) => {
  for (const kind of KINDS) {
    const { html, text, subject } = compose(kind, { language: 'de', values: { service: 'A'.repeat(64) } })
    t.ok(Buffer.byteLength(html) < 100 * 1024, `${kind}: Gmail clips at 102 KB`)
    t.ok(Buffer.byteLength(html) < 10 * 1024, `${kind}: and this one is far from it`)
    t.strictSame([...html.matchAll(/(?:src|background)="([^"]*)"|url\(|@import/g)].map(([, source]) => source), ['cid:logo'], kind)
    t.notMatch(html, /<script|<form|<link|<iframe| on\w+=/, kind)
    t.notMatch(`${subject}${text}${html}`, /\{\w+\}|undefined|\[object/, kind)
    t.equal([...html.matchAll(/class="label"/g)].length, 'button' in en[kind] ? 1 : 0, `${kind}: one button`)
  }
})

t.test('text and HTML say the same, with the link on a line of its own in the text', async (t) => {
  const { subject, text, html } = compose('reset')
  t.equal(subject, 'Acme: set a new password')
  t.match(text, new RegExp(`^Set a new password\n\nSomebody requested .* at Acme\\.\n\n${LINK.replace('?', '\\?')}\n\nThis link works once`))
  t.match(text, '-- \nAcme\nHelp: help@example.org\nTerms of use: https://example.org/terms\nPrivacy notice: https://example.org/privacy?a=1&b=2\n')
  for (const part of ['Set a new password</h1>', 'Somebody requested', `href="${LINK}"`, 'mailto:help@example.org', 'https://example.org/terms', 'privacy?a=1&amp;b=2', '<html lang="en">']) t.match(html, part)
  t.notMatch(createMailLook().links, { help: {} })
  t.notMatch(compose('reset', { look: createMailLook() }).html, /Help|Terms|Privacy/, 'nothing is linked that is not configured')
})

t.test('everything from outside is escaped', async (t) => {
  const bad = '"><script>alert(1)</script>\'&'
  const { html, text } = compose('sign-up', { link: `https://id.example/?token="><b>${bad}`, values: { service: `{account}${bad}` }, look: createMailLook({ logo: toUrl(png(400, 160)) }) })
  t.notMatch(html, /<script|<b>|"">/)
  t.match(html, 'alt="{account}&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&#39;&amp;"', 'a value is no template')
  t.match(text, bad)
})

t.test('the accent is the colour of the button, for a light and a dark background', async (t) => {
  const { html } = compose('reset')
  t.match(html, /<td class="button" align="center" bgcolor="#b3261e" style="background-color: #b3261e/)
  t.match(html, /prefers-color-scheme: dark\) \{[^]*\.button \{ background-color: #f2b8b5 !important; \}\n {2}\.label \{ color: #000000 !important/)
  t.match(compose('reset', { look: createMailLook() }).html, 'background-color: #24508f', 'without one, the colour of the pages')
})

t.test('the logo has its size, and is the name where it is a word mark', async (t) => {
  for (const [content, type, width, height] of [
    [png(400, 160), 'image/png', 120, 48],
    [png(1200, 100), 'image/png', 200, 17],
    [png(32, 32), 'image/png', 32, 32],
    [gif, 'image/gif', 160, 48],
    [jpeg, 'image/jpeg', 160, 48]
  ] as const) {
    const look = createMailLook({ logo: toUrl(content) })
    t.match(look.logo, { attachment: { cid: 'logo', contentType: type }, width, height }, `${type} ${width}`)
    const { html } = compose('reset', { look })
    t.match(html, `<img src="cid:logo" width="${width}" height="${height}" alt="${width === height ? '' : 'Acme'}"`)
    t.equal(html.includes('>Acme</span>'), width === height, 'a word mark says the name already')
  }
  t.strictSame(createMailLook({ logo: SVG }).logo, undefined, 'mail programs show no SVG')
  t.match(compose('reset', { look: createMailLook({ logo: SVG }) }).html, '>Acme</span>', 'so the name stands there')
  t.match(createMailLook({ logo: SVG }, toUrl(gif)).logo?.attachment, { filename: 'logo.gif' }, 'or the logo for mails')
})

t.test('a wrong logo for mails is found at the start', async (t) => {
  const mail = { url: 'smtp://127.0.0.1:1', from: 'id@example.com' }
  const oidc = { issuer: 'https://id.example.com' }
  for (const [logo, message] of [
    [SVG, 'option mail.logo: is not a PNG, JPEG or GIF image'],
    [toUrl(Buffer.from('ffd8ff0000000000000000000000000000000000000000000000', 'hex')), 'option mail.logo: is not a PNG, JPEG or GIF image'],
    ['/no/such/file.png', 'option mail.logo: cannot be read (ENOENT)'],
    [toUrl(png(10, 10, 64 * 1024)), 'option mail.logo: is larger than 65536 bytes']
  ] as const) {
    await t.rejects(build(t, { mail: { ...mail, logo }, oidc }), { message })
    await t.rejects(build(t, { mail: { send: async () => {}, logo }, oidc }), { message })
  }
})

t.test('the logo arrives inline with the mail, by SMTP', async (t) => {
  const server = await startSmtp(t, { authOptional: true })
  const logo = join(t.testdir({ 'logo.png': png(400, 160) }), 'logo.png')
  const { app } = await build(t, { mail: { ...createSmtp(`smtp://127.0.0.1:${server.port}`, 'Acme <id@example.com>'), logo }, oidc: { issuer: 'https://id.example.com', name: 'Acme' } })
  await app.identity.accounts.sendTest('ann@example.com', new AbortController().signal)
  const [{ html, attachments }] = server.received as [typeof server.received[0]]
  t.match(html, 'src="cid:logo"')
  t.strictSame(attachments, [{ cid: '<logo>', type: 'image/png', disposition: 'inline', size: png(400, 160).length }])
  await app.identity.users.create({ data: { account: 'ann@example.com', password: 'p' } })
  await app.identity.accounts.forgotPassword('ann@example.com', { ip: '127.0.0.1' })
  await settleMails(app.identity)
  t.match(server.received[1], { subject: 'Acme: set a new password', attachments: [{ cid: '<logo>' }] }, 'from the outbox too')
})
