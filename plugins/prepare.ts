import { DEFAULT_ACCOUNT_PATH } from '../lib/accounts/links.ts'
import { type MailLook, createMailLook } from '../lib/mail/look.ts'
import { readOwnTexts } from '../lib/mail/texts/own-texts.ts'
import { type Look, createLook } from '../lib/pages/look.ts'
import { type Languages, createLanguages } from '../lib/pages/texts/language.ts'
import type { OidcOptions } from '../schemas/oidc.ts'
import { type IdentityOptions, type ReadOptions, readOptions } from './identity.ts'
import { readOidcOptions } from './oidc.ts'

/** The checked options of the plugin, and what follows from them alone. */
interface Prepared {
  options: ReadOptions
  /** The authorization server; false: none. */
  server: false | { options: OidcOptions, look: Look, mailLook: MailLook, languages: Languages, accountPath: string }
  warnings: readonly string[]
}

/**
 * Checks all options. It runs before the store is opened, so that a wrong option leaves no database and no key behind, and
 * `config check` runs it too.
 * @throws Error that names the option
 */
export function prepareIdentity (given: IdentityOptions): Prepared {
  const options = readOptions(given)
  if (options.oidc === false) return { options, server: false, warnings: [] }
  const oidc = readOidcOptions(options.oidc)
  const { own, warnings } = oidc.texts === undefined ? { own: {}, warnings: [] } : readOwnTexts(oidc.texts)
  const languages = createLanguages(own)
  const [look, mailLook] = [createLook({ ...oidc, languages }), createMailLook(oidc, options.sender?.logo)]
  return { options, server: { options: oidc, look, mailLook, languages, accountPath: oidc.accountPath || DEFAULT_ACCOUNT_PATH }, warnings }
}
