import { Html, html } from '../html.ts'
import { type Context, type Part, alert, hidden, titled } from '../parts.ts'
import type { Message, Texts } from '../texts/en.ts'
import { plain } from './plain.ts'

/** The sections of the console, in their order. */
export type ConsoleSection = 'overview' | 'people' | 'clients' | 'events' | 'jobs' | 'settings'

/** What a form has done, as the next page says it. */
export type ConsoleDone = keyof Texts['console']['done']

/** The part of the view that all pages of the console share. */
export interface ConsoleView {
  /** The path of the console. */
  base: string
  /** Absent: a page of no section. */
  section?: ConsoleSection
  /** The sections that the person may see. */
  sections: readonly ConsoleSection[]
  /** Whether they may search. */
  maySearch: boolean
  account: string
  xsrf: string
  /** Whether they have proved lately who they are: otherwise a form leads to the sign-in page first. `again` is its URL. */
  isFresh: boolean
  again: string
  done?: ConsoleDone | undefined
  error?: Message
  /** What has been typed into the search box. */
  sought?: string
  /** The calls of the API that the page was made of, and the base of their URLs. */
  calls: readonly string[]
  api: string
  /** Commands that do the same. */
  commands: readonly string[]
}

/** The settings for rendering a page of the console. */
export interface ConsoleContext extends Context {
  /** The reader's time zone, by its IANA name. */
  zone: string
}

const toSectionPath = ({ base }: ConsoleView, section: ConsoleSection) => section === 'overview' ? base : `${base}/${section}`

function navigate (view: ConsoleView, { texts: { console: own, account: { signOut } }, zone }: Pick<ConsoleContext, 'texts' | 'zone'>): Html {
  const { base, section, sections, account, xsrf, maySearch, sought = '' } = view
  const links = sections.map((one) =>
    html`<li><a href="${toSectionPath(view, one)}"${one === section && html` aria-current="page"`}>${own.sections[one]}</a></li>\n`)
  return html`<nav aria-label="${own.navigation}">
${maySearch && html`<form method="get" action="${base}/find" role="search">
<label for="q">${own.search}</label>
<p><input id="q" name="q" type="search" value="${sought}" maxlength="256" autocapitalize="none" spellcheck="false" aria-describedby="q-hint" required>
<button type="submit">${own.searchSubmit}</button></p>
<p class="hint" id="q-hint">${own.searchHint}</p>
</form>
`}<details>
<summary>${own.navigation}</summary>
<ul>
${links}<li><a href="${base}/zone">${own.zone.link({ zone })}</a></li>
</ul>
<form method="post" action="${base}/sign-out">
${hidden('xsrf', xsrf)}<p class="who">${plain(account)}</p>
<button type="submit">${signOut}</button>
</form>
</details>
</nav>
`
}

/** How the same is asked with curl and on the command line. */
function tellCommands ({ calls, api, commands }: ConsoleView, { console: own }: Texts): Html | false {
  if (calls.length === 0 && commands.length === 0) return false
  return html`<details class="same">
<summary>${own.same}</summary>
<p class="hint">${own.sameHint}</p>
<pre tabindex="0">${calls.map((call) => {
    const [method = '', path = ''] = call.split(' ')
    return `curl -H "Authorization: Bearer $TOKEN"${method === 'GET' ? '' : ` -X ${method}`} '${api}${path.replaceAll("'", '%27')}'\n`
  })}${commands.map((command) => html`${plain(`fastify-identity ${command}`)}\n`)}</pre>
</details>
`
}

/** A title without its markup, of which the title of a document has none. */
const toText = (title: string | Html): string | Html => title instanceof Html ? new Html(title.text.replaceAll(/<[^>]*>/g, '')) : title

/** A page of the console, below its navigation. */
export function frame (view: ConsoleView, context: Pick<ConsoleContext, 'texts' | 'zone'>, { title, body }: Pick<Part, 'title' | 'body'>): Part {
  const { texts } = context
  const { console: own } = texts
  const { done, error, isFresh, again } = view
  const stale = !isFresh && html`<p class="muted stale">${own.stale} <a href="${again}">${own.confirm}</a></p>\n`
  return {
    title: titled(toText(title), error, texts),
    before: navigate(view, context),
    body: html`<h1>${title}</h1>
${done !== undefined && html`<p class="done" role="status">${own.done[done]}</p>\n`}${alert(error, texts)}${stale}${body}${tellCommands(view, texts)}`
  }
}
