import { describeScope } from '../consent.ts'
import type { PageScope, Pages, PersonalTokenView } from '../contract.ts'
import { type Html, html } from '../html.ts'
import { type Context, type Part, describes, hidden, name } from '../parts.ts'
import type { Texts } from '../texts/en.ts'
import { cancelTo } from './method-parts.ts'
import { askProof, frame, ofWhat, showDate, showTime } from './shell.ts'

/** Characters of the name of a token. */
const MAX_NAME = 256

/** What a scope lets such a token do: it never sees the secrets of apps. */
const describe = (scope: PageScope, texts: Texts): Html =>
  scope.scope === 'clients:write' ? html`${texts.account.tokenClients}` : describeScope(scope, texts)

const listScopes = (scopes: readonly PageScope[], texts: Texts): Html =>
  html`<ul class="scopes">${scopes.map((scope) => html`<li>${describe(scope, texts)}</li>`)}</ul>`

function showToken (token: PersonalTokenView, { base, xsrf }: Pages['account-tokens'], { texts, language }: Context): Html {
  const { id, name: given, last4, scopes, resource, created_at, expires_at, last_used_at, last_used_from } = token
  const { account: own } = texts
  const details = [
    own.endsWith({ text: last4 }),
    resource !== undefined && own.tokenAt({ resource: name(resource) }),
    own.createdAt({ time: showTime(created_at, language) }),
    own.endsAt({ time: showTime(expires_at, language) }),
    last_used_at !== undefined && own.lastUsedAt({ time: showTime(last_used_at, language) }),
    last_used_from !== undefined && own.from({ place: last_used_from })
  ].filter((detail) => detail !== false)
  return html`<li>
<div><p><strong>${name(given)}</strong></p>
${scopes.length > 0 && listScopes(scopes, texts)}<p class="muted">${details.map((detail, index) => html`${index > 0 && html`<br>`}${detail}`)}</p></div>
<form method="post" action="${base}/tokens">
${hidden('xsrf', xsrf)}<button type="submit" name="token" value="${id}">${own.remove}${ofWhat(name(given), texts)}</button>
</form>
</li>\n`
}

/** The personal access tokens of a person, and the way to another one. */
export function tokens (view: Pages['account-tokens'], context: Context): Part {
  const { tokens: held, added, may, base } = view
  const { texts } = context
  const { account: own } = texts
  return frame(view, texts, html`${added !== undefined && html`<p class="done" role="status">${own.tokenAdded}</p>
<p class="code seed"><code id="token">${added}</code></p>\n`}<p>${own.tokensWhy}</p>
${may === 'all' ? html`<p class="next"><a href="${base}/tokens/new">${own.addToken}</a></p>` : html`<p>${may === 'full' ? own.mostTokens : own.mayNotMake}</p>`}
${held.length === 0
  ? html`<p id="own">${own.noTokens}</p>`
  : html`<p class="muted">${own.timesInUtc}</p>
<ul class="entries" aria-label="${own.sections.tokens}">
${held.map((token) => showToken(token, view, context))}</ul>`}`)
}

/** The scopes that a token may have at one place, as check boxes. */
function chooseScopes (place: string, scopes: readonly PageScope[], typed: Pages['account-token-new']['typed'], texts: Texts): Html {
  const chosen = typed?.place === place ? typed.scopes : []
  const box = ({ scope }: PageScope) => html`<input name="scope-${place}" type="checkbox" value="${scope}"${chosen.includes(scope) && html` checked`}>`
  return html`${scopes.map((scope) => html`<label class="check">${box(scope)} <span>${describe(scope, texts)}</span></label>\n`)}`
}

/** Where a token is for: this service, or one of the resources. With no resource there is nothing to choose. */
function choosePlace ({ places, typed }: Pages['account-token-new'], texts: Texts): Html {
  const { account: own } = texts
  const [first, ...others] = places
  if (first === undefined) return html``
  if (others.length === 0) {
    return html`<h2 id="scopes">${own.tokenScopes}</h2>
${hidden('place', first.place)}<div role="group" aria-labelledby="scopes">
${chooseScopes(first.place, first.scopes, typed, texts)}</div>\n`
  }
  const chosen = typed?.place ?? first.place
  const button = (place: string) => html`<input name="place" type="radio" value="${place}"${place === chosen && html` checked`}>`
  return html`<p class="hint">${own.tokenPlaceHint}</p>
${places.map(({ place, name: given, scopes }, index) => html`<label class="check">${button(place)} <span id="place-${index}">${
  given === undefined ? own.tokenHere : name(given)}</span></label>
<div class="choices" role="group" aria-labelledby="place-${index}">
${chooseScopes(place, scopes, typed, texts)}</div>\n`)}`
}

/** The form of a new token, with the proof. */
export function addToken (view: Pages['account-token-new'], { texts, language }: Context): Part {
  const { last, typed, error, base, xsrf } = view
  const { account: own } = texts
  const mark = (field: 'name' | 'expires') => describes(typed?.wrong === field ? error : undefined, `${field}-hint`)
  return frame(view, texts, html`<p>${own.tokensWhy}</p>
<form method="post" action="${base}/tokens/new">
${hidden('xsrf', xsrf)}<label for="name">${own.tokenName}</label>
<p class="hint" id="name-hint">${own.secretNameHint}</p>
<input id="name" name="name" type="text" autocomplete="off" maxlength="${MAX_NAME}" value="${typed?.name ?? ''}" required${mark('name')}>
<label for="expires">${own.lastDay}</label>
<p class="hint" id="expires-hint">${own.tokenDayHint({ date: showDate(last, language) })}</p>
<input id="expires" name="expires" type="date" autocomplete="off" max="${last.slice(0, 10)}" value="${typed?.expires ?? ''}" required${mark('expires')}>
${choosePlace(view, texts)}${askProof(view, texts)}<p class="actions"><button class="primary" type="submit">${own.addToken}</button></p>
</form>${cancelTo(`${base}/tokens`, texts)}`, html`${own.addToken}`)
}
