import { appForm, codesForm } from './account/factors.ts'
import type { Pages } from './contract.ts'
import { html } from './html.ts'
import { type Context, type Part, alert, appName, hidden, titled, toOther } from './parts.ts'
import { passkey as offer } from './passkey.ts'

/** Adds a second factor within a sign-in that demands one: why, the authenticator app or the passkey, the recovery codes. */
export function enrol ({ action, client, kind, xsrf, error, view, others = [], passkey }: Pages['enrol'], { texts }: Context): Part {
  const { account: words, common, enrol: own } = texts
  const fields = html`${xsrf !== undefined && hidden('xsrf', xsrf)}${hidden('way', kind)}`
  const forms = {
    action,
    fields,
    actions: html`
<button type="submit" name="cancel" value="yes" formnovalidate>${common.cancel}</button>`,
    error
  }
  if (view.at === 'app') {
    return { title: titled(words.addApp, error, texts), body: html`<h1>${words.addApp}</h1>\n${alert(error, texts)}${appForm(view, forms, texts)}` }
  }
  if (view.at === 'codes') {
    const form = codesForm(view.codes, view.account, kind === 'recovery' ? words.useCodes : words.turnOn, forms, texts)
    return { title: titled(words.codes, error, texts), body: html`<h1>${words.codes}</h1>\n${alert(error, texts)}${form}` }
  }
  const isImported = kind === 'recovery'
  const isPasskey = kind === 'passkey'
  const title = isImported ? words.codes : own.title
  return {
    title: titled(title, error, texts),
    body: html`<h1>${title}</h1>
${alert(error, texts)}<p>${isImported ? own.imported : own.why}</p>
${!isImported && html`<p>${isPasskey ? words.addPasskeyWhy : words.addAppWhy} ${own.codes}</p>
`}<p>${client === undefined ? own.nextAccount : own.nextApp({ app: appName(client, texts) })}</p>
<form method="post" action="${action}">
${fields}${isPasskey
  ? html`${passkey !== undefined && offer(passkey, texts, { label: texts.passkey.create, isOnly: true, isPrimary: true })}<p class="actions">`
  : html`<p class="actions"><button class="primary" type="submit">${own.add[kind]}</button>`}${forms.actions}</p>
</form>${others.map((other) => html`
<p class="next"><a href="${toOther(action, other)}">${own.other[other]}</a></p>`)}`
  }
}
