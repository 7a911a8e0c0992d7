import type { PageScope, Pages } from './contract.ts'
import { type Html, html } from './html.ts'
import { type Part, mark, name } from './parts.ts'

/** Descriptions of the standard scopes. Declared scopes have their own; free ones are shown by name. */
const SCOPE_TEXTS: Record<string, string> = {
  openid: 'know who you are',
  profile: 'read your name',
  email: 'read your email address',
  roles: 'read your roles',
  offline_access: 'stay signed in when you are not using it'
}

export function describeScope ({ scope, meaning }: PageScope): Html {
  if (meaning !== undefined) return html`${meaning}`
  return Object.hasOwn(SCOPE_TEXTS, scope) ? html`${SCOPE_TEXTS[scope]}` : html`use <code>${scope}</code>`
}

/** The destination of the redirect. A client can choose any name for itself, but not its address. */
function describeTarget (redirectUri: string): Html | undefined {
  if (!URL.canParse(redirectUri)) return undefined
  const { protocol, hostname, host } = new URL(redirectUri)
  if (!/^https?:$/.test(protocol)) return html`an app on this device that opens <bdi>${protocol}</bdi> links`
  if (/^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname)) return html`a program on this device (<bdi>${host}</bdi>)`
  return html`<bdi>${host}</bdi>`
}

/** Anybody may register an app under any name, so the page says who answers for it. */
function describeOrigin ({ vouched, owner }: Pages['consent']): Html {
  if (vouched) return html`<p class="muted">The operator of this service vouches for this app.</p>\n`
  return html`<p class="muted">Nobody vouches for this app.${owner !== undefined && html` It was registered by ${name(owner)}.`}</p>\n`
}

export function consent (data: Pages['consent']): Part {
  const { action, client, account, scopes, resource, redirectUri, otherAccount } = data
  const target = redirectUri === undefined ? undefined : describeTarget(redirectUri)
  return {
    title: `Continue to ${client.name}`,
    body: html`${mark(client.name)}
<h1>Continue to ${name(client.name)}</h1>
<p class="account"><span>You are signed in as <strong>${name(account)}</strong>.</span>${otherAccount !== undefined && html`
<a href="${otherAccount}">Use another account</a>`}</p>
<p id="request">The app asks to${resource !== undefined && html`, at ${name(resource)}`}:</p>
<ul class="scopes" aria-labelledby="request">
${scopes.map((scope) => html`<li>${describeScope(scope)}</li>\n`)}</ul>
${describeOrigin(data)}${target !== undefined && html`<p class="muted">You will be sent to ${target}.</p>\n`}<form method="post" action="${action}">
<p class="actions"><button class="primary" type="submit" name="decision" value="allow">Allow</button>
<button type="submit" name="decision" value="deny">Deny</button></p>
</form>`
  }
}
