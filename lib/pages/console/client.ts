import { type Html, html } from '../html.ts'
import type { Part } from '../parts.ts'
import type { ClientAct, ClientPageView, ClientParts } from './client-view.ts'
import { describeKeys, describeSecrets, describeTokens } from './client-credentials.ts'
import { compare } from './conflicts.ts'
import { listEvents } from './events.ts'
import { type ConsoleContext, type ConsoleView, frame } from './frame.ts'
import { act, address, code, facts, field, json, listTogether, part, plain, secret, time } from './parts.ts'

/** A list within a fact. */
const list = (items: readonly (Html | string)[]): Html | false => items.length > 0 && html`<ul>${items.map((item) => html`<li>${item}</li>\n`)}</ul>`

const names = (items: readonly string[]) => list(items.map(code))

function describeOwner ({ view: { base }, page: { client: { userId }, owner, mayOpenOwner } }: ClientParts): Html | undefined {
  if (userId === undefined) return undefined
  const name = owner === undefined ? code(userId) : plain(owner)
  return mayOpenOwner ? html`<a href="${base}/people/${encodeURIComponent(userId)}">${name}</a>` : name
}

function describe (parts: ClientParts): Html {
  const { page: { client, tokenAuth, grants }, context } = parts
  const { texts: { console: { clients: own, person, yes, no, none } } } = context
  const { former, roles = {}, claims = {}, document } = client
  return html`${facts([
    [person.id, code(client.clientId)],
    [own.name, client.name !== '' && plain(client.name)],
    [own.owner, describeOwner(parts) ?? own.nobody],
    [person.created, time(client.createdAt, context)],
    [person.modified, time(client.modifiedAt, context)],
    [own.redirectUris, list(client.redirectUris.map(address)) || none],
    [own.scopes, names(client.scopes) || none],
    [own.grants, names(grants) || none],
    [own.tokenAuth, html`${own.methods[tokenAuth]}${former !== undefined && html`<br>${own.former({ method: own.methods[former.tokenAuth], time: time(former.until, context) })}`}`],
    [own.firstParty, client.first_party === true ? yes : no],
    [own.pkce, client.pkce === 'optional' ? own.optional : own.required],
    [own.profile, client.profile !== undefined && code(client.profile)],
    [own.roles, names(Object.keys(roles))],
    [own.idTokenAlg, code(client.idTokenAlg ?? 'RS256')],
    [own.signedRequests, client.signedRequests === 'required' ? own.required : own.optional],
    [own.idTokenClaims, client.id_token_claims === true ? yes : no],
    [own.logoutUri, client.backchannelLogoutUri !== undefined && address(client.backchannelLogoutUri)],
    [own.image, client.image !== undefined && address(client.image)],
    [own.host, document !== undefined && plain(document.host)],
    [own.lastUse, document !== undefined && client.disabled !== true && time(document.used_at, context)]
  ])}${Object.keys(claims).length > 0 && facts([[own.claims, json(claims)]])}`
}

const DANGEROUS = { isDangerous: true }

/** The forms that change the client. What its document decides cannot be changed here. */
function listActs ({ view, page, context: { texts: { console: { clients: own, person } } }, to }: ClientParts): Html {
  const { client, tag, acts, refused, isReadable, tokenAuth } = page
  const isDisabled = client.disabled === true
  const typed = (name: string, stored: string) => refused?.action === 'edit' ? refused.typed[name] ?? '' : stored
  const simple = (name: ClientAct, label: string, says: string, more: Partial<Parameters<typeof act>[1]> = {}) =>
    acts.includes(name) && act(view, { to, action: name, label, says, isOpen: refused?.action === name && refused.action !== 'disable', ...more })
  const fields = html`${field({ id: 'name', label: own.name, value: typed('name', client.name), maxLength: 256 })}${field({
    id: 'redirectUris', label: own.redirectUris, hint: own.redirectUrisHint, rows: 4, value: typed('redirectUris', client.redirectUris.join('\n'))
  })}${field({
    id: 'scopes', label: own.scopes, hint: own.scopesHint, rows: 4, value: typed('scopes', client.scopes.join('\n'))
  })}${field({
    id: 'backchannelLogoutUri',
    label: own.logoutUri,
    hint: own.logoutUriHint,
    value: typed('backchannelLogoutUri', client.backchannelLogoutUri ?? ''),
    maxLength: 2048
  })}${field({ id: 'image', label: own.image, hint: own.imageHint, value: typed('image', client.image ?? ''), maxLength: 2048 })}`
  const toggle = () => {
    if (client.document !== undefined) {
      return isDisabled ? simple('disable', own.unblock, own.unblockSays, { action: 'unblock' }) : simple('block', own.block, own.blockSays, DANGEROUS)
    }
    return isDisabled ? simple('disable', own.enable, own.enableSays, { action: 'enable' }) : simple('disable', own.disable, own.disableSays, DANGEROUS)
  }
  return html`${[
    simple('edit', own.edit, own.editSays, { fields, hiddens: { match: tag } }),
    isReadable && simple('reveal', own.reveal, own.revealSays),
    isReadable && simple('renew', own.renew, own.renewSays, DANGEROUS),
    simple('refresh', own.refresh, own.refreshSays),
    toggle(),
    simple('take', own.take, tokenAuth === 'none' ? own.takePublicSays : own.takeSays, DANGEROUS),
    simple('remove', person.remove, own.removeSays, { ...DANGEROUS, fields: field({ id: 'typed', label: own.typed, isRequired: true, maxLength: 256 }) })
  ]}`
}

function describeEvents ({ view, page: { client, events }, context }: ClientParts): Html | false {
  const { texts: { console: { clients: own, person } } } = context
  return events !== undefined && part('events', person.events, html`${listEvents(events, view, context)}
<p><a href="${view.base}/events?${String(new URLSearchParams({ client: client.clientId }))}">${own.allEvents}</a></p>
`)
}

function showSecret ({ page: { shown }, context: { texts: { console: { clients: own } } } }: ClientParts): Html | false {
  if (shown === undefined) return false
  const [title, says] = {
    readable: [own.readableTitle, own.readableSays], secret: [own.secretTitle, own.secretSays], token: [own.tokenTitle, own.tokenSays]
  }[shown.kind] as [string, string]
  return secret(title, says, shown.value)
}

/** Everything about one client, on one page. */
export function clientPage (view: ConsoleView, page: ClientPageView, context: ConsoleContext): Part {
  const { texts: { console: own } } = context
  const { client, mayPreview, refused } = page
  const path = `${view.base}/clients/${encodeURIComponent(client.document?.id ?? client.clientId)}`
  const parts: ClientParts = { view, page, context, to: path }
  const isDocument = client.document !== undefined
  const acts = listActs(parts)
  const { name, redirectUris, scopes, logoutUri, image } = own.clients
  const labels = { name, redirectUris, scopes, backchannelLogoutUri: logoutUri, image }
  return frame(view, context, {
    title: html`${plain(client.name === '' ? client.clientId : client.name)}`,
    body: html`${[
      showSecret(parts),
      compare(refused, context, labels),
      client.disabled === true && html`<p class="can not">${isDocument ? own.clients.isBlocked : own.clients.isDisabled}</p>\n`,
      isDocument && html`<p class="muted">${own.clients.isDocument}</p>\n`,
      acts.text !== '' && part('acts', own.person.actions, html`${listTogether(acts)}`),
      mayPreview && html`<p><a href="${path}/token">${own.clients.preview.title}</a></p>\n`,
      part('settings', own.clients.settings, describe(parts)),
      describeSecrets(parts),
      describeKeys(parts),
      describeTokens(parts),
      describeEvents(parts)
    ]}`
  })
}
