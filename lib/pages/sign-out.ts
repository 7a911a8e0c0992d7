import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Part, hidden, name } from './parts.ts'

export function signOut ({ action, xsrf, client }: Pages['sign-out']): Part {
  return {
    title: 'Sign out',
    body: html`<h1>Sign out?</h1>
${client !== undefined && html`<p><strong>${name(client.name)}</strong> has signed you out.</p>\n`}<p>Signing out here also signs you out of the apps that you signed in to from this browser.</p>
<form method="post" action="${action}">
${hidden('xsrf', xsrf)}<p class="actions"><button class="primary" type="submit" name="logout" value="yes">Sign out</button>
<button type="submit">Stay signed in</button></p>
</form>`
  }
}

export function signedOut ({ client, next }: Pages['signed-out']): Part {
  return {
    title: 'Signed out',
    body: html`<h1>Signed out</h1>
<p>${client === undefined ? 'You are signed out.' : html`You are signed out of <strong>${name(client.name)}</strong>.`}</p>
${next !== undefined && html`<p class="next"><a href="${next}">Go back to ${client === undefined ? 'the app' : name(client.name)}</a></p>`}`
  }
}
