import type { Static } from '@sinclair/typebox'
import type { Reason, ReasonSchema } from '../../../schemas/reason.ts'
import { type Html, html } from '../html.ts'
import type { ConsoleContext } from './frame.ts'
import { plain, time } from './parts.ts'

type Names = Readonly<Record<string, string>>

/** What a reason says. Its names of parameters are between backquotes. */
export const explain = (reason: Reason, { texts: { console: own } }: Pick<ConsoleContext, 'texts'>): Html =>
  html`${own.reasons[reason].split('`').map((text, index) => index % 2 === 1 ? html`<code>${text}</code>` : text)}`

/**
 * Why something is refused, each with what helps.
 * @param names of the operations that help, on this page; absent: as on the page of a person
 */
export function listReasons (reasons: readonly Static<typeof ReasonSchema>[], context: ConsoleContext, names: Names = {}): Html | false {
  if (reasons.length === 0) return false
  const { texts: { console: { person: own } } } = context
  const name = (operation: string) => names[operation] ?? (own.operations as Names)[operation] ?? own.operations.self
  return html`<ul class="mark-list">
${reasons.map(({ reason, until, detail, remedy }) => html`<li>${explain(reason, context)}${detail !== undefined && html` (${plain(detail)})`}${until !== undefined && html` ${own.until({ time: time(until, context) })}`}${remedy !== undefined && html`<br>${own.openedBy({ what: name(remedy.operation) })}${!remedy.allowed && remedy.operation !== 'configuration' && !remedy.who.includes('self') && html` ${own.notYou}`}`}</li>\n`)}</ul>
`
}
