import { consent } from './consent.ts'
import type { PageName, Pages } from './contract.ts'
import { device, deviceCompare, deviceConfirm, deviceDone } from './device.ts'
import { failure } from './failure.ts'
import { Html, html } from './html.ts'
import type { Part } from './parts.ts'
import { signIn } from './sign-in.ts'
import { signedOut, signOut } from './sign-out.ts'
import { STYLE } from './style.ts'

export { type PageClient, type PageName, type Pages } from './contract.ts'

const PAGES: { [Name in PageName]: (data: Pages[Name]) => Part } = {
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

const style = new Html(`<style>${STYLE}</style>`)

/**
 * Renders a whole page, without scripts and external resources.
 * @param service the service's name; absent: none is shown
 */
export function renderPage<Name extends PageName> (name: Name, data: Pages[Name], service?: string): string {
  const { title, body } = PAGES[name](data)
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}${service !== undefined && ` - ${service}`}</title>
${style}
</head>
<body>
${service !== undefined && html`<header><bdi>${service}</bdi></header>\n`}<main>
${body}
</main>
</body>
</html>
`.text
}
