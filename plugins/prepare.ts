import { DEFAULT_ACCOUNT_PATH } from '../lib/accounts/links.ts'
import { type Look, createLook } from '../lib/pages/look.ts'
import type { OidcOptions } from '../schemas/oidc.ts'
import { type IdentityOptions, type ReadOptions, readOptions } from './identity.ts'
import { readOidcOptions } from './oidc.ts'

/** The checked options of the plugin, and what follows from them alone. */
export interface Prepared {
  options: ReadOptions
  /** The authorization server; false: none. */
  server: false | { options: OidcOptions, look: Look, accountPath: string }
}

/**
 * Checks all options. It runs before the store is opened, so that a wrong option leaves no database and no key behind, and
 * `config check` runs it too.
 * @throws Error that names the option
 */
export function prepareIdentity (given: IdentityOptions): Prepared {
  const options = readOptions(given)
  if (options.oidc === false) return { options, server: false }
  const oidc = readOidcOptions(options.oidc)
  return { options, server: { options: oidc, look: createLook(oidc), accountPath: oidc.accountPath || DEFAULT_ACCOUNT_PATH } }
}
