import Negotiator from 'negotiator'

/** The languages of the pages. A browser that prefers none of them gets the first one. */
export const LANGUAGES = ['en', 'de'] as const

export type Language = typeof LANGUAGES[number]

/** The number of language tags of `ui_locales` that are read. */
const TAGS = 10

const findLanguage = (tag: string | undefined) => LANGUAGES.find((language) => language === tag)

/**
 * Finds the first of our languages in the parameter `ui_locales`.
 * @param locales language tags, the preferred one first (OpenID Connect Core, 3.1.2.1)
 */
export function findLocale (locales: unknown): Language | undefined {
  if (typeof locales !== 'string') return undefined
  for (const tag of locales.split(' ', TAGS)) {
    const found = findLanguage(/^[a-z]{2,3}(?=$|-)/i.exec(tag)?.[0].toLowerCase())
    if (found !== undefined) return found
  }
}

/**
 * Chooses the language of a page.
 * @param locales the parameter `ui_locales`
 * @param accept the header Accept-Language (RFC 9110, 12.5.4)
 */
export function chooseLanguage (locales: unknown, accept: string | undefined): Language {
  return findLocale(locales) ?? findLanguage(new Negotiator({ headers: { 'accept-language': accept } }).language([...LANGUAGES])) ?? 'en'
}
