import type { Language, Languages } from '../../pages/texts/language.ts'
import { de } from './de.ts'
import { type MailText, type MailTextSource, en } from './en.ts'

/** The languages that the service brings. */
const SOURCES: Readonly<Record<Language, MailTextSource>> = { en, de }

export type MailKind = Exclude<keyof typeof en, 'layout'>

type MailLayoutTexts = MailTextSource['layout']

/** The texts of a language and a key, with their placeholders: the operator's, then ours, then the English ones. */
function merge (key: keyof typeof en, { own }: Languages, language: Language): object {
  const mails = own[language]?.mails as Partial<MailTextSource> | undefined
  // As objects of any texts: a union of all kinds of mails is too much for the compiler.
  const sources: (object | undefined)[] = [en[key], SOURCES[language]?.[key], mails?.[key]]
  return Object.assign({}, ...sources)
}

/** The texts of a kind of mail. */
export const getMailTexts = (kind: MailKind, languages: Languages, language: Language) => merge(kind, languages, language) as MailText

/** What all mails have. */
export const getLayoutTexts = (languages: Languages, language: Language) => merge('layout', languages, language) as MailLayoutTexts
