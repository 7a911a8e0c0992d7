import { Html, html } from '../pages/html.ts'
import type { LinkHelp } from '../pages/texts/template.ts'
import type { MailLook } from './look.ts'
import type { MailText, en } from './texts/en.ts'

/** What stands in a mail: its texts with their values, the link of its button, and the operator's name. */
interface MailContent<T> extends MailText<T> {
  language: string
  service: string
  link?: string | undefined
  layout: { readonly [Key in keyof typeof en['layout']]: string }
}

/** Fonts of the reader's system. Outlook takes the first that it knows. */
const FONT = "font-family: -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"

const LIGHT = { page: '#f4f5f7', card: '#ffffff', border: '#e1e4e9', text: '#1b1f24', muted: '#57606c' }
const DARK = { page: '#101317', card: '#191d23', border: '#2d333b', text: '#e9ebee', muted: '#a5adb8' }

/** A table that only places its content, and that screen readers pass over. */
const TABLE = html`role="presentation" cellpadding="0" cellspacing="0" border="0"`

/** The rules for dark backgrounds and for narrow screens. They replace inline styles, because many programs read no other ones. */
function writeStyle ({ dark }: MailLook['colours']): string {
  return `:root { color-scheme: light dark; }
@media (max-width: 480px) {
  .page { padding: 16px 8px !important; }
  .card { padding: 24px 20px 8px !important; }
}
@media (prefers-color-scheme: dark) {
  .page { background-color: ${DARK.page} !important; }
  .card { background-color: ${DARK.card} !important; border-color: ${DARK.border} !important; }
  .text { color: ${DARK.text} !important; }
  .muted { color: ${DARK.muted} !important; }
  .logo { padding: 4px !important; background-color: #ffffff !important; }
  .button { background-color: ${dark.accent} !important; }
  .label { color: ${dark.text} !important; }
}
`
}

const splitParagraphs = (text: string) => text.split(/\n{2,}/)

/** The style of a text: its colour is that for a light background. */
function writeFont (size: number, line: number, colour: string, more = ''): Html {
  return html`${FONT}; font-size: ${size}px; line-height: ${line}px; color: ${colour}${more}`
}

/** The logo and the name. A logo that is a word mark has the name as its alternative text only. */
function renderHeader (service: string, { logo }: MailLook): Html {
  const name = html`<span class="muted" style="${writeFont(16, 24, LIGHT.muted, '; font-weight: 600')}">${service}</span>`
  if (logo === undefined) return name
  const { attachment: { cid }, width, height, isWide } = logo
  const size = html`width="${width}" height="${height}"`
  const style = `display: block; width: ${width}px; height: ${height}px; border: 0`
  return html`<table ${TABLE}><tr>
<td class="logo" style="border-radius: 8px"><img src="cid:${cid}" ${size} alt="${isWide ? service : ''}" style="${style}"></td>${!isWide && html`
<td style="padding: 0 0 0 8px; vertical-align: middle">${name}</td>`}
</tr></table>`
}

/** A button whose whole surface is the link, in Outlook for Windows too, which gives links no padding. */
function renderButton (label: Html, link: string, { light }: MailLook['colours']): Html {
  const cell = `background-color: ${light.accent}; border-radius: 8px; mso-padding-alt: 14px 24px`
  const font = writeFont(16, 20, light.text, '; font-weight: 600')
  return html`<table ${TABLE} style="margin: 8px 0 24px"><tr>
<td class="button" align="center" bgcolor="${light.accent}" style="${cell}">
<a class="label" href="${link}" style="display: inline-block; padding: 14px 24px; text-decoration: none; ${font}">${label}</a>
</td>
</tr></table>
`
}

const renderParagraph = (text: Html) => html`<p class="text" style="margin: 0 0 16px; ${writeFont(16, 24, LIGHT.text)}">${text}</p>
`

const renderNote = (text: Html) => html`<p class="muted" style="margin: 0 0 16px; ${writeFont(14, 20, LIGHT.muted)}">${text}</p>
`

const renderLink = (href: string, text: string, more = '') =>
  html`<a class="muted" href="${href}" style="color: ${LIGHT.muted}; text-decoration: underline${more}">${text}</a>`

/** The words of a mail that say whom to ask, as a link to the operator's help. */
export const linkHelp = ({ links: { help } }: MailLook): LinkHelp => (words) => help === undefined
  ? words
  : html`<a href="${help.href}" style="color: inherit; text-decoration: underline">${words}</a>`

const splitHtml = ({ text }: Html) => splitParagraphs(text).map((paragraph) => new Html(paragraph))

/** The button, the note below it, and its link once more for programs that show no button. */
function renderBody ({ text, button, link, note, layout }: MailContent<Html>, { colours }: MailLook): Html {
  return html`${splitHtml(text).map(renderParagraph)}${
    button !== undefined && link !== undefined && renderButton(button, link, colours)}${
    note !== undefined && splitHtml(note).map(renderNote)}${
    link !== undefined && renderNote(html`${layout.fallback}<br>${renderLink(link, link, '; word-break: break-all')}`)}`
}

/** The operator's pages, in a line. */
function renderFooter ({ service, layout }: MailContent<Html>, { help, terms, privacy }: MailLook['links']): Html {
  const links: [label: string, href: string | undefined][] = [[layout.help, help?.href], [layout.terms, terms], [layout.privacy, privacy]]
  const shown = links.map(([label, href]) => href !== undefined && html` &middot; ${renderLink(href, label)}`)
  return html`<p class="muted" style="margin: 0; ${writeFont(14, 24, LIGHT.muted)}">${service}${shown}</p>`
}

/**
 * Renders a mail as HTML. Outlook for Windows knows no maximum width, and gets a table of that width by its conditional comments.
 * Nothing is loaded from anywhere: the logo is an attachment.
 */
export function renderMail (content: MailContent<Html>, look: MailLook): string {
  const { language, service, subject, heading } = content
  const page = `padding: 32px 16px; background-color: ${LIGHT.page}; word-break: break-word`
  const card = `padding: 32px 32px 16px; background-color: ${LIGHT.card}; border: 1px solid ${LIGHT.border}; border-radius: 12px`
  return html`<!DOCTYPE html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${subject}</title>
<style>
${new Html(writeStyle(look.colours))}</style>
</head>
<body style="margin: 0; padding: 0">
<table ${TABLE} width="100%" style="width: 100%">
<tr><td class="page" align="center" bgcolor="${LIGHT.page}" style="${page}">
<!--[if mso]><table ${TABLE} width="560" align="center"><tr><td><![endif]-->
<table ${TABLE} width="100%" style="width: 100%; max-width: 560px">
<tr><td align="left" style="padding: 0 0 16px">${renderHeader(service, look)}</td></tr>
<tr><td class="card" align="left" bgcolor="${LIGHT.card}" style="${card}">
<h1 class="text" style="margin: 0 0 16px; ${writeFont(22, 28, LIGHT.text, '; font-weight: 700')}">${heading}</h1>
${renderBody(content, look)}</td></tr>
<tr><td align="left" style="padding: 16px 0 0">${renderFooter(content, look.links)}</td></tr>
</table>
<!--[if mso]></td></tr></table><![endif]-->
</td></tr>
</table>
</body>
</html>
`.text
}

/** The same as plain text. The link has a line of its own. */
export function renderText ({ service, heading, text, link, note, layout }: MailContent<string>, { links: { help, terms, privacy } }: MailLook): string {
  const links = [[layout.help, help?.text], [layout.terms, terms], [layout.privacy, privacy]].filter(([, url]) => url !== undefined)
  const footer = ['-- ', service, ...links.map(([label, url]) => `${label}: ${url}`)].join('\n')
  const parts = [heading, ...splitParagraphs(text), link, note, footer].filter((part) => part !== undefined)
  return `${parts.join('\n\n')}\n`
}
