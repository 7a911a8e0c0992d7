import type { ClientItem } from '../../../schemas/client.ts'
import type { Document } from '../../../schemas/document.ts'
import { type Html, html } from '../html.ts'
import type { Part } from '../parts.ts'
import type { RefusedForm } from './conflicts.ts'
import { type ConsoleContext, type ConsoleView, frame } from './frame.ts'
import { type Count, act, code, entries, field, listTogether, pager, plain, tellCount, time } from './parts.ts'

/** What the reader may do in the lists, each by its name in the forms of the page. */
export type ClientsAct = 'create' | 'block' | 'unblock' | 'refresh'

interface ListView {
  sought: string
  acts: readonly ClientsAct[]
  /** Whether there is a list of unregistered apps for the reader. */
  hasDocuments: boolean
  refused?: RefusedForm | undefined
}

export interface ClientsView extends ListView {
  clients: readonly ClientItem[]
  /** Why nothing was sought. */
  refusal?: string | undefined
  /** How many match. */
  count?: Count | undefined
  /** The id of the owner whose clients are shown. '': everybody's. */
  user: string
  after?: string | undefined
  before?: string | undefined
  isFirst: boolean
}

export interface DocumentsView extends ListView {
  /** Absent: the configuration turns them off. */
  documents?: readonly Document[] | undefined
  /** How many were found, of at most one more than the page shows. */
  count: number
}

/** Clients in a list, each with a link to its page. */
export function listClients (id: string, clients: readonly ClientItem[], { base }: Pick<ConsoleView, 'base'>, { texts }: Pick<ConsoleContext, 'texts'>): Html {
  const { clients: own } = texts.console
  return entries(id, clients.map(({ clientId, name = '', userId, disabled, first_party, document }) => ({
    head: html`<a href="${base}/clients/${encodeURIComponent(document?.id ?? clientId)}">${plain(name === '' ? clientId : name)}</a>${disabled === true && html` <span class="tag failed">${own.disabled}</span>`}${first_party === true && html` <span class="tag">${own.firstParty}</span>`}${document !== undefined && html` <span class="tag">${own.unregistered}</span>`}`,
    more: [name !== '' && code(clientId), userId !== undefined && html`${own.owner}: ${code(userId)}`]
  })), own.empty)
}

/** The choice between clients and of unregistered apps. */
function chooseKind ({ base }: ConsoleView, { hasDocuments }: ListView, isOfDocuments: boolean, { texts }: ConsoleContext): Html | false {
  const { clients: own } = texts.console
  const link = (to: string, label: string, isCurrent: boolean) =>
    html`<li><a href="${base}/clients${to}"${isCurrent && html` aria-current="page"`}>${label}</a></li>\n`
  return hasDocuments && html`<nav class="pager kinds" aria-label="${own.kinds}"><ul>
${link('', own.title, !isOfDocuments)}${link('?kind=documents', own.documents, isOfDocuments)}</ul></nav>
`
}

/** The list of clients, with its search, and the form that registers one. */
export function clientsPage (view: ConsoleView, page: ClientsView, context: ConsoleContext): Part {
  const { texts: { console: own } } = context
  const { clients, refusal, count, sought, user, after, before, isFirst, acts, refused } = page
  const to = `${view.base}/clients`
  const typed = (name: string) => refused?.action === 'create' ? refused.typed[name] : undefined
  const toHref = (position: Record<string, string>) =>
    `${to}?${new URLSearchParams({ ...(sought !== '' && { search: sought }), ...(user !== '' && { user }), ...position })}`
  const fields = html`${field({ id: 'name', label: own.clients.name, isRequired: true, maxLength: 256, value: typed('name') })}${field({
    id: 'redirectUris', label: own.clients.redirectUris, hint: own.clients.redirectUrisHint, rows: 3, value: typed('redirectUris')
  })}${field({ id: 'scopes', label: own.clients.scopes, hint: own.clients.scopesHint, rows: 3, value: typed('scopes') })}<label class="check"><input name="confidential" type="checkbox" value="yes"${typed('confidential') !== undefined && html` checked`}> ${own.clients.confidential}</label>
`
  return frame({ ...view, ...(refusal !== undefined && { error: () => own.refused({ reason: refusal }) }) }, context, {
    title: own.clients.title,
    body: html`${chooseKind(view, page, false, context)}<form method="get" action="${to}">
${field({ id: 'search', label: own.clients.search, value: sought, hint: own.clients.searchHint, maxLength: 256 })}${field({
  id: 'user', label: own.clients.byOwner, value: user, hint: own.clients.byOwnerHint, maxLength: 128
})}<button type="submit">${own.people.find}</button>
</form>
${acts.includes('create') && listTogether(act(view, {
  to, action: 'create', label: own.clients.create, says: own.clients.createSays, fields, isOpen: refused?.action === 'create'
}))}<h2 id="list">${own.clients.title}</h2>
${tellCount(count, context)}${listClients('list', clients, view, context)}${pager({ after, before, first: isFirst }, own, toHref)}`
  })
}

/** Apps that nobody has registered: each with what can be done with it. */
export function documentsPage (view: ConsoleView, page: DocumentsView, context: ConsoleContext): Part {
  const { texts: { console: own } } = context
  const { documents, count, sought, acts, refused } = page
  const path = `${view.base}/clients`
  const to = `${path}?kind=documents`
  const can = (name: ClientsAct, label: string, says: string, url: string) =>
    acts.includes(name) && act(view, { to, action: name, label, says, hiddens: { url }, of: url, isDangerous: name === 'block' })
  const show = ({ id, url, name, state, fetched_at, used_at }: Document) => ({
    head: html`${state === 'new' ? plain(name === '' ? url : name) : html`<a href="${path}/${encodeURIComponent(id)}">${plain(name === '' ? url : name)}</a>`} <span class="tag${state === 'blocked' && ' failed'}">${own.clients.states[state]}</span>`,
    more: [
      name !== '' && code(url),
      fetched_at !== undefined && own.clients.fetched({ time: time(fetched_at, context) }),
      used_at !== undefined && own.clients.used({ time: time(used_at, context) })
    ],
    action: html`<div>${state === 'blocked'
      ? can('unblock', own.clients.unblock, own.clients.unblockSays, url)
      : [can('block', own.clients.block, own.clients.blockSays, url), can('refresh', own.clients.refresh, own.clients.refreshSays, url)]}</div>`
  })
  const isMore = documents !== undefined && count > documents.length
  const block = acts.includes('block') && listTogether(act(view, {
    to,
    action: 'block',
    label: own.clients.blockUrl,
    says: own.clients.blockUrlSays,
    fields: field({ id: 'url', label: own.clients.url, isRequired: true, maxLength: 128, value: refused?.action === 'block' ? refused.typed.url : '' }),
    isOpen: refused?.action === 'block',
    isDangerous: true
  }))
  const list = documents === undefined
    ? html`<p class="muted">${own.clients.documentsOff}</p>\n`
    : html`<form method="get" action="${path}">
<input type="hidden" name="kind" value="documents">
${field({ id: 'search', label: own.clients.searchDocuments, value: sought, maxLength: 256 })}<button type="submit">${own.people.find}</button>
</form>
${block}<h2 id="list">${own.clients.documents}</h2>
${tellCount({ count: documents.length, isMore }, context)}
${isMore && html`<p class="muted">${own.clients.firstOnes({ count: documents.length })}</p>\n`}
${entries('list', documents.map(show), own.clients.documentsNone)}`
  return frame(view, context, { title: own.clients.documents, body: html`${chooseKind(view, page, true, context)}${list}` })
}
