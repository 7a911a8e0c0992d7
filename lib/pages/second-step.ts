import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Context, type Part, alert, describes, hidden, titled } from './parts.ts'

/** The characters of a recovery code with its hyphens. */
const RECOVERY_LENGTH = 29

export function secondStep ({ action, kind, others, xsrf, error }: Pages['second-step'], { texts, links }: Context): Part {
  const { common, secondStep: own } = texts
  const title = own.title[kind]
  const input = kind === 'totp'
    ? html`inputmode="numeric" pattern="[0-9 ]*" autocomplete="one-time-code" maxlength="7"`
    : html`autocomplete="off" autocapitalize="none" autocorrect="off" spellcheck="false" maxlength="${String(RECOVERY_LENGTH + 3)}"`
  const toOther = (other: string) => `${action}${action.includes('?') ? '&' : '?'}${String(new URLSearchParams({ way: other }))}`
  return {
    title: titled(title, error, texts),
    body: html`<h1>${title}</h1>
<p>${own.why[kind]}</p>
${alert(error, texts)}<form method="post" action="${action}">
${xsrf !== undefined && hidden('xsrf', xsrf)}${hidden('way', kind)}<label for="code">${own.label[kind]}</label>
<input id="code" name="code" type="text" ${input} required${describes(error)} autofocus>
<p class="actions"><button class="primary" type="submit">${common.continue}</button>
<button type="submit" name="cancel" value="yes" formnovalidate>${common.cancel}</button></p>
</form>${others.filter((other) => other === 'totp' || other === 'recovery').map((other) => html`
<p class="next"><a href="${toOther(other)}">${own.other[other]}</a></p>`)}
<p class="next">${own.lost}${links.help !== undefined && html` <a href="${links.help}">${common.help}</a>`}</p>`
  }
}
