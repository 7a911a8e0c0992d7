import type { ImportLine } from '../../../schemas/import.ts'
import { readCustomHash } from './auth0-hash.ts'
import { compact, isObject, joinName, Refusal, type Source, toAccount } from './source.ts'

/** The id of a record. In a file of password hashes it is that of Auth0's own database, or one that the tenant has chosen. */
function readId (source: Source): string | undefined {
  const id = source.text('user_id')
  const chosen = source.text('alt_id')
  const given = source.take('_id')
  const own = chosen ?? (isObject(given) && typeof given['$oid'] === 'string' ? given['$oid'] : undefined)
  // Auth0's own import puts the prefix before the ids of its files.
  const bare = id ?? own
  return bare === undefined || (id !== undefined && bare.includes('|')) ? bare : `auth0|${bare}`
}

/** Some records have the address only as one of their identifiers. */
function readIdentifiers (source: Source): { email?: string, email_verified?: boolean, username?: string } {
  const found: Record<string, unknown> = {}
  for (const { type, value, verified } of source.list('identifiers')) {
    if (type === 'email') Object.assign(found, { email: value, email_verified: verified === true })
    else if (type === 'username') found['username'] = value
    else source.drop('identifiers')
  }
  return found
}

function readPassword (source: Source): ImportLine['password'] {
  const hash = source.text('passwordHash') ?? source.text('password_hash')
  const custom = source.object('custom_password_hash')
  return hash !== undefined ? { hash } : custom === undefined ? undefined : readCustomHash(custom)
}

function readFactors (source: Source): ImportLine['totp'] {
  const apps: { secret: string }[] = []
  for (const { totp, ...others } of source.list('mfa_factors')) {
    if (isObject(totp) && typeof totp['secret'] === 'string') apps.push({ secret: totp['secret'] })
    if (Object.keys(others).length > 0) source.loseFactor('mfa_factors')
  }
  for (const name of ['multifactor', 'guardian_authenticators']) {
    const value = source.take(name)
    if (Array.isArray(value) && value.length > 0) source.loseFactor(name)
  }
  return apps.length === 0 ? undefined : apps
}

function readIdentities (source: Source, id: string | undefined): ImportLine['identities'] {
  const listed = source.list('identities').map(({ provider, user_id: subject }) => ({ provider: String(provider), subject }))
  const [provider = 'auth0', subject] = id?.split('|') ?? []
  const identities = (listed.length > 0 ? listed : [{ provider, subject }]).filter((one) => one.provider !== 'auth0')
  return identities.flatMap((one) => source.identity(one.provider, one.subject))
}

/**
 * Auth0: its user export (NDJSON), the file of password hashes that its support sends (NDJSON), and files that were made for its own
 * import (an array).
 */
export function convertAuth0 (source: Source): ImportLine {
  const id = readId(source)
  if (id === undefined) throw new Refusal('is required', 'user_id')
  const others = readIdentifiers(source)
  const email = source.text('email') ?? others.email
  const verified = source.flag('email_verified') ?? others.email_verified
  const username = source.text('username') ?? others.username
  const [given, family, nickname, name] = ['given_name', 'family_name', 'nickname', 'name'].map((field) => source.text(field))
  const joined = joinName(given, family).name
  const chosen = [name, joined, nickname].find((one) => one !== undefined && one !== email)
  source.ignore('tenant', 'connection', '_tmp_is_unique', 'password_set_date', 'updated_at')
  return compact<ImportLine>({
    id,
    external: { [source.options.source]: id },
    ...toAccount(source, { username, email, verified, prefer: 'email' }),
    name: chosen,
    info: source.object('user_metadata'),
    disabled: source.flag('blocked'),
    created_at: source.time('created_at'),
    password: readPassword(source),
    totp: readFactors(source),
    identities: readIdentities(source, id)
  })
}
