import type { Pages } from './contract.ts'
import { type Html, html } from './html.ts'
import { type Context, type Part, appName, buttonLink } from './parts.ts'

/** The link to the account. In the sign-in to an app it opens another tab, so that this one stays where the person continues. */
function offerReplacement (view: Pages['code-used'], home: string, texts: Context['texts']): Html {
  const { codeUsed: own } = texts
  const link = `${home}/methods`
  if (!('action' in view)) return html`<p><a class="button" href="${link}">${own.replace}</a></p>\n`
  return html`<p><a class="button" href="${link}" target="_blank" rel="noopener">${own.replace}</a></p>
<p class="muted">${own.tab({ app: appName(view.client, texts) })}</p>
`
}

/**
 * Says after a sign-in with a recovery code how many are left, and offers to replace what was lost. It decides nothing: the person is signed in
 * already, and continues from here.
 */
export function codeUsed (view: Pages['code-used'], { texts, home }: Context): Part {
  const { account, common, codeUsed: own } = texts
  const { left } = view
  return {
    title: own.title,
    body: html`<h1>${own.title}</h1>
<p>${left === 0 ? own.none : account.codesLeft({ count: left })}</p>
${home !== undefined && html`<p>${own.why}</p>
`}${'action' in view
  ? html`<form method="post" action="${view.action}">
<p class="actions"><button class="primary" type="submit">${common.continue}</button></p>
</form>
`
  : buttonLink(view.to, common.continue)}${home !== undefined && offerReplacement(view, home, texts)}`
  }
}
