import type { Event } from '../../../schemas/event.ts'
import { type Html, html } from '../html.ts'
import type { ConsoleContext, ConsoleView } from './frame.ts'
import { code, entries, plain, time } from './parts.ts'

/** The page of what an event is about, if the console has one. */
function toTarget ({ target, user_id, client_id }: Event, base: string, self: string | undefined): Html | false {
  if (self !== undefined && target.id === self) return false
  if (user_id !== undefined) return html`<a href="${base}/people/${encodeURIComponent(user_id)}">${plain(user_id)}</a>`
  if (client_id !== undefined) return html`<a href="${base}/clients/${encodeURIComponent(client_id)}">${plain(client_id)}</a>`
  return html`${target.kind} ${code(target.id)}`
}

/**
 * Events, one after another.
 * @param self the id of what the page is about, which needs no link
 */
export function listEvents (events: readonly Event[], { base }: Pick<ConsoleView, 'base'>, context: ConsoleContext, self?: string): Html {
  const { texts: { console: { person: own } } } = context
  return entries('events', events.map((event) => {
    const { type, time: at, count = 1, reason, actor: { via, user_id }, address } = event
    const by = [via, user_id !== undefined && code(user_id), address !== undefined && plain(address)].filter(Boolean)
    return {
      head: html`<strong>${code(type)}</strong> ${time(at, context)}${count > 1 && html`, ${own.times({ count })}`}`,
      more: [toTarget(event, base, self), reason !== undefined && code(reason), html`${by.map((one) => html`${one} `)}`]
    }
  }), own.eventsNone)
}
