import type { OwnEvent } from '../../events/own.ts'
import type { Pages } from '../contract.ts'
import { type Html, html } from '../html.ts'
import { type Context, type Part, name } from '../parts.ts'
import type { Texts } from '../texts/en.ts'
import { frame, showTime } from './shell.ts'

function nameClient ({ name: given }: NonNullable<OwnEvent['client']>, { account: own }: Texts): Html {
  if (given === undefined) return html`${own.deletedApp}`
  return given.trim() === '' ? html`${own.namelessApp}` : name(given)
}

/** The sign-in method of an event. */
function nameMethod ({ method, acr = '1' }: OwnEvent, { account: own }: Texts): Html[] {
  if (method === undefined) return []
  const text = method.name === undefined ? html`${own.methods[method.kind]}` : name(method.name)
  return [acr !== '1' ? own.methodAndStep({ method: text }) : own.method({ method: text })]
}

/** The details of an event, one per line. */
function listDetails (event: OwnEvent, { texts, language }: Context): Html[] {
  const { time, by, address, client, granted = [], removed = [], count = 1 } = event
  const { account: own } = texts
  const join = (roles: string[]) => name(roles.join(', '))
  return [
    showTime(time, language),
    html`${own.by[by]}${address !== undefined && html`, ${own.from({ place: address })}`}`,
    ...nameMethod(event, texts),
    ...(client === undefined ? [] : [own.app({ app: nameClient(client, texts) })]),
    ...(granted.length === 0 ? [] : [own.granted({ roles: join(granted) })]),
    ...(removed.length === 0 ? [] : [own.removedRoles({ roles: join(removed) })]),
    ...(count === 1 ? [] : [own.times({ count })])
  ]
}

function showEvent (event: OwnEvent, context: Context): Html {
  const { account: own, events } = context.texts
  return html`<li>
<div><p><strong>${events[event.type]}</strong>${event.failed && html` <span class="tag failed">${own.failed}</span>`}</p>
<p class="muted">${listDetails(event, context).map((line, index) => html`${index > 0 && html`<br>`}${line}`)}</p></div>
</li>\n`
}

export function activity (view: Pages['account-activity'], context: Context): Part {
  const { events, clientEvents } = view
  const { account: own } = context.texts
  if (events.length + clientEvents.length === 0) return frame(view, context.texts, html`<p>${own.noEvents}</p>`)
  const list = (entries: OwnEvent[]) => html`<ol class="entries">
${entries.map((event) => showEvent(event, context))}</ol>`
  return frame(view, context.texts, html`<p>${own.activityWhy}</p>
<p class="muted" data-utc>${own.timesInUtc}</p>
${events.length > 0 && list(events)}${clientEvents.length > 0 && html`
<h2 id="clients">${own.clientActivity}</h2>
<p>${own.clientActivityWhy}</p>
${list(clientEvents)}`}`)
}
