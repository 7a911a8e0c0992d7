import { html } from '../html.ts'
import type { Look } from '../look.ts'
import { de } from './de.ts'
import { type TextSource, type Texts, en } from './en.ts'
import type { Language } from './language.ts'
import { type LinkHelp, compileTexts } from './template.ts'

export { type Message, type Texts } from './en.ts'

/** The languages that the service brings. */
const SOURCES: Readonly<Record<Language, TextSource>> = { en, de }

const compiled = new WeakMap<object, Map<Language, Texts>>()

/** The texts of the pages in a language: the operator's, then ours, then the English ones. */
export function getTexts (look: Pick<Look, 'languages' | 'links'>, language: Language): Texts {
  const { languages, links: { help } } = look
  const texts = compiled.get(look) ?? new Map<Language, Texts>()
  compiled.set(look, texts)
  const linkHelp: LinkHelp = (words) => help === undefined ? words : html`<a href="${help.href}">${words}</a>`
  const found = texts.get(language) ?? compileTexts(en, [languages.own[language]?.pages ?? {}, SOURCES[language] ?? {}], language, linkHelp)
  texts.set(language, found)
  return found
}
