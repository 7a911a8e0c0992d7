import type { UserItem } from '../../../schemas/user.ts'
import { type Html, html } from '../html.ts'
import type { Part } from '../parts.ts'
import { type ConsoleContext, type ConsoleView, frame } from './frame.ts'
import { type Count, act, code, entries, field, listTogether, pager, plain, secret, tellCount } from './parts.ts'

export interface PeopleView {
  /** Absent: the reader may not list people. */
  users?: readonly UserItem[] | undefined
  /** Absent: they were not counted. */
  count?: Count | undefined
  sought: string
  isWithin: boolean
  after?: string | undefined
  before?: string | undefined
  isFirst: boolean
  mayCreate: boolean
  mayInvite: boolean
  /** What was typed in a form that was refused. */
  refused?: { action: string, typed: Readonly<Record<string, string>> } | undefined
  link?: string | undefined
}

/** People in a list, each with a link to their page. */
export function listPeople (id: string, users: readonly UserItem[], { base }: Pick<ConsoleView, 'base'>, { texts }: Pick<ConsoleContext, 'texts'>): Html {
  const { people: own } = texts.console
  return entries(id, users.map(({ user_id, account, name, email, disabled_at }) => ({
    head: html`<a href="${base}/people/${encodeURIComponent(user_id)}">${plain(account)}</a>${disabled_at !== undefined && disabled_at !== null && html` <span class="tag failed">${own.disabled}</span>`}`,
    more: [name !== '' && plain(name), email !== undefined && email !== account && plain(email), code(user_id)]
  })), own.empty)
}

/** The list of people, with its search, and the forms that create one. */
export function peoplePage (view: ConsoleView, people: PeopleView, context: ConsoleContext): Part {
  const { texts: { console: own } } = context
  const { users, count, sought, isWithin, after, before, isFirst, mayCreate, mayInvite, refused, link } = people
  const to = `${view.base}/people`
  const typed = (action: string, name: string) => refused?.action === action ? refused.typed[name] : undefined
  const toHref = (position: Record<string, string>) =>
    `${to}?${new URLSearchParams({ ...(sought !== '' && { search: sought }), ...(isWithin && { within: 'yes' }), ...position })}`
  const search = users !== undefined && html`<form method="get" action="${to}">
${field({ id: 'search', label: own.people.search, value: sought, hint: own.people.searchHint, maxLength: 256 })}
<label class="check"><input name="within" type="checkbox" value="yes"${isWithin && html` checked`}> ${own.people.contains}</label>
<button type="submit">${own.people.find}</button>
</form>
`
  const list = users !== undefined && html`<h2 id="list">${own.people.title}</h2>
${tellCount(count, context)}${listPeople('list', users, view, context)}${pager({ after, before, first: isFirst }, own, toHref)}`
  const fields = (action: string, more: Html | false) => html`${field({ id: `${action}-account`, name: 'account', label: own.people.account, hint: own.people.accountHint, isRequired: true, maxLength: 254, value: typed(action, 'account') })}${field({
    id: `${action}-name`, name: 'name', label: own.people.name, maxLength: 256, value: typed(action, 'name')
  })}${more}`
  const password = html`<label for="create-password">${own.people.password}</label>
<input id="create-password" name="password" type="password" autocomplete="new-password" maxlength="1024" required>
`
  return frame(view, context, {
    title: own.people.title,
    body: html`${link !== undefined && secret(own.people.linkTitle, own.people.linkSays, link)}${search}${listTogether(html`${mayInvite && act(view, {
      to, action: 'invite', label: own.people.invite, says: own.people.inviteSays, fields: fields('invite', false), isOpen: refused?.action === 'invite'
    })}${mayCreate && act(view, {
      to, action: 'create', label: own.people.create, says: own.people.createSays, fields: fields('create', password), isOpen: refused?.action === 'create'
    })}`)}${list}`
  })
}
