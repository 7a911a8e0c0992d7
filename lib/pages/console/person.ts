import type { SignInAnswer } from '../../../schemas/answers.ts'
import type { ClientItem } from '../../../schemas/client.ts'
import type { Event } from '../../../schemas/event.ts'
import type { Identity } from '../../../schemas/identity.ts'
import { REASONS, type Reason } from '../../../schemas/reason.ts'
import type { UserMail, UserSessions } from '../../../schemas/support.ts'
import type { UserItem } from '../../../schemas/user.ts'
import { type Html, html } from '../html.ts'
import type { Part } from '../parts.ts'
import { type RefusedForm, compare } from './conflicts.ts'
import { listEvents } from './events.ts'
import { type ConsoleContext, type ConsoleView, frame } from './frame.ts'
import { act, code, entries, facts, field, json, listTogether, part, plain, secret, time } from './parts.ts'
import { explain, listReasons } from './reasons.ts'

/** What the reader may do with this person, each by its name in the forms of the page. */
export type PersonAct =
  | 'profile' | 'roles' | 'info' | 'attributes' | 'disable' | 'unlock' | 'recover' | 'reset' | 'end' | 'disconnect' | 'release' | 'remove' | 'invite'

export interface PersonView {
  user: UserItem
  /** The tag of what the forms show. */
  tag: string
  answer?: SignInAnswer | undefined
  sessions?: UserSessions | undefined
  identities?: readonly Identity[] | undefined
  mails?: readonly UserMail[] | undefined
  clients?: readonly ClientItem[] | undefined
  /** Whether they may see what a token of a client would say about the person. */
  mayPreview: boolean
  events?: readonly Event[] | undefined
  acts: readonly PersonAct[]
  refused?: RefusedForm | undefined
  /** A link that was made and not emailed. */
  link?: string | undefined
}

/** Reasons of earlier releases may be in events. */
const isReason = (reason: string): reason is Reason => Object.hasOwn(REASONS, reason)

type Both = { view: ConsoleView, person: PersonView, context: ConsoleContext, to: string }

/** Whether the person can sign in now, and if not why and what opens it. */
function judge ({ person: { answer }, context }: Both): Html | false {
  if (answer === undefined) return false
  const { texts: { console: { person: own } } } = context
  const { account, allowed, reasons } = answer
  const subject = html`<strong>${plain(account)}</strong>`
  const said = allowed ? own.can({ account: subject }) : own.cannot({ account: subject })
  return html`<p class="can${!allowed && ' not'}">${said}</p>
${listReasons(reasons, context)}`
}

function describeMethods ({ person: { answer }, context }: Both): Html | false {
  if (answer === undefined) return false
  const { texts: { console: { person: own } } } = context
  return part('methods', own.methods, html`<p class="muted">${own.required[answer.required_acr]}</p>
${entries('methods', answer.methods.map(({ kind, name, works, why, created_at, last_used_at }) => ({
    head: html`<strong>${own.kinds[kind]}</strong>${name !== undefined && html` ${plain(name)}`}`,
    more: [
      works ? own.works : own.broken({ reason: why === undefined ? '' : explain(why, context) }),
      created_at !== undefined && own.added({ time: time(created_at, context) }),
      last_used_at !== undefined && own.lastUsed({ time: time(last_used_at, context) })
    ]
  })), own.methodsNone)}`)
}

function describeAttempts ({ person: { answer }, context }: Both): Html | false {
  if (answer === undefined) return false
  const { texts: { console: { person: own } } } = context
  const list = answer.attempts.map(({ time: at, outcome, reason, address, client_id, count = 1, amr }) => {
    const from = [address !== undefined && plain(address), client_id !== undefined && code(client_id), amr?.join(' ')].filter(Boolean)
    return {
      head: html`<strong>${outcome === 'success' ? own.succeeded : own.failed}</strong> ${time(at, context)}${count > 1 && html`, ${own.times({ count })}`}`,
      more: [
        reason !== undefined && (isReason(reason) ? explain(reason, context) : plain(reason)),
        from.length > 0 && html`${from.map((one) => html`${one} `)}`
      ]
    }
  })
  return part('attempts', own.attempts, entries('attempts', list, own.attemptsNone))
}

function describeSessions ({ view, person: { sessions, acts }, context, to }: Both): Html | false {
  if (sessions === undefined) return false
  const { texts: { console: { person: own, navigation } } } = context
  const mayEnd = acts.includes('end')
  const end = (session: string, of: string) => mayEnd && act(view, {
    to, action: 'end', label: own.end, says: own.endSays, hiddens: { session }, of, isDangerous: true
  })
  const describe = (address: string | undefined, since: string, used: string) => [
    address !== undefined && plain(address), own.since({ time: time(since, context) }), own.lastUsed({ time: time(used, context) })
  ]
  const list = [
    ...sessions.browsers.map(({ session_id, place, signed_in_at, last_used_at, console_used_at }) => {
      const name = [place.browser, place.system].filter(Boolean).join(', ') || own.browser
      return {
        head: html`<strong>${plain(name)}</strong>${console_used_at !== undefined && html` <span class="tag">${navigation}</span>`}`,
        more: describe(place.address, signed_in_at, last_used_at),
        action: end(session_id, name)
      }
    }),
    ...sessions.sessions.map(({ session_id, client, place, created_at, last_used_at }) => ({
      head: html`<strong>${plain(client.name)}</strong> ${code(client.client_id)}`,
      more: describe(place?.address, created_at, last_used_at),
      action: end(session_id, client.name)
    }))
  ]
  const endAll = mayEnd && list.length > 0 && act(view, { to, action: 'end-all', label: own.endAll, says: own.endAllSays, isDangerous: true })
  return part('sessions', own.sessions, html`${entries('sessions', list, own.sessionsNone)}${endAll !== false && listTogether(endAll)}`)
}

function describeIdentities ({ view, person: { identities, acts }, context, to }: Both): Html | false {
  if (identities === undefined) return false
  const { texts: { console: { person: own } } } = context
  const list = identities.map(({ identity_id, upstream, name = upstream, subject, issuer, created_at, last_used_at }) => ({
    head: html`<strong>${plain(name)}</strong> ${code(subject)}`,
    more: [plain(issuer), own.added({ time: time(created_at, context) }), last_used_at !== undefined && own.lastUsed({ time: time(last_used_at, context) })],
    action: acts.includes('disconnect') && act(view, {
      to, action: 'disconnect', label: own.disconnect, says: own.disconnectSays, hiddens: { identity: identity_id }, of: name, isDangerous: true
    })
  }))
  return part('identities', own.identities, entries('identities', list, own.identitiesNone))
}

function describeRest ({ view, person: { user, mails, clients, mayPreview, events }, context }: Both): Html {
  const { texts: { console: { person: own, clients: ofClients } } } = context
  const { base } = view
  const toPreview = (id: string) => `${base}/clients/${encodeURIComponent(id)}/token?${String(new URLSearchParams({ user_id: user.user_id }))}`
  const clientList = clients?.map(({ clientId, name = clientId }) => ({
    head: html`<a href="${base}/clients/${encodeURIComponent(clientId)}">${plain(name)}</a>`,
    more: [code(clientId), mayPreview && html`<a href="${toPreview(clientId)}">${ofClients.preview.link}</a>`]
  }))
  const mailList = mails?.map(({ kind, state, time: at, failure, attempts = 1 }) => ({
    head: html`<strong>${own.mailStates[state]}</strong> ${code(kind)}`,
    more: [time(at, context), failure !== undefined && plain(failure), attempts > 1 && own.times({ count: attempts })]
  }))
  const all = `${base}/events?${String(new URLSearchParams({ user: user.user_id }))}`
  return html`${clientList !== undefined && part('clients', own.clients, entries('clients', clientList, own.clientsNone))}
${mailList !== undefined && part('mails', own.mails, entries('mails', mailList, own.mailsNone))}
${events !== undefined && part('events', own.events, html`${listEvents(events, view, context, user.user_id)}<p><a href="${all}">${own.allEvents}</a></p>\n`)}`
}

/** The forms that change what is stored about the person. */
function listEdits (both: Both): Html[] {
  const { view, person: { user, tag, acts, refused }, context: { texts: { console: { person: own, people } } }, to } = both
  const typed = (action: string, name: string, stored: string) => refused?.action === action ? refused.typed[name] ?? '' : stored
  const text = (value: unknown) => JSON.stringify(value ?? {}, null, 2)
  const edit = (action: 'profile' | 'roles' | 'info' | 'attributes', label: string, says: string, fields: Html) => acts.includes(action)
    ? [act(view, { to, action, label, says, hiddens: { match: tag }, fields, isOpen: refused?.action === action })]
    : []
  const { name, email = '', roles, info, attributes } = user
  const profile = html`${field({ id: 'name', label: people.name, value: typed('profile', 'name', name), maxLength: 256 })}
${field({ id: 'email', label: own.email, value: typed('profile', 'email', email), maxLength: 254 })}
<label class="check"><input name="verified" type="checkbox" value="yes"> ${own.markVerified}</label>
`
  const toJson = (id: 'roles' | 'info' | 'attributes', value: unknown, hint: string) =>
    field({ id, label: own[id], hint, rows: 6, value: typed(id, id, text(value)) })
  return [
    ...edit('profile', own.editProfile, own.editProfileSays, profile),
    ...edit('roles', own.editRoles, own.editRolesSays, toJson('roles', roles, own.rolesHint)),
    ...edit('info', own.editInfo, own.editInfoSays, toJson('info', info, own.json)),
    ...edit('attributes', own.editAttributes, own.editAttributesSays, toJson('attributes', attributes, own.json))
  ]
}

/** What can be done: about the sign-in, and below the profile about what is stored. */
function listActs (both: Both): Record<'signIn' | 'stored', Html> {
  const { view, person: { user, acts, refused }, context: { texts: { console: { person: own, typeAccount } } }, to } = both
  const isDisabled = user.disabled_at !== undefined && user.disabled_at !== null
  const simple = (name: PersonAct, action: string, label: string, says: string, isDangerous = false, more: { fields?: Html, isOpen?: boolean } = {}) =>
    acts.includes(name) && act(view, { to, action, label, says, isDangerous, ...more })
  const removal = html`<p>${typeAccount}</p>
${field({ id: 'typed', label: own.typed, isRequired: true, maxLength: 254 })}
<label class="check"><input name="clients" type="checkbox" value="delete"> ${own.removeClients}</label>
`
  return {
    signIn: html`${[
      simple('unlock', 'unlock', own.unlock, own.unlockSays),
      simple('recover', 'recover', own.recover, own.recoverSays),
      simple('invite', 'invite', own.inviteAgain, own.inviteAgainSays),
      simple('reset', 'reset', own.reset, own.resetSays, true),
      isDisabled ? simple('disable', 'enable', own.enable, own.enableSays) : simple('disable', 'disable', own.disable, own.disableSays, true)
    ]}`,
    stored: html`${[
      listEdits(both),
      simple('release', 'release', own.release, own.releaseSays, true),
      simple('remove', 'remove', own.remove, own.removeSays, true, { isOpen: refused?.action === 'remove', fields: removal })
    ]}`
  }
}

/** Everything about one person, on one page: first whether they can sign in now. */
export function personPage (view: ConsoleView, person: PersonView, context: ConsoleContext): Part {
  const { texts: { console: own } } = context
  const { user, link } = person
  const labels = { name: own.people.name, email: own.person.email, roles: own.person.roles, info: own.person.info, attributes: own.person.attributes }
  const both: Both = { view, person, context, to: `${view.base}/people/${encodeURIComponent(user.user_id)}` }
  const { expired_at, disabled_at } = user
  const at = (timestamp: string | null | undefined) => typeof timestamp === 'string' && time(timestamp, context)
  const email = user.email !== undefined && html`${plain(user.email)} (${user.email_verified_at === undefined ? own.person.unverified : own.person.verified})`
  const roles = Object.entries(user.roles).map(([role, value]) => html`<li>${plain(role)}${value !== true && html` ${code(JSON.stringify(value))}`}</li>\n`)
  const profile = facts([
    [own.person.id, code(user.user_id)],
    [own.people.account, plain(user.account)],
    [own.people.name, user.name !== '' && plain(user.name)],
    [own.person.email, email],
    [own.person.created, at(user.created_at)],
    [own.person.modified, at(user.modified_at)],
    [own.person.expires, at(expired_at)],
    [own.person.disabledSince, at(disabled_at)],
    [own.person.roles, roles.length > 0 ? html`<ul class="names">${roles}</ul>` : own.none]
  ])
  const values = ([[own.person.info, user.info], [own.person.attributes, user.attributes]] as const)
    .map(([label, value]) => value !== undefined && Object.keys(value).length > 0 && facts([[label, json(value)]]))
  const { signIn, stored } = listActs(both)
  return frame(view, context, {
    title: html`${plain(user.name === '' ? user.account : user.name)}`,
    body: html`${[
      link !== undefined && secret(own.people.linkTitle, own.people.linkSays, link),
      compare(person.refused, context, labels),
      judge(both),
      signIn.text !== '' && part('acts', own.person.actions, html`${listTogether(signIn)}`),
      part('profile', own.person.profile, html`${profile}${values}${listTogether(stored)}`),
      describeMethods(both),
      describeSessions(both),
      describeAttempts(both),
      describeIdentities(both),
      describeRest(both)
    ]}`
  })
}
