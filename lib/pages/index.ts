import { consent } from './consent.ts'
import type { PageName, Pages } from './contract.ts'
import { device, deviceCompare, deviceConfirm, deviceDone } from './device.ts'
import { failure } from './failure.ts'
import { Html, html } from './html.ts'
import type { Part } from './parts.ts'
import { signIn } from './sign-in.ts'
import { signedOut, signOut } from './sign-out.ts'
import type { Look } from './look.ts'
import { type Texts, TEXTS } from './texts/index.ts'
import type { Language } from './texts/language.ts'

export { type PageClient, type PageName, type Pages } from './contract.ts'

const PAGES: { [Name in PageName]: (data: Pages[Name], texts: Texts, home?: string) => Part } = {
  'sign-in': signIn,
  consent,
  device,
  'device-compare': deviceCompare,
  'device-confirm': deviceConfirm,
  'device-done': deviceDone,
  'sign-out': signOut,
  'signed-out': signedOut,
  error: failure
}

/** Renders a whole page, without scripts and external resources. */
export function renderPage<Name extends PageName> (name: Name, data: Pages[Name], look: Look, language: Language): string {
  const { title, body } = PAGES[name](data, TEXTS[language], look.getHome?.())
  const { name: service, logo } = look
  return html`<!DOCTYPE html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}${service !== undefined && ` - ${service}`}</title>
<style>${new Html(look.style)}</style>
</head>
<body>
${(logo ?? service) !== undefined && html`<header>${logo !== undefined && html`<img src="${logo}" alt="">`}<bdi>${service}</bdi></header>\n`}<main>
${body}
</main>
</body>
</html>
`.text
}
