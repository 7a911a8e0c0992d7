import type { Pages } from './contract.ts'
import { html } from './html.ts'
import type { Part } from './parts.ts'

export function failure ({ message, code }: Pages['error']): Part {
  return {
    title: 'That did not work',
    body: html`<h1>That did not work</h1>
<p class="error" role="alert">${message}</p>
${code !== undefined && html`<p class="muted">For the developers of the app: <code>${code}</code></p>`}`
  }
}
