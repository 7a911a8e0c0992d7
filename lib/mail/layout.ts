import { Html, html } from '../pages/html.ts'
import type { MailLook } from './look.ts'
import type { MailText, en } from './texts/en.ts'

/** What stands in a mail: its texts with their values, the link of its button, and the operator's name. */
export interface MailContent extends MailText {
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

/** The logo and the name. A logo that is a word mark has the name as its alternative text only. */
function renderHeader (service: string, { logo }: MailLook) {
  const name = html`<span class="muted" style="${FONT}; font-size: 16px; line-height: 24px; font-weight: 600; color: ${LIGHT.muted}">${service}</span>`
  if (logo === undefined) return name
  const { attachment: { cid }, width, height, isWide } = logo
  const image = html`<img src="cid:${cid}" width="${width}" height="${height}" alt="${isWide ? service : ''}" style="display: block; width: ${width}px; height: ${height}px; border: 0">`
  return html`<table ${TABLE}><tr>
<td class="logo" style="border-radius: 8px">${image}</td>${!isWide && html`
<td style="padding: 0 0 0 8px; vertical-align: middle">${name}</td>`}
</tr></table>`
}

/** A button whose whole surface is the link, in Outlook for Windows too, which gives links no padding. */
function renderButton (label: string, link: string, { light }: MailLook['colours']) {
  return html`<table ${TABLE} style="margin: 8px 0 24px"><tr>
<td class="button" align="center" bgcolor="${light.accent}" style="background-color: ${light.accent}; border-radius: 8px; mso-padding-alt: 14px 24px">
<a class="label" href="${link}" style="display: inline-block; padding: 14px 24px; ${FONT}; font-size: 16px; line-height: 20px; font-weight: 600; color: ${light.text}; text-decoration: none">${label}</a>
</td>
</tr></table>
`
}

const paragraph = (text: string | Html, isMuted = false) => html`<p class="${isMuted ? 'muted' : 'text'}" style="margin: 0 0 16px; ${FONT}; font-size: ${isMuted ? 14 : 16}px; line-height: ${isMuted ? 20 : 24}px; color: ${isMuted ? LIGHT.muted : LIGHT.text}">${text}</p>
`

/** The operator's pages, in a line. */
function renderFooter ({ service, layout }: MailContent, { help, terms, privacy }: MailLook['links']) {
  const links: [label: string, href: string | undefined][] = [[layout.help, help?.href], [layout.terms, terms], [layout.privacy, privacy]]
  const shown = links.filter(([, href]) => href !== undefined)
  return html`<p class="muted" style="margin: 0; ${FONT}; font-size: 14px; line-height: 24px; color: ${LIGHT.muted}">${service}${shown.map(([label, href]) => html` &middot; <a class="muted" href="${href}" style="color: ${LIGHT.muted}; text-decoration: underline">${label}</a>`)}</p>`
}

/**
 * Renders a mail as HTML. Outlook for Windows knows no maximum width, and gets a table of that width by its conditional comments.
 * Nothing is loaded from anywhere: the logo is an attachment.
 */
export function renderMail (content: MailContent, look: MailLook): string {
  const { language, service, subject, heading, text, button, link, note, layout } = content
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
<tr><td class="page" align="center" bgcolor="${LIGHT.page}" style="padding: 32px 16px; background-color: ${LIGHT.page}; word-break: break-word">
<!--[if mso]><table ${TABLE} width="560" align="center"><tr><td><![endif]-->
<table ${TABLE} width="100%" style="width: 100%; max-width: 560px">
<tr><td align="left" style="padding: 0 0 16px">${renderHeader(service, look)}</td></tr>
<tr><td class="card" align="left" bgcolor="${LIGHT.card}" style="padding: 32px 32px 16px; background-color: ${LIGHT.card}; border: 1px solid ${LIGHT.border}; border-radius: 12px">
<h1 class="text" style="margin: 0 0 16px; ${FONT}; font-size: 22px; line-height: 28px; font-weight: 700; color: ${LIGHT.text}">${heading}</h1>
${splitParagraphs(text).map((one) => paragraph(one))}${button !== undefined && link !== undefined && renderButton(button, link, look.colours)}${note !== undefined && splitParagraphs(note).map((one) => paragraph(one, true))}${link !== undefined && paragraph(html`${layout.fallback}<br><a class="muted" href="${link}" style="color: ${LIGHT.muted}; text-decoration: underline; word-break: break-all">${link}</a>`, true)}</td></tr>
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
export function renderText ({ service, heading, text, link, note, layout }: MailContent, { links: { help, terms, privacy } }: MailLook): string {
  const links = [[layout.help, help?.text], [layout.terms, terms], [layout.privacy, privacy]].filter(([, url]) => url !== undefined)
  const footer = ['-- ', service, ...links.map(([label, url]) => `${label}: ${url}`)].join('\n')
  return `${[heading, ...splitParagraphs(text), ...(link === undefined ? [] : [link]), ...(note === undefined ? [] : [note]), footer].join('\n\n')}\n`
}
