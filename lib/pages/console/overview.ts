import type { Status } from '../../../schemas/status.ts'
import { type Html, html } from '../html.ts'
import type { Part } from '../parts.ts'
import { type ConsoleContext, type ConsoleView, frame } from './frame.ts'
import { entries, facts, field, part, plain, time } from './parts.ts'

/** The section that shows what `more` of an answer lists; undefined where the console has none. */
function toPage (more: string | undefined, base: string): string | undefined {
  const query = more?.startsWith('/jobs') === true ? more.slice('/jobs'.length) : undefined
  return query === undefined ? undefined : `${base}/jobs${query}`
}

/** What needs attention, and what to set up next. */
function describeStatus ({ version, engine, ready, reason = '', attention, next }: Status, { base }: ConsoleView, context: ConsoleContext): Html {
  const { texts: { console: { overview: own } } } = context
  const describe = (code: keyof typeof own.codes, count = 0) => {
    const text = own.codes[code]
    return typeof text === 'function' ? text({ count }) : text
  }
  const list = attention.map(({ code, count, since, more }) => {
    const page = toPage(more, base)
    return {
      head: html`<strong>${describe(code, count)}</strong>`,
      more: [since !== undefined && own.since({ time: time(since, context) }), page !== undefined && html`<a href="${page}">${own.more}</a>`]
    }
  })
  return html`<p class="can${!ready && ' not'}">${ready ? own.ready : own.notReady({ reason: plain(reason) })}</p>
${part('attention', own.attention, html`${entries('attention', list, own.attentionNone)}<form method="get" action="${base}">
<input type="hidden" name="held" value="true">
<p class="hint" id="held-hint">${own.countHeldHint}</p>
<button type="submit" aria-describedby="held-hint">${own.countHeld}</button>
</form>
`)}${part('next', own.next, entries('next', next.map(({ text }) => ({ head: plain(text) })), own.nextNone))}${facts([[own.version, version], [own.engine, engine]])}`
}

/** @param status absent: the reader may not read it */
export function overviewPage (view: ConsoleView, { status }: { status?: Status | undefined }, context: ConsoleContext): Part {
  const { texts: { console: own } } = context
  const isEmpty = view.sections.length <= 1 && !view.maySearch
  const search = view.maySearch && status === undefined && html`<form method="get" action="${view.base}/find">
${field({ id: 'find', name: 'q', label: own.search, hint: own.searchHint, isRequired: true, maxLength: 256 })}
<button type="submit" class="primary">${own.searchSubmit}</button>
</form>
`
  return frame(view, context, {
    title: own.sections.overview,
    body: html`${isEmpty && html`<p>${own.nothing}</p>\n`}${search}${status !== undefined && describeStatus(status, view, context)}`
  })
}
