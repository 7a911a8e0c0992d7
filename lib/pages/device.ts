import { describeScope } from './consent.ts'
import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Context, type Part, alert, appName, describes, hidden, mark, name, strong, titled } from './parts.ts'

export function device ({ action, xsrf, code, error }: Pages['device'], { texts }: Context): Part {
  const { common, device: own } = texts
  return {
    title: titled(own.title, error, texts),
    body: html`<h1>${own.title}</h1>
<p>${own.own}</p>
${alert(error, texts)}<form method="post" action="${action}">
${hidden('xsrf', xsrf)}<label for="user_code">${own.code}</label>
<p class="hint" id="hint">${own.codeHint}</p>
<input class="letters" id="user_code" name="user_code" type="text" autocomplete="off" autocapitalize="characters" autocorrect="off" spellcheck="false" maxlength="64" required value="${code}"${describes(error, 'hint')} autofocus>
<p class="actions"><button class="primary" type="submit">${common.continue}</button></p>
</form>`
  }
}

/**
 * Shows the code of a link for comparison. It is not prefilled in a form, because an attacker who sends such a link wants the reader
 * to continue without checking the code.
 */
export function deviceCompare ({ action, xsrf, code }: Pages['device-compare'], { texts: { device: own } }: Context): Part {
  return {
    title: own.title,
    body: html`<h1>${own.compareHeading}</h1>
<p class="code"><code>${code}</code></p>
<p>${own.compareWarning}</p>
<form method="post" action="${action}">
${hidden('xsrf', xsrf)}${hidden('user_code', code)}<p class="actions"><button class="primary" type="submit">${own.compareSame}</button></p>
</form>
<p class="next"><a href="${action}">${own.compareOther}</a></p>`
  }
}

export function deviceConfirm ({ action, xsrf, code, client, scopes, account, ip }: Pages['device-confirm'], { texts }: Context): Part {
  const { common, consent, device: own } = texts
  return {
    title: own.confirmTitle,
    body: html`${mark(client.name)}
<h1>${own.confirmTitle}</h1>
<p>${own.confirmText({ app: strong(client.name) })}</p>
<p class="code"><code>${code}</code></p>
${account === undefined
  ? html`<p>${own.willSignIn}</p>`
  : html`<p class="account"><span>${common.signedInAs({ account: strong(account) })}</span></p>`}
<p id="request">${consent.asks}</p>
<ul class="scopes" aria-labelledby="request">
${scopes.map((scope) => html`<li>${describeScope(scope, texts)}</li>\n`)}</ul>
${ip !== undefined && html`<p class="muted">${own.cameFrom({ address: name(ip) })}</p>\n`}<form method="post" action="${action}">
${hidden('xsrf', xsrf)}${hidden('user_code', code)}${hidden('confirm', 'yes')}<p class="actions"><button class="primary" type="submit">${own.mine}</button>
<button type="submit" name="abort" value="yes">${own.notMine}</button></p>
</form>`
  }
}

export function deviceDone ({ client }: Pages['device-done'], { texts }: Context): Part {
  const { device: own } = texts
  return {
    title: own.doneTitle,
    body: html`<h1>${own.doneTitle}</h1>
<p>${own.doneText({ app: html`<strong>${appName(client, texts)}</strong>` })}</p>`
  }
}
