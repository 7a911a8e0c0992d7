import type { PageScope, Pages } from './contract.ts'
import { describeRequest } from './device.ts'
import { type Html, html } from './html.ts'
import { type Context, type Part, hidden, mark, name, strong } from './parts.ts'
import type { Texts } from './texts/en.ts'
import { describeTarget } from './way.ts'

/** The keys of texts that are not about one scope. */
const NOT_SCOPES: ReadonlySet<string> = new Set(['other', 'rolesAt'])

const hasText = (scope: string, { scopes }: Texts): scope is Exclude<keyof Texts['scopes'], 'other' | 'rolesAt'> =>
  !NOT_SCOPES.has(scope) && Object.hasOwn(scopes, scope)

/** The description of a scope: our own text, the text of the resource that declares it, or its name. */
export function describeScope ({ scope, meaning, at }: PageScope, texts: Texts): Html {
  if (at !== undefined) return texts.scopes.rolesAt({ resource: name(at) })
  if (hasText(scope, texts)) return html`${texts.scopes[scope]}`
  return meaning === undefined ? texts.scopes.other({ scope: html`<code>${scope}</code>` }) : html`${meaning}`
}

/** Says who is responsible for the app, because any user can register an app under any name. */
function describeOrigin ({ vouched, ownerDomain, document }: Pages['consent'], { consent: own }: Texts): Html {
  if (document !== undefined) return html`<p class="muted">${own.unregistered({ host: name(document.host) })}</p>\n`
  if (vouched) return html`<p class="muted">${own.vouched}</p>\n`
  return html`<p class="muted">${own.unvouched}${ownerDomain !== undefined && html` ${own.registeredBy({ domain: name(ownerDomain) })}`}</p>\n`
}

/** Anybody may choose the name of an app that nobody has registered. The host of its id comes first, because it cannot be chosen. */
function describeClient ({ client, document }: Pages['consent'], { consent: own }: Texts): { shown: string, body: Html } {
  if (document === undefined) return { shown: client.name, body: html`<h1>${own.heading({ app: name(client.name) })}</h1>\n` }
  return { shown: document.host, body: html`<h1>${own.heading({ app: name(document.host) })}</h1>\n<p>${own.callsItself({ app: name(client.name) })}</p>\n` }
}

export function consent (data: Pages['consent'], { texts }: Context): Part {
  const { action, account, scopes, resource, redirectUri, otherAccount, document, device } = data
  const { shown, body } = describeClient(data, texts)
  const { common, consent: own } = texts
  const target = redirectUri === undefined ? undefined : describeTarget(redirectUri, texts)
  return {
    title: own.title({ app: shown }),
    body: html`${mark(shown, data.client.logo)}
${body}${device !== undefined && describeRequest(device, shown, texts)}<p class="account"><span>${common.signedInAs({ account: strong(account) })}</span>
${otherAccount !== undefined && html`<a href="${otherAccount}">${own.otherAccount}</a>`}</p>
<p id="request">${resource === undefined ? own.asks : own.asksAt({ resource: name(resource) })}</p>
<ul class="scopes" aria-labelledby="request">
${scopes.map((scope) => html`<li>${describeScope(scope, texts)}</li>\n`)}</ul>
${describeOrigin(data, texts)}${target !== undefined && html`<p class="muted">${own.sentTo({ target })}</p>\n`}<form method="post" action="${action}">
${document !== undefined && html`${hidden('document', document.print)}\n`}<p class="actions"><button class="primary" type="submit" name="decision" value="allow">${own.allow}</button>
<button type="submit" name="decision" value="deny">${own.deny}</button></p>
</form>`
  }
}
