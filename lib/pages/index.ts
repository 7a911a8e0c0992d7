import { activity } from './account/activity.ts'
import { apps } from './account/apps.ts'
import { client, clients, confirm } from './account/clients.ts'
import { email, remove, removed } from './account/email.ts'
import { password, profile } from './account/profile.ts'
import { sessions } from './account/sessions.ts'
import { consent } from './consent.ts'
import type { PageName, Pages } from './contract.ts'
import { device, deviceCompare, deviceConfirm, deviceDone } from './device.ts'
import { failure } from './failure.ts'
import { Html, html } from './html.ts'
import type { Context, Part } from './parts.ts'
import { askLink, confirmChange, confirmLink, linkDone, linkSent, setPassword } from './people.ts'
import { signIn } from './sign-in.ts'
import { signedOut, signOut } from './sign-out.ts'
import type { Look } from './look.ts'
import { TEXTS } from './texts/index.ts'
import type { Language } from './texts/language.ts'

export { type PageClient, type PageName, type Pages } from './contract.ts'

const PAGES: { [Name in PageName]: (data: Pages[Name], context: Context) => Part } = {
  'sign-in': signIn,
  consent,
  device,
  'device-compare': deviceCompare,
  'device-confirm': deviceConfirm,
  'device-done': deviceDone,
  'sign-out': signOut,
  'signed-out': signedOut,
  'account-profile': profile,
  'account-password': password,
  'account-email': email,
  'account-delete': remove,
  'account-deleted': removed,
  'account-sessions': sessions,
  'account-apps': apps,
  'account-activity': activity,
  'account-clients': clients,
  'account-client': client,
  'account-confirm': confirm,
  'ask-link': askLink,
  'link-sent': linkSent,
  'set-password': setPassword,
  'confirm-link': confirmLink,
  'confirm-change': confirmChange,
  'link-done': linkDone,
  error: failure
}

/** Renders a whole page, without scripts and external resources. */
export function renderPage<Name extends PageName> (name: Name, data: Pages[Name], look: Look, language: Language): string {
  const { title, body, before } = PAGES[name](data, { texts: TEXTS[language], language, home: look.getHome?.() })
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
<body${before !== undefined && html` class="own"`}>
${(logo ?? service) !== undefined && html`<header>${logo !== undefined && html`<img src="${logo}" alt="">`}<bdi>${service}</bdi></header>\n`}${before}<main>
${body}
</main>
</body>
</html>
`.text
}
