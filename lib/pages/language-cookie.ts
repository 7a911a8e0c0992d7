/** The cookie that keeps the language of a link's `ui_locales`. It ends with the browser's session and holds the name of one of our languages. */
export const LANGUAGE_COOKIE = 'identity_language'
