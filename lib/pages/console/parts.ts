import { Html, html } from '../html.ts'
import { hidden } from '../parts.ts'
import type { ConsoleContext, ConsoleView } from './frame.ts'
import { plain } from './plain.ts'

export { plain }

/** A URL from outside: a link if it leads to a page, and otherwise text. */
export function address (url: string): Html {
  const parsed = URL.parse(url)
  return parsed !== null && /^https?:$/.test(parsed.protocol) ? html`<a href="${parsed.href}" rel="noreferrer noopener">${plain(url)}</a>` : plain(url)
}

export const code = (text: string) => html`<code>${plain(text)}</code>`

/** A value as JSON, to be read. */
export const json = (value: unknown) => html`<pre tabindex="0">${JSON.stringify(value, null, 2).split('\n').map((line) => html`${plain(line)}\n`)}</pre>`

/** The format of times of the last page: to make one takes longer than the rest of a line. */
let times: { name: string, format: Intl.DateTimeFormat } | undefined

/** A time in the reader's zone. */
export function time (timestamp: string, { language, zone }: Pick<ConsoleContext, 'language' | 'zone'>): Html {
  const name = `${language} ${zone}`
  if (times?.name !== name) {
    const format = new Intl.DateTimeFormat(language, {
      year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZone: zone, timeZoneName: 'short'
    })
    times = { name, format }
  }
  return html`<time datetime="${timestamp}">${times.format.format(new Date(timestamp))}</time>`
}

/** What is known, as a list of names and values. Values that are absent are left out. */
export function facts (rows: readonly (readonly [label: string, value: string | number | Html | false | undefined])[]): Html {
  return html`<dl class="facts">
${rows.map(([label, value]) => value !== undefined && value !== false && html`<div><dt>${label}</dt><dd>${value}</dd></div>\n`)}</dl>
`
}

/** A part of a page with a heading. */
export const part = (id: string, title: string, body: Html) => html`<section aria-labelledby="${id}">
<h2 id="${id}">${title}</h2>
${body}</section>
`

/** A first line, further ones, and what can be done. */
interface Entry { head: Html, more?: readonly (Html | string | false | undefined)[], action?: Html | false }

/** A list of entries. */
export function entries (id: string, list: readonly Entry[], empty: string): Html {
  if (list.length === 0) return html`<p class="muted">${empty}</p>\n`
  return html`<ul class="entries" aria-labelledby="${id}">
${list.map(({ head, more = [], action }) => html`<li><div><p>${head}</p>
${more.map((line) => line !== undefined && line !== false && html`<p class="muted">${line}</p>\n`)}</div>
${action}</li>\n`)}</ul>
`
}

interface ActionOptions {
  /** What the form is sent to. Absent: the page's own URL. */
  to: string
  /** The value of the field `action`. */
  action: string
  /** The words of the button, and what it does. */
  label: string | Html
  says: string | Html
  /** Further hidden fields. */
  hiddens?: Readonly<Record<string, string | undefined>>
  /** Fields to fill in. */
  fields?: Html | false
  isDangerous?: boolean
  /** Whether it is shown open, as after a form that was refused. */
  isOpen?: boolean
  /** Distinguishes it from others with the same words, for screen readers. */
  of?: string
}

/** Something that can be done: what it does is read before its button is pressed. */
export function act (
  { xsrf }: Pick<ConsoleView, 'xsrf'>, { to, action, label, says, hiddens = {}, fields, isDangerous = false, isOpen = false, of }: ActionOptions
): Html {
  const about = of !== undefined && html`<span class="hidden"> ${plain(of)}</span>`
  return html`<details class="act${isDangerous && ' dangerous'}"${isOpen && html` open`}>
<summary>${label}${about}</summary>
<form method="post" action="${to}">
${hidden('xsrf', xsrf)}${hidden('action', action)}${Object.entries(hiddens).map(([field, value]) => value !== undefined && hidden(field, value))}<p>${says}</p>
${fields}<button type="submit" class="${isDangerous ? 'danger' : 'primary'}">${label}${about}</button>
</form>
</details>
`
}

/** Several things that can be done, beside each other where there is room. */
export const listTogether = (acts: Html): Html | false => acts.text !== '' && html`<div class="acts">
${acts}</div>
`

interface FieldOptions {
  id: string
  name?: string
  label: string
  value?: string | undefined
  hint?: string | Html
  type?: 'text' | 'email' | 'number' | 'date'
  rows?: number
  isRequired?: boolean
  maxLength?: number
  /** Values to choose from; another one may be typed. */
  options?: readonly string[]
}

/** A field of a form. `rows` makes it one of several lines. */
export function field ({ id, name = id, label, value = '', hint, type = 'text', rows, isRequired = false, maxLength, options }: FieldOptions): Html {
  const rest = [
    options !== undefined && html` list="${id}-options"`, maxLength !== undefined && html` maxlength="${maxLength}"`,
    hint !== undefined && html` aria-describedby="${id}-hint"`, isRequired && html` required`
  ]
  const list = options !== undefined && html`<datalist id="${id}-options">${options.map((one) => html`<option value="${one}">`)}</datalist>\n`
  return html`<label for="${id}">${label}</label>
${hint !== undefined && html`<p class="hint" id="${id}-hint">${hint}</p>\n`}${rows === undefined
    ? html`<input id="${id}" name="${name}" type="${type}" value="${value}" autocapitalize="none" autocomplete="off" spellcheck="false"${rest}>\n`
    : html`<textarea id="${id}" name="${name}" rows="${rows}" autocapitalize="none" spellcheck="false"${rest}>\n${value}</textarea>\n`}${list}`
}

/** The choice of one of several values. */
export function choice ({ id, name = id, label, value = '', hint }: FieldOptions, options: readonly (readonly [value: string, label: string])[]): Html {
  return html`<label for="${id}">${label}</label>
${hint !== undefined && html`<p class="hint" id="${id}-hint">${hint}</p>\n`}
<select id="${id}" name="${name}"${hint !== undefined && html` aria-describedby="${id}-hint"`}>
${options.map(([one, text]) => html`<option value="${one}"${one === value && html` selected`}>${text}</option>\n`)}</select>
`
}

/** A secret, a token or a link, which this page alone shows, as text to select. */
export const secret = (title: string, says: string, value: string) => html`<div class="secret-shown" role="status">
<p><strong>${title}</strong></p>
<p>${says}</p>
<p class="code"><code>${new Html(html`${value}`.text)}</code></p>
</div>
`

/** Links to the pages beside this one. @param toHref makes the URL of a page by its position */
export function pager (
  { after, before, first }: { after?: string | undefined, before?: string | undefined, first: boolean },
  texts: { first: string, previous: string, next: string, pages: string }, toHref: (position: Record<string, string>) => string
): Html | false {
  if (after === undefined && before === undefined && first) return false
  const link = (href: string, text: string, rel?: string) => html`<li><a${rel !== undefined && html` rel="${rel}"`} href="${href}">${text}</a></li>\n`
  return html`<nav class="pager" aria-label="${texts.pages}"><ul>
${[
    !first && link(toHref({}), texts.first),
    before !== undefined && link(toHref({ before }), texts.previous, 'prev'),
    after !== undefined && link(toHref({ after }), texts.next, 'next')
  ]}</ul></nav>
`
}

/** How many there are. `isMore`: more than that. */
export interface Count { count: number, isMore: boolean }

/** Says how many there are. Nothing where they were not counted. */
export function tellCount (count: Count | undefined, { texts: { console: own }, language }: Pick<ConsoleContext, 'texts' | 'language'>): Html | false {
  if (count === undefined) return false
  const { count: number, isMore } = count
  return html`<p class="muted">${isMore ? own.totalMore({ count: number.toLocaleString(language) }) : own.total({ count: number })}</p>\n`
}
