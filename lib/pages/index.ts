import { type Html, html } from './html.ts'

/** What a page tells of the client that sent the user. */
export interface PageClient { name: string }

/** What each page is given. Every text is as it came from outside: the page escapes it. */
export interface Pages {
  /** Account and password. */
  'sign-in': { action: string, client: PageClient, account?: string, error?: string }
  /** What the client asks for. */
  consent: { action: string, client: PageClient, account: string, scopes: string[] }
  /** The user types the code that a device shows. */
  device: { action: string, xsrf: string, code?: string, error?: string }
  /** The user compares the code with the device's, and says who asked. */
  'device-confirm': { action: string, xsrf: string, code: string, client: PageClient, device?: { ip?: string, ua?: string } }
  'device-done': { client: PageClient }
  'sign-out': { action: string, xsrf: string, client?: PageClient }
  'signed-out': { client?: PageClient }
  error: { message: string }
}

/** What a scope lets a client do, in words; a client's own scopes go by their names. */
const SCOPE_TEXTS: Record<string, string> = {
  openid: 'know who you are',
  profile: 'read your name',
  email: 'read your email address',
  roles: 'read your roles',
  offline_access: 'stay signed in when you are away'
}

const describeScope = (scope: string) => SCOPE_TEXTS[scope] ?? scope

const alert = (error: string | undefined) => error !== undefined && html`<p role="alert" id="error">${error}</p>`

const PAGES: { [Name in keyof Pages]: (data: Pages[Name]) => { title: string, body: Html } } = {
  'sign-in': ({ action, client, account, error }) => ({
    title: 'Sign in',
    body: html`<h1>Sign in</h1>
<p>to continue to <strong>${client.name}</strong></p>
${alert(error)}
<form method="post" action="${action}">
<p><label for="account">Account</label>
<input id="account" name="account" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="254" required value="${account}"${error !== undefined && html` aria-describedby="error"`}></p>
<p><label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="1024" required></p>
<p><button type="submit">Sign in</button>
<button type="submit" name="cancel" value="yes" formnovalidate>Cancel</button></p>
</form>`
  }),
  consent: ({ action, client, account, scopes }) => ({
    title: `Continue to ${client.name}`,
    body: html`<h1>Continue to ${client.name}</h1>
<p>You are signed in as <strong>${account}</strong>. <strong>${client.name}</strong> asks to:</p>
<ul>${scopes.map((scope) => html`<li>${describeScope(scope)}</li>`)}</ul>
<form method="post" action="${action}">
<p><button type="submit" name="decision" value="allow">Allow</button>
<button type="submit" name="decision" value="deny">Refuse</button></p>
</form>`
  }),
  device: ({ action, xsrf, code, error }) => ({
    title: 'Connect a device',
    body: html`<h1>Connect a device</h1>
${alert(error)}
<form method="post" action="${action}">
<input type="hidden" name="xsrf" value="${xsrf}">
<p><label for="user_code">The code that the device shows</label>
<input id="user_code" name="user_code" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="64" required value="${code}"${error !== undefined && html` aria-describedby="error"`}></p>
<p><button type="submit">Continue</button></p>
</form>`
  }),
  'device-confirm': ({ action, xsrf, code, client, device }) => ({
    title: 'Is this your device?',
    body: html`<h1>Is this your device?</h1>
<p><strong>${client.name}</strong> asks to sign in as you. Go on only if you started it, and if the device shows this code:</p>
<p><code>${code}</code></p>
${device?.ip !== undefined && html`<p>It asked from ${device.ip}${device.ua !== undefined && device.ua !== '' && html`, as ${device.ua}`}.</p>`}
<form method="post" action="${action}">
<input type="hidden" name="xsrf" value="${xsrf}">
<input type="hidden" name="user_code" value="${code}">
<input type="hidden" name="confirm" value="yes">
<p><button type="submit">It is mine</button>
<button type="submit" name="abort" value="yes">It is not</button></p>
</form>`
  }),
  'device-done': ({ client }) => ({
    title: 'Device connected',
    body: html`<h1>Device connected</h1>
<p>You are signed in to <strong>${client.name}</strong> on the device. You can close this page.</p>`
  }),
  'sign-out': ({ action, xsrf, client }) => ({
    title: 'Sign out',
    body: html`<h1>Sign out?</h1>
${client !== undefined && html`<p><strong>${client.name}</strong> has ended your session with it.</p>`}
<form method="post" action="${action}">
<input type="hidden" name="xsrf" value="${xsrf}">
<p><button type="submit" name="logout" value="yes">Sign out everywhere in this browser</button>
<button type="submit">Stay signed in</button></p>
</form>`
  }),
  'signed-out': ({ client }) => ({
    title: 'Signed out',
    body: html`<h1>Signed out</h1>
<p>${client === undefined ? 'You are signed out.' : html`You are signed out of <strong>${client.name}</strong>.`}</p>`
  }),
  error: ({ message }) => ({
    title: 'That did not work',
    body: html`<h1>That did not work</h1>
<p role="alert">${message}</p>`
  })
}

/** Renders a whole page. No script, nothing from elsewhere. */
export function renderPage<Name extends keyof Pages> (name: Name, data: Pages[Name]): string {
  const { title, body } = PAGES[name](data)
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`.text
}
