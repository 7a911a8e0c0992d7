import type { FindHit } from '../../../schemas/answers.ts'
import { html } from '../html.ts'
import type { Part } from '../parts.ts'
import { type ConsoleContext, type ConsoleView, frame } from './frame.ts'
import { code, entries, plain } from './parts.ts'

/** The page of what was found. A session is on that of its person. */
function toPage ({ kind, id, user_id }: FindHit, base: string): string {
  if (kind === 'client') return `${base}/clients/${encodeURIComponent(id)}`
  if (kind === 'event') return `${base}/events?${String(new URLSearchParams({ ...(user_id !== undefined && { user: user_id }) }))}`
  return `${base}/people/${encodeURIComponent(user_id ?? id)}${kind === 'session' ? '#sessions' : ''}`
}

/** What the search box has found. */
export function findPage (view: ConsoleView, { hits }: { hits: readonly FindHit[] }, context: ConsoleContext): Part {
  const { texts: { console: { found: own } } } = context
  const list = hits.map((hit) => ({
    head: html`<a href="${toPage(hit, view.base)}">${plain(hit.label)}</a>`,
    more: [html`${own.kinds[hit.kind]} ${code(hit.id)}`]
  }))
  return frame(view, context, { title: own.title, body: html`<h2 id="hits" class="hidden">${own.title}</h2>\n${entries('hits', list, own.empty)}` })
}
