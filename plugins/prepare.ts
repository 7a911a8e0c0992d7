import { openOutbound } from '../lib/identity.ts'
import { checkServers, checkUpstreams } from '../lib/upstreams/settings.ts'
import { DEFAULT_ACCOUNT_PATH } from '../lib/accounts/links.ts'
import { isOver } from '../lib/lazy-migration/end.ts'
import { type MailLook, createMailLook } from '../lib/mail/look.ts'
import { readOwnTexts } from '../lib/mail/texts/own-texts.ts'
import { type Look, createLook } from '../lib/pages/look.ts'
import { type Languages, createLanguages } from '../lib/pages/texts/language.ts'
import { type FoundParty, findRelyingParty } from '../lib/ways/relying-party.ts'
import type { OidcOptions } from '../schemas/oidc.ts'
import { type IdentityOptions, type ReadOptions, readOptions } from './identity.ts'
import { readOidcOptions } from './oidc.ts'
import { readMessage } from '../lib/failure.ts'
import { readNetworks } from '../lib/outbound/addresses.ts'

/** The checked options of the plugin, and what follows from them alone. */
export interface Prepared {
  options: ReadOptions
  /** The relying party of passkeys, or why they are off. */
  passkeys: FoundParty
  /** The authorization server; false: none. */
  server: false | { options: OidcOptions, look: Look, mailLook: MailLook, languages: Languages, accountPath: string }
  warnings: readonly string[]
  /** Texts of the operator that are not used, because no text of this release has their key. They are among the warnings. */
  unknownTexts: readonly string[]
}

/** @returns a warning where the former system is asked no more. @throws Error for a URL that must not be called */
function checkMigrate ({ migrate, now = Date.now, ...options }: ReadOptions): string[] {
  if (migrate === undefined) return []
  try {
    if ('url' in migrate && migrate.url !== undefined) openOutbound(options).checkUrl(migrate.url)
  } catch (error) {
    throw new Error(`option migrate.url: ${readMessage(error)}`)
  }
  return isOver(migrate, now()) ? ['option migrate: until has passed, so the old system is asked about nobody'] : []
}

/** Whether one path is the other, or below or above it. */
const isWithin = (one: string, other: string): boolean => `${one}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${one}/`)

/** @throws Error that names the option */
function checkConsole ({ console: options, oidc }: Pick<ReadOptions, 'console' | 'oidc'>): void {
  if (options === false) return
  if (oidc === false) throw new Error('option console: needs the authorization server')
  try {
    readNetworks(options.adminNetworks ?? [])
  } catch (error) {
    throw new Error(`option console.adminNetworks: ${readMessage(error)}`)
  }
}

/**
 * Checks all options. It runs before the store is opened, so that a wrong option leaves no database and no key behind, and
 * `config check` runs it too.
 * @throws Error that names the option
 */
export function prepareIdentity (given: IdentityOptions): Prepared {
  const options = readOptions(given)
  const past = checkMigrate(options)
  checkConsole(options)
  if (options.oidc === false) {
    if (options.upstreams.length > 0) throw new Error('option upstreams: needs the authorization server')
    return { options, passkeys: {}, server: false, warnings: past, unknownTexts: [] }
  }
  if (options.upstreams.length > 0) checkServers(options.upstreams, openOutbound(options).checkUrl)
  const oidc = readOidcOptions(options.oidc)
  const accountPath = oidc.accountPath || DEFAULT_ACCOUNT_PATH
  if (options.console !== false && isWithin(options.console.path, accountPath)) throw new Error(`option console.path: must not be that of the account pages, ${accountPath}, nor one below or above it`)
  const { own, warnings, unknown } = oidc.texts === undefined ? { own: {}, warnings: [], unknown: [] } : readOwnTexts(oidc.texts)
  const languages = createLanguages(own)
  const [look, mailLook] = [createLook({ ...oidc, languages }), createMailLook(oidc, options.sender?.logo)]
  return {
    options,
    passkeys: findRelyingParty({ passkeys: options.passkeys, relyingParty: options.relyingParty, issuer: oidc.issuer }),
    server: { options: oidc, look, mailLook, languages, accountPath },
    warnings: [...past, ...warnings, ...unknown, ...checkUpstreams(options.upstreams, options)],
    unknownTexts: unknown
  }
}
