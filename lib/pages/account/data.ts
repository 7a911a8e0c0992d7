import type { Pages } from '../contract.ts'
import { html } from '../html.ts'
import { type Context, type Part, hidden } from '../parts.ts'
import { askProof, frame } from './shell.ts'

export function data (view: Pages['account-data'], { texts }: Context): Part {
  const { base, xsrf } = view
  const { account: own } = texts
  return frame(view, texts, html`<p>${own.dataWhy}</p>
<p>${own.dataKeep}</p>
<form method="post" action="${base}/data">
${hidden('xsrf', xsrf)}${askProof(view, texts)}<p class="actions"><button class="primary" type="submit">${own.downloadData}</button></p>
</form>`)
}
