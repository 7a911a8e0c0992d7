import { footer } from './footer.ts'
import { identifyForms } from './form-id.ts'
import { Html, html } from './html.ts'
import type { Look } from './look.ts'
import type { Part } from './parts.ts'
import { listScripts } from './script.ts'
import type { Texts } from './texts/en.ts'
import type { Language } from './texts/language.ts'

interface DocumentOptions {
  look: Look
  texts: Texts
  language: Language
  /** The query of the page's URL, for links to the page in other languages. Absent: it cannot be opened again. */
  query: string | undefined
  /** The URL of its script. Absent: it has none. */
  script?: string | undefined
  /** Further classes of the body. */
  classes?: string
  /** False: no script is a part of it. */
  hasScripts?: boolean
}

/** The logo, or else the name. */
function header ({ name = '', logo, logoDark }: Look): Html | false {
  if (logo === undefined) return name !== '' && html`<header><bdi>${name}</bdi></header>\n`
  const image = html`<img src="${logo}" alt="${name}">`
  if (logoDark === undefined) return html`<header>${image}</header>\n`
  return html`<header><picture><source srcset="${logoDark}" media="(prefers-color-scheme: dark)">${image}</picture></header>\n`
}

/** Writes the document around the parts of a page. */
export function renderDocument (
  { title, body, before }: Part, { look, texts, language, query, script, classes = '', hasScripts = true }: DocumentOptions
): string {
  const { name: service, icon } = look
  const all = `${before === undefined ? '' : 'own'} ${classes}`.trim()
  const page = html`<!DOCTYPE html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}${service !== undefined && ` - ${service}`}</title>
<link rel="icon" href="${icon}">
<style>${new Html(look.style)}</style>
${script !== undefined && html`<script src="${script}" defer></script>\n`}</head>
<body${all !== '' && html` class="${all}"`}>
${header(look)}${before}<main>
${body}
</main>
${footer(look, texts, language, query)}${hasScripts && listScripts(body.text).map((text) => html`<script>${new Html(text)}</script>\n`)}</body>
</html>
`
  return identifyForms(page.text)
}
