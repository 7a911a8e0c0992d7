import type { Event } from '../../../schemas/event.ts'
import { REASONS } from '../../../schemas/reason.ts'
import { EVENT_TYPES } from '../../events/types.ts'
import { type Html, html } from '../html.ts'
import type { Part } from '../parts.ts'
import { type ConsoleContext, type ConsoleView, frame } from './frame.ts'
import { choice, code, entries, field, json, pager, plain, time } from './parts.ts'

/** The filters of the page, as they are in its URL; '' for none. */
export const FILTERS = ['type', 'user', 'client', 'reason', 'from', 'to'] as const

export interface EventsView {
  /** Absent: they could not be read. */
  events?: readonly Event[] | undefined
  filters: Readonly<Record<typeof FILTERS[number], string>>
  after?: string | undefined
  before?: string | undefined
  isFirst: boolean
}

/** The kinds, each as `user.*`, and the types. */
const TYPES = [...new Set(Object.keys(EVENT_TYPES).map((type) => `${type.split('.', 1)[0]}.*`)), ...Object.keys(EVENT_TYPES)]

const linkTo = (section: 'people' | 'clients', id: string, base: string) => html`<a href="${base}/${section}/${encodeURIComponent(id)}">${plain(id)}</a>`

/** What an event is about, with the pages that the console has of it. */
function toTarget ({ target, user_id, client_id }: Event, base: string, self: string | undefined): Html | false {
  if (self !== undefined && target.id === self) return false
  const pages = [...user_id !== undefined ? [linkTo('people', user_id, base)] : [], ...client_id !== undefined ? [linkTo('clients', client_id, base)] : []]
  return pages.length === 0 ? html`${plain(target.kind)} ${code(target.id)}` : html`${pages.map((page, index) => [index > 0 && ' ', page])}`
}

function toActor ({ actor: { via, user_id, client_id } }: Event, base: string, { by }: ConsoleContext['texts']['console']['events']): Html | string {
  if (user_id !== undefined) return by({ who: linkTo('people', user_id, base), via })
  return client_id === undefined ? via : by({ who: code(client_id), via })
}

/**
 * Events, one after another.
 * @param self the id of what the page is about, which needs no link
 * @param id of the heading
 * @param hasJson whether each can be opened as JSON
 */
export function listEvents (
  events: readonly Event[], { base }: Pick<ConsoleView, 'base'>, context: ConsoleContext, self?: string,
  { id = 'events', hasJson = false }: { id?: string, hasJson?: boolean } = {}
): Html {
  const { texts: { console: { person, events: own } } } = context
  return entries(id, events.map((event) => ({
    head: html`<strong>${code(event.type)}</strong> ${time(event.time, context)}${event.count !== undefined && event.count > 1 &&
      html`, ${person.times({ count: event.count })}`}${event.outcome === 'failure' && html` <span class="tag failed">${own.failed}</span>`}`,
    more: [
      toTarget(event, base, self),
      (event.reason ?? event.failure) !== undefined && html`${[event.reason, event.failure].map((why) => why !== undefined && html`${code(why)} `)}`,
      html`${toActor(event, base, own)}${event.address !== undefined && html` ${plain(event.address)}`}`
    ],
    action: hasJson && html`<details class="whole">
<summary>${own.json}<span class="hidden"> ${plain(event.id)}</span></summary>
${json(event)}</details>
`
  })), person.eventsNone)
}

/** Whether a field for days can show it. A link may have a time. */
const isDay = (text: string): boolean => text === '' || (/^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)))

/** The list of events, with its filters. */
export function eventsPage (view: ConsoleView, { events, filters, after, before, isFirst }: EventsView, context: ConsoleContext): Part {
  const { texts: { console: own }, zone } = context
  const to = `${view.base}/events`
  const given = Object.entries(filters).filter(([, value]) => value !== '')
  const toHref = (position: Record<string, string>) => `${to}?${new URLSearchParams([...given, ...Object.entries(position)])}`
  const day = (name: 'from' | 'to') => field({
    id: name,
    label: own.events[name],
    value: filters[name],
    type: isDay(filters[name]) ? 'date' : 'text',
    hint: own.events.days({ zone }),
    maxLength: 64
  })
  const reasons = [['', own.events.any], ...Object.keys(REASONS).map((reason) => [reason, reason] as const)] as const
  const heading = own.sections.events
  return frame(view, context, {
    title: heading,
    body: html`<form method="get" action="${to}" class="filters">
<div>${field({ id: 'type', label: own.events.type, value: filters.type, hint: own.events.typeHint, maxLength: 64, options: TYPES })}</div>
<div>${choice({ id: 'reason', label: own.events.reason, value: filters.reason }, reasons)}</div>
<div>${field({ id: 'user', label: own.events.user, value: filters.user, maxLength: 128 })}</div>
<div>${field({ id: 'client', label: own.events.client, value: filters.client, maxLength: 128 })}</div>
<div>${day('from')}</div>
<div>${day('to')}</div>
<button type="submit">${own.events.submit}</button>
</form>
<h2 class="hidden" id="list">${heading}</h2>
${events !== undefined && listEvents(events, view, context, undefined, { id: 'list', hasJson: true })}${pager({ after, before, first: isFirst }, own, toHref)}`
  })
}
