import type { TokenPreview } from '../../../schemas/answers.ts'
import { type Html, html } from '../html.ts'
import type { Part } from '../parts.ts'
import { type ConsoleContext, type ConsoleView, frame } from './frame.ts'
import { code, field, json, part, plain } from './parts.ts'
import { explain, listReasons } from './reasons.ts'

export interface PreviewView {
  /** The path of the client's page. */
  to: string
  name: string
  /** What is asked. '': not given. */
  asked: { user_id: string, scope: string, resource: string }
  /** Absent: nothing was asked yet, or the question was refused. */
  preview?: TokenPreview | undefined
  /** Why the question was refused. */
  refusal?: string | undefined
}

/** The claims that are not there, each place with its own. */
function listAbsent ({ absent }: TokenPreview, context: ConsoleContext): Html | false {
  const { preview: own } = context.texts.console.clients
  const places = [...new Set(absent.map((one) => one.in))]
  return absent.length > 0 && part('absent', own.absent, html`${places.map((place) => html`<h3>${own.places[place]}</h3>
<ul class="mark-list">
${absent.filter((one) => one.in === place).map(({ claim, reason }) => html`<li>${claim === '*' ? own.all : code(claim)}: ${explain(reason, context)}</li>\n`)}</ul>
`)}`)
}

function show (preview: TokenPreview, context: ConsoleContext): Html {
  const { texts: { console: { clients: { preview: own } } } } = context
  const { allowed, reasons, id_token, userinfo, access_token, introspection } = preview
  const answers = ([['id_token', id_token], ['userinfo', userinfo], ['access_token', access_token], ['introspection', introspection]] as const)
    .map(([place, claims]) => claims !== undefined && part(place, own.places[place], json(claims)))
  return html`<p class="can${!allowed && ' not'}">${allowed ? own.allowed : own.refused}</p>
${listReasons(reasons, context, own.operations)}${answers}${listAbsent(preview, context)}`
}

/** What the tokens of a client would say, about a person or the client itself. */
export function previewPage (view: ConsoleView, { to, name, asked, preview, refusal }: PreviewView, context: ConsoleContext): Part {
  const { texts: { console: { clients: { preview: own, ...clients } } } } = context
  return frame({ ...view, ...(refusal !== undefined && { error: () => own.failed({ reason: refusal }) }) }, context, {
    title: own.title,
    body: html`<p>${clients.client}: <a href="${to}">${plain(name)}</a></p>
<p class="muted">${own.says}</p>
<form method="get" action="${to}/token">
${field({ id: 'user_id', label: own.person, hint: own.personHint, value: asked.user_id, maxLength: 128 })}${field({
  id: 'scope', label: clients.scopes, hint: own.scopeHint, value: asked.scope, maxLength: 1024
})}${field({
  id: 'resource', label: clients.resource, hint: own.resourceHint, value: asked.resource, maxLength: 2048
})}<button type="submit" class="primary">${own.submit}</button>
</form>
${asked.user_id !== '' && html`<p><a href="${view.base}/people/${encodeURIComponent(asked.user_id)}">${own.toPerson}</a></p>\n`}${preview !== undefined && show(preview, context)}`
  })
}
