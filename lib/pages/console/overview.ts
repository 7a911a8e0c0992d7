import { html } from '../html.ts'
import type { Part } from '../parts.ts'
import { type ConsoleContext, type ConsoleView, frame } from './frame.ts'

/** What needs attention, and what to set up next. */
export function overviewPage (view: ConsoleView, context: ConsoleContext): Part {
  const { texts: { console: own } } = context
  const isEmpty = view.sections.length <= 1 && !view.maySearch
  return frame(view, context, { title: own.sections.overview, body: html`${isEmpty && html`<p>${own.nothing}</p>\n`}` })
}
