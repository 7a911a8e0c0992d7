import type { Setting } from '../../../schemas/status.ts'
import { html } from '../html.ts'
import type { Part } from '../parts.ts'
import { type ConsoleContext, type ConsoleView, frame } from './frame.ts'
import { act, code, entries, listTogether, plain } from './parts.ts'

export interface SettingsView {
  settings: readonly Setting[]
  mayMail: boolean
}

/** The settings that count, and where each comes from. They are read-only. */
export function settingsPage (view: ConsoleView, { settings, mayMail }: SettingsView, context: ConsoleContext): Part {
  const { texts: { console: { settings: own } } } = context
  const show = (value: unknown) => {
    if (value === undefined || value === null) return own.unset
    return value === 'set' ? own.set : code(typeof value === 'string' ? value : JSON.stringify(value))
  }
  const list = settings.map(({ name, variable, value, origin }) => ({
    head: html`<strong>${plain(name)}</strong> ${show(value)}`,
    more: [html`${variable !== undefined && html`${code(variable)}, `}${own.origins[origin]}`]
  }))
  const test = mayMail && act(view, { to: `${view.base}/settings`, action: 'mail', label: own.mail, says: own.mailSays })
  return frame(view, context, {
    title: own.title,
    body: html`<p id="list">${own.why}</p>
${test !== false && listTogether(test)}${entries('list', list, own.unset)}`
  })
}
