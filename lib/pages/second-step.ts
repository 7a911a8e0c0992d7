import type { Pages } from './contract.ts'
import { type Html, html } from './html.ts'
import { type Context, type Part, alert, describes, hidden, titled, toOther } from './parts.ts'
import { passkey as offer, tell } from './passkey.ts'
import type { Texts } from './texts/en.ts'

/** The characters of a recovery code with its hyphens, as those of earlier releases have them. */
const RECOVERY_LENGTH = 29

/** The field of a code. */
function askCode (kind: 'totp' | 'recovery', error: Pages['second-step']['error'], { common, secondStep: own }: Texts): Html {
  const input = kind === 'totp'
    ? html`inputmode="numeric" pattern="[0-9 ]*" autocomplete="one-time-code" maxlength="7"`
    : html`autocomplete="off" autocapitalize="none" autocorrect="off" spellcheck="false" maxlength="${String(RECOVERY_LENGTH + 3)}"`
  return html`<label for="code">${own.label[kind]}</label>
<input id="code" name="code" type="text" ${input} required${describes(error)} autofocus>
<p class="actions"><button class="primary" type="submit">${common.continue}</button>
`
}

export function secondStep ({ action, kind, others, xsrf, error, passkey, signals }: Pages['second-step'], { texts }: Context): Part {
  const { common, secondStep: own } = texts
  const title = own.title[kind]
  const isPasskey = kind === 'passkey' && passkey !== undefined
  return {
    title: titled(title, error, texts),
    body: html`<h1>${title}</h1>
<p>${own.why[kind]}</p>
${alert(error, texts)}<form method="post" action="${action}">
${xsrf !== undefined && hidden('xsrf', xsrf)}${hidden('way', kind)}${isPasskey
  ? html`${offer(passkey, texts, { label: texts.passkey.use, isOnly: true, isPrimary: true })}<p class="actions">`
  : kind !== 'passkey' && askCode(kind, error, texts)}<button type="submit" name="cancel" value="yes" formnovalidate>${common.cancel}</button></p>
</form>${tell(signals)}${others.filter((other) => other === 'totp' || other === 'recovery' || other === 'passkey').map((other) => html`
<p class="next"><a href="${toOther(action, other)}">${own.other[other]}</a></p>`)}
<p class="next">${own.lost}</p>`
  }
}
