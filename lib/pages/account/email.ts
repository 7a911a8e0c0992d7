import type { Pages } from '../contract.ts'
import { html } from '../html.ts'
import { type Context, type Part, describes, hidden, strong } from '../parts.ts'
import { tellTokens } from '../tokens-end.ts'
import { askProof, frame } from './shell.ts'

export function email (view: Pages['account-email'], { texts }: Context): Part {
  const { email: verified, unverified, typed, base, xsrf, error } = view
  const { account: own } = texts
  const isFirst = verified === undefined && unverified === undefined
  return frame(view, texts, html`${verified !== undefined
    ? html`<p>${own.verifiedAddress({ address: strong(verified) })}</p>`
    : unverified === undefined
      ? html`<p>${own.noAddress}</p>`
      : html`<p>${own.unverifiedAddress({ address: strong(unverified) })}</p>
<form method="post" action="${base}/email">
${hidden('xsrf', xsrf)}<p class="actions"><button type="submit" name="verify" value="yes">${own.sendVerification}</button></p>
</form>`}
<form method="post" action="${base}/email">
${hidden('xsrf', xsrf)}<label for="email">${isFirst ? own.firstAddress : own.newAddress}</label>
<p class="hint" id="hint">${isFirst ? own.firstEffect : own.changeEffect}</p>
<input id="email" name="email" type="email" autocomplete="email" maxlength="254" required value="${typed}"${describes(error, 'hint')}>
${askProof(view, texts)}<p class="actions"><button class="primary" type="submit">${isFirst ? own.sendVerification : own.changeAddress}</button></p>
</form>`)
}

export function remove (view: Pages['account-delete'], { texts }: Context): Part {
  const { base, xsrf, apps = 0 } = view
  const { account: own } = texts
  return frame(view, texts, html`<p>${own.deleteWhy}${apps > 0 && html` ${own.deleteApps({ apps })}`}</p>
${tellTokens(view, texts)}<form method="post" action="${base}/delete">
${hidden('xsrf', xsrf)}${askProof(view, texts)}<p class="actions"><button class="danger" type="submit">${own.deleteAccount}</button></p>
</form>`)
}

export function removed (_data: Pages['account-deleted'], { texts: { account: own } }: Context): Part {
  return {
    title: own.deletedTitle,
    body: html`<h1>${own.deletedTitle}</h1>
<p>${own.deleted}</p>`
  }
}
