import { type Html, html } from '../html.ts'
import type { ConsoleContext } from './frame.ts'
import { facts, plain } from './parts.ts'

/** A value that somebody else has changed while the reader typed another one. Both are texts of a form. */
export interface Conflict {
  /** The name of the field. */
  label: string
  now: string
  /** Absent: the form has no field for it. */
  typed?: string
}

/** What was typed in a form that was refused, by the names of its fields, and the form. */
export interface RefusedForm { action: string, typed: Readonly<Record<string, string>>, conflicts: readonly Conflict[] }

/** Both values of what somebody else has changed meanwhile. @param names of the fields, by their names in the forms */
export function compare (
  refused: RefusedForm | undefined, { texts: { console: own } }: Pick<ConsoleContext, 'texts'>, names: Readonly<Record<string, string>>
): Html | false {
  if (refused === undefined) return false
  const show = (text: string) => text === '' ? own.none : html`<pre tabindex="0">${text.split('\n').map((line) => html`${plain(line)}\n`)}</pre>`
  return html`${refused.conflicts.map(({ label, now, typed }) => {
    const field = names[label] ?? label
    return facts([[`${field}: ${own.conflictNow}`, html`${show(now)}`], [`${field}: ${own.conflictTyped}`, typed !== undefined && html`${show(typed)}`]])
  })}`
}
