import { de } from './de.ts'
import { type TextSource, type Texts, en } from './en.ts'
import type { Language, Languages } from './language.ts'
import { compileTexts } from './template.ts'

export { type Message, type Texts } from './en.ts'

/** The languages that the service brings. */
const SOURCES: Readonly<Record<Language, TextSource>> = { en, de }

const compiled = new WeakMap<Languages, Map<Language, Texts>>()

/** The texts of the pages in a language: the operator's, then ours, then the English ones. */
export function getTexts (languages: Languages, language: Language): Texts {
  const texts = compiled.get(languages) ?? new Map<Language, Texts>()
  compiled.set(languages, texts)
  const found = texts.get(language) ?? compileTexts(en, [languages.own[language]?.pages ?? {}, SOURCES[language] ?? {}], language)
  texts.set(language, found)
  return found
}
