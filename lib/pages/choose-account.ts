import type { Pages, StepView } from './contract.ts'
import { type Html, html } from './html.ts'
import { legal } from './legal.ts'
import { type Context, type Part, alert, describes, hidden, name, strong, titled } from './parts.ts'
import { labelProvider } from './provider-mark.ts'

/**
 * Other providers to sign in with. They are links and no buttons, because `form-action` applies to all redirects of a form. A person who is
 * signed in, and proves again that it is them, has buttons, and so has one who has come by a link of ours: any site may open a link.
 */
export function listUpstreams (
  { upstreams, action, xsrf, token }: Pick<StepView, 'upstreams' | 'action' | 'xsrf'> & { token?: string }, { texts }: Context
): Html | false {
  if (upstreams === undefined || upstreams.length === 0) return false
  const show = (upstream: typeof upstreams[number]) => upstream.to === undefined
    ? html`<button type="submit" name="upstream" value="${upstream.id}">${labelProvider(upstream, texts)}</button>\n`
    : html`<a class="button" href="${upstream.to}">${labelProvider(upstream, texts)}</a>\n`
  const list = html`<div class="upstreams" role="group" aria-label="${texts.upstreams.others}">
${upstreams.map(show)}</div>`
  if (upstreams.some(({ to }) => to !== undefined)) return html`\n${list}`
  return html`
<form method="post" action="${action}">
${xsrf !== undefined && hidden('xsrf', xsrf)}${token !== undefined && hidden('token', token)}${list}
</form>`
}

/** Asks a new person, who has signed in with another provider, for the name of their account. */
export function chooseAccount ({ action, xsrf, upstream, account, isFixed, seen, error }: Pages['choose-account'], context: Context): Part {
  const { texts } = context
  const { title, why, fixed, seen: mailed, hint, submit, field } = texts.upstreams.choose
  const shown = isFixed
    ? html`<p class="account"><span><strong>${name(account)}</strong></span></p>\n`
    : html`<label for="account">${field}</label>
<p class="hint" id="hint">${hint}</p>
<input id="account" name="account" type="text" autocomplete="username" autocapitalize="none" autocorrect="off" spellcheck="false" maxlength="254" required autofocus value="${account}"${describes(error, 'hint')}>\n`
  return {
    title: titled(title, error, texts),
    body: html`<h1>${title}</h1>
<p>${(isFixed ? fixed : why)({ name: strong(upstream) })}</p>
${alert(error, texts)}<form method="post" action="${action}">
${hidden('xsrf', xsrf)}${shown}${seen !== undefined && html`<p>${mailed({ address: strong(seen) })}</p>\n`}${legal(context)}<p class="actions"><button class="primary" type="submit">${submit}</button>
<button type="submit" name="cancel" value="yes" formnovalidate>${texts.common.cancel}</button></p>
</form>`
  }
}

/** Asks whether this browser is signed in to another account from now on. */
export function switchAccount ({ action, xsrf, upstream, account }: Pages['switch-account'], { texts }: Context): Part {
  const { title, why, submit, stay } = texts.upstreams.switch
  return {
    title,
    body: html`<h1>${title}</h1>
<p>${texts.common.signedInAs({ account: strong(account) })} ${why({ name: strong(upstream) })}</p>
<form method="post" action="${action}">
${hidden('xsrf', xsrf)}<p class="actions"><button class="primary" type="submit">${submit}</button>
<button type="submit" name="cancel" value="yes">${stay}</button></p>
</form>`
  }
}
