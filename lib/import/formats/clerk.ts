import type { ImportLine } from '../../../schemas/import.ts'
import { compact, joinName, Refusal, type Source, toAccount } from './source.ts'

type Password = NonNullable<ImportLine['password']>

/** Hashers whose digest names its own format. */
const NAMED = new Set([
  'bcrypt', 'bcrypt_sha256_django', 'argon2i', 'argon2id', 'pbkdf2_sha1', 'pbkdf2_sha256', 'pbkdf2_sha512', 'pbkdf2_sha256_django',
  'phpass', 'md5_phpass', 'scrypt_werkzeug', 'ldap_ssha'
])

/** Firebase's scrypt: hash, salt, signer key, salt separator, rounds and memory cost. */
function readFirebase (digest: string): Password {
  const [hash = '', salt = '', signer = '', separator = '', rounds, memory] = digest.split('$')
  if (memory === undefined) throw new Refusal('is no digest of scrypt_firebase', 'password_digest')
  const numbers = { rounds: Number(rounds), memory_cost: Number(memory) }
  return { scheme: 'firebase', hash, salt, signer_key: signer, salt_separator: separator, ...numbers }
}

function readPassword (source: Source): Password | undefined {
  const digest = source.text('password_digest')
  const hasher = source.text('password_hasher')
  if (digest === undefined) return undefined
  if (hasher === 'scrypt_firebase') return readFirebase(digest)
  if (hasher === undefined || !NAMED.has(hasher)) throw new Refusal('is not supported', 'password_hasher')
  return { hash: digest }
}

/** Clerk: the CSV of its dashboard. */
export function convertClerk (source: Source): ImportLine {
  const id = source.text('id')
  if (id === undefined) throw new Refusal('is required', 'id')
  const email = source.text('primary_email_address')
  const verified = (source.text('verified_email_addresses') ?? '').split(/[\s|,;]+/)
  const unverified = (source.text('unverified_email_addresses') ?? '').split(/[\s|,;]+/)
  for (const [name, list] of [['verified_email_addresses', verified], ['unverified_email_addresses', unverified]] as const) {
    if (list.some((address) => address !== '' && address !== email)) source.drop(name)
  }
  const secret = source.text('totp_secret')
  return compact<ImportLine>({
    id,
    external: { [source.options.source]: id },
    ...toAccount(source, { username: source.text('username'), email, verified: verified.includes(email ?? ''), prefer: 'email' }),
    ...joinName(source.text('first_name'), source.text('last_name')),
    password: readPassword(source),
    totp: secret === undefined ? undefined : [{ secret }]
  })
}
