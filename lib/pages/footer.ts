import { type Html, html } from './html.ts'
import type { Look } from './look.ts'
import type { Texts } from './texts/index.ts'
import type { Language } from './texts/language.ts'
import { CHOICE } from './language-cookie.ts'

/** Characters of a query that the links to other languages repeat. */
const QUERY_LIMIT = 2048

/** The names of languages. To find one takes longer than the rest of a page. */
const names = new Map<Language, string>()

/** A language's name for itself, as at the start of a sentence. */
function nameLanguage (language: Language): string {
  const known = names.get(language)
  if (known !== undefined) return known
  const own = new Intl.DisplayNames([language], { type: 'language' }).of(language) ?? language
  const name = own.charAt(0).toLocaleUpperCase(language) + own.slice(1)
  names.set(language, name)
  return name
}

/** The languages of a page as links to itself: the service keeps the choice of one in a cookie. */
function chooseLanguage (query: string, tags: readonly Language[], current: Language, { common }: Texts): Html | false {
  const params = new URLSearchParams(query)
  params.delete(CHOICE)
  if (params.toString().length > QUERY_LIMIT) return false
  const toHref = (language: Language) => `?${new URLSearchParams([...params, [CHOICE, language]])}`
  return html`<ul class="languages" aria-label="${common.languages}">
${tags.map((language) => language === current
    ? html`<li><span aria-current="true">${nameLanguage(language)}</span></li>\n`
    : html`<li><a href="${toHref(language)}" lang="${language}" hreflang="${language}">${nameLanguage(language)}</a></li>\n`)}</ul>
`
}

/**
 * The links below every page.
 * @param query of the page's URL. Absent: the page cannot be opened again, so its language cannot be chosen on it
 */
export function footer (
  { links: { help, terms, privacy }, languages: { tags } }: Pick<Look, 'links' | 'languages'>, texts: Texts, language: Language, query: string | undefined
): Html | false {
  const { common } = texts
  const links = [
    help !== undefined && html`<a href="${help.href}">${help.href.startsWith('mailto:') ? help.text : common.help}</a>`,
    terms !== undefined && html`<a href="${terms}">${common.terms}</a>`,
    privacy !== undefined && html`<a href="${privacy}">${common.privacy}</a>`
  ].filter((link) => link !== false)
  const languages = query !== undefined && tags.length > 1 && chooseLanguage(query, tags, language, texts)
  return (links.length > 0 || languages !== false) && html`<footer>
${links.length > 0 && html`<ul>
${links.map((link) => html`<li>${link}</li>\n`)}</ul>
`}${languages}</footer>
`
}
