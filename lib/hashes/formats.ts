import { HashError, readHex, toBase64 } from './encoding.ts'

/** How a hash of another program, as its export has it, becomes the stored form. */
interface Format {
  pattern: RegExp
  convert (groups: Record<string, string>): string
}

const ofText = (text: string): string => toBase64(Buffer.from(text))
const ofHex = (text: string, what: string): string => toBase64(readHex(text, what))
const ofBase64 = (text: string): string => text.replace(/=+$/, '')

/** @throws HashError */
function toExponent (text: string): number {
  const exponent = Math.log2(Number(text))
  if (!Number.isInteger(exponent)) throw new HashError('N is not a power of two')
  return exponent
}

const LDAP_DIGESTS: Record<string, { scheme: string, bytes: number }> = {
  SMD5: { scheme: 'salted-md5', bytes: 16 },
  SSHA: { scheme: 'ssha', bytes: 20 },
  SSHA256: { scheme: 'ssha256', bytes: 32 },
  SSHA512: { scheme: 'ssha512', bytes: 64 }
}

const get = (groups: Record<string, string>, name: string): string => groups[name] ?? ''

/** Texts that name their own format. */
const FORMATS: readonly Format[] = [
  // Django.
  {
    pattern: /^pbkdf2_(?<hash>sha1|sha256)\$(?<rounds>\d+)\$(?<salt>[^$]*)\$(?<digest>[^$]+)$/,
    convert: (groups) => `$pbkdf2-${groups['hash']}$${groups['rounds']}$${ofText(get(groups, 'salt'))}$${ofBase64(get(groups, 'digest'))}`
  },
  { pattern: /^argon2(?<hash>\$.*)$/, convert: (groups) => get(groups, 'hash') },
  { pattern: /^bcrypt\$(?<hash>\$.*)$/, convert: (groups) => get(groups, 'hash') },
  { pattern: /^bcrypt_sha256\$(?<hash>\$.*)$/, convert: (groups) => `$bcrypt-sha256-hex${groups['hash']}` },
  {
    pattern: /^scrypt\$(?<N>\d+)\$(?<salt>[^$]*)\$(?<r>\d+)\$(?<p>\d+)\$(?<digest>[^$]+)$/,
    convert: (groups) => `$scrypt$ln=${toExponent(get(groups, 'N'))},r=${groups['r']},p=${groups['p']}$` +
      `${ofText(get(groups, 'salt'))}$${ofBase64(get(groups, 'digest'))}`
  },
  {
    pattern: /^(?<hash>md5|sha1)\$(?<salt>[^$]+)\$(?<digest>[^$]+)$/,
    convert: (groups) => `$salted-${groups['hash']}$before$${ofText(get(groups, 'salt'))}$${ofHex(get(groups, 'digest'), 'digest')}`
  },
  // Werkzeug.
  {
    pattern: /^scrypt:(?<N>\d+):(?<r>\d+):(?<p>\d+)\$(?<salt>[^$]*)\$(?<digest>[^$]+)$/,
    convert: (groups) => `$scrypt$ln=${toExponent(get(groups, 'N'))},r=${groups['r']},p=${groups['p']}$` +
      `${ofText(get(groups, 'salt'))}$${ofHex(get(groups, 'digest'), 'digest')}`
  },
  {
    pattern: /^pbkdf2:(?<hash>sha1|sha256|sha512):(?<rounds>\d+)\$(?<salt>[^$]*)\$(?<digest>[^$]+)$/,
    convert: (groups) => `$pbkdf2-${groups['hash']}$${groups['rounds']}$${ofText(get(groups, 'salt'))}$${ofHex(get(groups, 'digest'), 'digest')}`
  },
  // LDAP: the digest, followed by the salt (RFC 2307 and its extensions).
  {
    pattern: /^\{(?<kind>SMD5|SSHA|SSHA256|SSHA512)\}(?<value>[\w+/=]+)$/,
    convert (groups) {
      const { scheme, bytes } = LDAP_DIGESTS[get(groups, 'kind')]!
      const value = Buffer.from(get(groups, 'value'), 'base64')
      if (value.length <= bytes) throw new HashError('the salt is missing')
      return `$${scheme}$after$${toBase64(value.subarray(bytes))}$${toBase64(value.subarray(0, bytes))}`
    }
  },
  { pattern: /^\{CRYPT\}(?<hash>\$.*)$/i, convert: (groups) => get(groups, 'hash') }
]

/**
 * The stored form of a hash that names its own format: a modular crypt or PHC string, or one of Django, Werkzeug or LDAP.
 * @throws HashError
 */
export function toStored (text: string): string {
  if (text.length > 1_024) throw new HashError('it is longer than 1024 characters')
  if (text.startsWith('$')) return text
  for (const { pattern, convert } of FORMATS) {
    const groups = pattern.exec(text)?.groups
    if (groups !== undefined) return convert(groups)
  }
  throw new HashError('its format is unknown')
}

/** Hashes with parameters, as the schema of an import's line checks them. Texts are base64 unless said otherwise. */
export type Described =
  | { scheme: 'pbkdf2', digest: 'sha1' | 'sha256' | 'sha512', iterations: number, salt: string, hash: string }
  | { scheme: 'scrypt' | 'scrypt-nfkc', N: number, r: number, p: number, salt: string, hash: string }
  | { scheme: 'argon2i' | 'argon2d' | 'argon2id', memory: number, passes: number, parallelism: number, salt: string, hash: string }
  | { scheme: 'firebase', rounds: number, memory_cost: number, salt: string, hash: string, salt_separator: string, signer_key: string }
  /** `salt:hash` in hexadecimal, as better-auth stores it. */
  | { scheme: 'better-auth', hash: string }
  /** The base64 of ASP.NET Core Identity, versions 2 and 3. */
  | { scheme: 'aspnet', hash: string }
  /** Salt in plain text, hash in hexadecimal. */
  | { scheme: 'md5' | 'sha1', salt: string, order: 'before' | 'after', hash: string }

/** URL-safe base64 as plain base64. */
const toPlain = (text: string): string => ofBase64(text.replaceAll('-', '+').replaceAll('_', '/'))

/** @throws HashError */
function readAspNet (text: string): string {
  const bytes = Buffer.from(text, 'base64')
  if (bytes[0] === 0 && bytes.length === 49) {
    return `$pbkdf2-sha1$1000$${toBase64(bytes.subarray(1, 17))}$${toBase64(bytes.subarray(17))}`
  }
  const hash = bytes.length > 13 && bytes[0] === 1 ? ['sha1', 'sha256', 'sha512'][bytes.readUInt32BE(1)] : undefined
  if (hash === undefined) throw new HashError('it is not a hash of ASP.NET Core Identity, version 2 or 3')
  const end = 13 + bytes.readUInt32BE(9)
  if (end >= bytes.length) throw new HashError('the digest is missing')
  return `$pbkdf2-${hash}$${bytes.readUInt32BE(5)}$${toBase64(bytes.subarray(13, end))}$${toBase64(bytes.subarray(end))}`
}

/**
 * The stored form of a hash that comes with its parameters.
 * @throws HashError
 */
export function describedToStored (given: Described): string {
  switch (given.scheme) {
    case 'pbkdf2':
      return `$pbkdf2-${given.digest}$${given.iterations}$${toPlain(given.salt)}$${toPlain(given.hash)}`
    case 'scrypt':
    case 'scrypt-nfkc':
      return `$${given.scheme}$ln=${toExponent(String(given.N))},r=${given.r},p=${given.p}$${toPlain(given.salt)}$${toPlain(given.hash)}`
    case 'argon2i':
    case 'argon2d':
    case 'argon2id':
      return `$${given.scheme}$v=19$m=${given.memory},t=${given.passes},p=${given.parallelism}$${toPlain(given.salt)}$${toPlain(given.hash)}`
    case 'firebase':
      return `$firescrypt$ln=${given.memory_cost},r=${given.rounds},p=1$${toPlain(given.salt)}$${toPlain(given.hash)}` +
        `$${toPlain(given.salt_separator)}$${toPlain(given.signer_key)}`
    case 'better-auth': {
      const [salt, hash, ...rest] = given.hash.split(':')
      if (salt === undefined || hash === undefined || rest.length > 0) throw new HashError('it is not salt and hash with a colon between them')
      // The salt is used as it is written, not as the bytes that it encodes.
      return `$scrypt-nfkc$ln=14,r=16,p=1$${ofText(salt)}$${ofHex(hash, 'digest')}`
    }
    case 'aspnet':
      return readAspNet(given.hash)
    case 'md5':
    case 'sha1':
      return `$salted-${given.scheme}$${given.order}$${ofText(given.salt)}$${ofHex(given.hash, 'digest')}`
  }
}
