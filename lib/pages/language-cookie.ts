/** The cookie that keeps the language of a link's `ui_locales`. It ends with the browser's session and holds the name of one of our languages. */
export const LANGUAGE_COOKIE = 'identity_language'

/** Lists of language tags as one list, the preferred one first. What is no text is left out. */
export const joinLocales = (...lists: unknown[]): string => lists.filter((list) => typeof list === 'string').join(' ')
