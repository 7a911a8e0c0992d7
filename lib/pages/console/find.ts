import type { FindHit, FoundAccount } from '../../../schemas/answers.ts'
import { type Html, html } from '../html.ts'
import type { Part } from '../parts.ts'
import { type ConsoleContext, type ConsoleView, frame } from './frame.ts'
import { code, entries, part, plain, time } from './parts.ts'
import { listReasons } from './reasons.ts'

/** The page of what was found. A session is on that of its person. */
function toPage ({ kind, id, user_id }: FindHit, base: string): string {
  if (kind === 'client') return `${base}/clients/${encodeURIComponent(id)}`
  if (kind === 'event') return `${base}/events?${String(new URLSearchParams({ ...(user_id !== undefined && { user: user_id }) }))}`
  return `${base}/people/${encodeURIComponent(user_id ?? id)}${kind === 'session' ? '#sessions' : ''}`
}

/** Why nobody can sign in with a name, and whose account may be meant. */
function explain ({ reasons, tried, similar = [], sign_up_until: until }: FoundAccount, { base }: ConsoleView, context: ConsoleContext): Html {
  const { texts: { console: { found: own, person } } } = context
  const list = similar.map(({ user_id, account, as }) => ({
    head: html`<a href="${base}/people/${encodeURIComponent(user_id)}">${plain(account)}</a>`, more: [own.similarAs[as]]
  }))
  return html`${listReasons(reasons, context)}
${tried !== undefined && html`<p>${own.tried({ count: tried.failures })} ${person.lastUsed({ time: time(tried.last_at, context) })}</p>\n`}
${until !== undefined && html`<p>${own.signUp({ time: time(until, context) })}</p>\n`}
${list.length > 0 && part('similar', own.similar, entries('similar', list, own.empty))}`
}

/** What the search box has found. */
export function findPage (view: ConsoleView, { hits, asked }: { hits: readonly FindHit[], asked?: FoundAccount | undefined }, context: ConsoleContext): Part {
  const { texts: { console: { found: own } } } = context
  const list = hits.map((hit) => ({
    head: html`<a href="${toPage(hit, view.base)}">${plain(hit.label)}</a>`,
    more: [html`${own.kinds[hit.kind]} ${code(hit.id)}`]
  }))
  return frame(view, context, {
    title: own.title,
    body: html`<h2 id="hits" class="hidden">${own.title}</h2>
${entries('hits', list, own.empty)}${asked !== undefined && explain(asked, view, context)}`
  })
}
