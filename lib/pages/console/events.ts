import type { Event } from '../../../schemas/event.ts'
import { type Html, html } from '../html.ts'
import type { ConsoleContext, ConsoleView } from './frame.ts'
import { code, entries, plain, time } from './parts.ts'

/** The page of what an event is about, if the console has one. */
function toTarget ({ target, user_id, client_id }: Event, base: string): Html | false {
  if (user_id !== undefined) return html`<a href="${base}/people/${encodeURIComponent(user_id)}">${plain(user_id)}</a>`
  if (client_id !== undefined) return html`<a href="${base}/clients/${encodeURIComponent(client_id)}">${plain(client_id)}</a>`
  return html`${target.kind} ${code(target.id)}`
}

/** Events, one after another. */
export function listEvents (events: readonly Event[], { base }: Pick<ConsoleView, 'base'>, context: ConsoleContext): Html {
  const { texts: { console: { person: own } } } = context
  return entries('events', events.map((event) => ({
    head: html`<strong>${code(event.type)}</strong> ${time(event.time, context)}${event.count !== undefined && event.count > 1 && html`, ${own.times({ count: event.count })}`}`,
    more: [
      html`${toTarget(event, base)}${event.reason !== undefined && html` ${code(event.reason)}`}`,
      html`${event.actor.via}${event.actor.user_id !== undefined && html` ${code(event.actor.user_id)}`}${event.address !== undefined && html` ${plain(event.address)}`}`
    ]
  })), own.eventsNone)
}
