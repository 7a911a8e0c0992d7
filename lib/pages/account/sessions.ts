import type { Device } from '../../device.ts'
import type { Pages, SessionView } from '../contract.ts'
import { type Html, html } from '../html.ts'
import { type Context, type Part, hidden, name } from '../parts.ts'
import type { Texts } from '../texts/en.ts'
import { tellTokens } from '../tokens-end.ts'
import { frame, ofWhat, showTime } from './shell.ts'

/** The details of a session, separated by commas. */
export const joinDetails = (parts: (string | Html | false | undefined)[]) =>
  html`${parts.filter((part) => part !== undefined && part !== false && part !== '').map((part, index) => html`${index > 0 && ', '}${part}`)}`

export function namePlace ({ browser, system }: Device, { account: own }: Texts): string | Html {
  if (browser !== undefined && system !== undefined) return own.browserOn({ browser, system })
  return browser ?? system ?? own.unknownBrowser
}

/** The name of the session that a button ends, distinct from the others. */
function nameSession ({ client, place = {}, last_used_at }: SessionView, texts: Texts): Html {
  return joinDetails([client?.name ?? namePlace(place, texts), place.address, last_used_at.slice(0, 16)])
}

function showSession (session: SessionView, field: string, { base, xsrf }: Pages['account-sessions'], { texts, language }: Context): Html {
  const { id, client, place, since, last_used_at, current = false, isConsole = false } = session
  const { account: own } = texts
  const heading = client === undefined ? html`${namePlace(place ?? {}, texts)}` : name(client.name)
  const origin = joinDetails([client !== undefined && place !== undefined && namePlace(place, texts), place?.address])
  const from = origin.text !== '' && html`${own.from({ place: origin })}<br>`
  const tags = [current && own.thisBrowser, isConsole && texts.console.navigation].filter((tag) => tag !== false)
  return html`<li>
<div><p><strong>${heading}</strong>${tags.map((tag) => html` <span class="tag">${tag}</span>`)}</p>
<p class="muted">${from}${own.signedInAt({ time: showTime(since, language) })}<br>${own.lastUsedAt({ time: showTime(last_used_at, language) })}</p></div>
${!current && html`<form method="post" action="${base}/sessions">
${hidden('xsrf', xsrf)}<button type="submit" name="${field}" value="${id}">${own.end}${ofWhat(nameSession(session, texts), texts)}</button>
</form>\n`}</li>\n`
}

export function sessions (view: Pages['account-sessions'], context: Context): Part {
  const { browsers, apps, more, base, xsrf } = view
  const { account: own } = context.texts
  return frame(view, context.texts, html`${tellTokens(view, context.texts)}<form method="post" action="${base}/sessions">
${hidden('xsrf', xsrf)}<p class="actions"><button type="submit" name="others" value="yes">${own.endOthers}</button></p>
</form>
<h2 id="browsers">${own.browsers}</h2>
<p>${own.browsersWhy}</p>
<p class="muted" data-utc>${own.timesInUtc}</p>
<ul class="entries" aria-labelledby="browsers">
${browsers.map((session) => showSession(session, 'browser', view, context))}</ul>
<h2 id="apps">${own.appSessions}</h2>
${apps.length === 0
  ? html`<p>${own.noAppSessions}</p>`
  : html`<ul class="entries" aria-labelledby="apps">
${apps.map((session) => showSession(session, 'session', view, context))}</ul>`}
${more > 0 && html`<p class="muted">${own.more({ count: more })}</p>`}`)
}
