import type { Pages } from './contract.ts'
import { type Html, html } from './html.ts'
import { type Context, type Part, alert, appName, describes, hidden, name, strong, titled } from './parts.ts'
import type { Texts } from './texts/en.ts'

/** By this field oidc-provider goes on from the code to the sign-in, without a page of its own. The consent asks the question of that page. */
const CONFIRMED = hidden('confirm', 'yes')

export function device ({ action, xsrf, code, error }: Pages['device'], { texts }: Context): Part {
  const { common, device: own } = texts
  return {
    title: titled(own.title, error, texts),
    body: html`<h1>${own.title}</h1>
<p>${own.own}</p>
${alert(error, texts)}<form method="post" action="${action}">
${hidden('xsrf', xsrf)}${CONFIRMED}<label for="user_code">${own.code}</label>
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
export function deviceCompare ({ action, xsrf, code }: Pages['device-compare'], { texts: { common, device: own } }: Context): Part {
  return {
    title: own.title,
    body: html`<h1>${own.compareHeading}</h1>
<p class="code"><code>${code}</code></p>
<p>${own.compareWarning}</p>
<form method="post" action="${action}">
${hidden('xsrf', xsrf)}${CONFIRMED}${hidden('user_code', code)}<p class="actions"><button class="primary" type="submit">${own.compareSame}</button>
<button type="submit" name="abort" value="yes">${common.cancel}</button></p>
</form>
<p class="next"><a href="${action}">${own.compareOther}</a></p>`
  }
}

/** The part of the consent that is about a device: the code to compare, and where the request came from. */
export function describeRequest ({ code, ip }: NonNullable<Pages['consent']['device']>, app: string, { device: own }: Texts): Html {
  return html`<p>${own.confirmText({ app: strong(app) })}</p>
<p class="code"><code>${code}</code></p>
${ip !== undefined && html`<p class="muted">${own.cameFrom({ address: name(ip) })}</p>\n`}`
}

export function deviceDone ({ client }: Pages['device-done'], { texts }: Context): Part {
  const { device: own } = texts
  return {
    title: own.doneTitle,
    body: html`<h1>${own.doneTitle}</h1>
<p>${own.doneText({ app: html`<strong>${appName(client, texts)}</strong>` })}</p>`
  }
}
