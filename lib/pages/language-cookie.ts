/** The cookie for the language of a link's `ui_locales`. Its value is one of our languages, and it ends with the browser's session. */
export const LANGUAGE_COOKIE = 'identity_language'

/** The query parameter of a person's own choice of a language. */
export const CHOICE = 'language'

/** The cookie for that choice. It is kept for a year, and counts more than what an app or the browser asks for. */
export const CHOICE_COOKIE = 'identity_language_choice'

/** Joins lists of language tags, the preferred list first. Values that are not strings are omitted. */
export const joinLocales = (...lists: unknown[]): string => lists.filter((list) => typeof list === 'string').join(' ')
