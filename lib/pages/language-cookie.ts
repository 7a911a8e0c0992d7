/** The cookie for the language of a link's `ui_locales`. Its value is one of our languages, and it ends with the browser's session. */
export const LANGUAGE_COOKIE = 'identity_language'

/** Joins lists of language tags, the preferred list first. Values that are not strings are omitted. */
export const joinLocales = (...lists: unknown[]): string => lists.filter((list) => typeof list === 'string').join(' ')
