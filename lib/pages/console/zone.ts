import { html } from '../html.ts'
import { hidden, type Part } from '../parts.ts'
import { type ConsoleContext, type ConsoleView, frame } from './frame.ts'
import { choice } from './parts.ts'

/** The choice of the zone of the console's times. */
export function zonePage (view: ConsoleView, zones: readonly string[], context: ConsoleContext): Part {
  const { texts: { console: { zone: own } }, zone } = context
  const select = choice({ id: 'zone', label: own.field, value: zone }, zones.map((one) => [one, one] as const))
  return frame(view, context, {
    title: own.title,
    body: html`<p>${own.why}</p>
<form method="post" action="${view.base}/zone">
${hidden('xsrf', view.xsrf)}${hidden('action', 'set')}${select}<button type="submit" class="primary">${own.submit}</button>
</form>
`
  })
}
