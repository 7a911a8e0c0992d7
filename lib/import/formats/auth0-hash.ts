import type { ImportLine } from '../../../schemas/import.ts'
import { isObject, Refusal } from './source.ts'

type Password = NonNullable<ImportLine['password']>
type Json = Record<string, unknown>

const FIELD = 'custom_password_hash'
const ENCODINGS: Readonly<Record<string, BufferEncoding>> = { base64: 'base64', hex: 'hex', utf8: 'utf8' }

/** A value with its encoding, as plain base64. */
function toBase64 (given: unknown, fallback: string): string {
  if (!isObject(given) || typeof given['value'] !== 'string') throw new Refusal('has no value of its hash or salt', FIELD)
  const { encoding = fallback } = given
  const known = typeof encoding === 'string' && Object.hasOwn(ENCODINGS, encoding) ? ENCODINGS[encoding] : undefined
  if (known === undefined) throw new Refusal('has an unknown encoding', FIELD)
  return Buffer.from(given['value'], known).toString('base64').replace(/=+$/, '')
}

function toWhole (given: Json, name: string, fallback?: number): number {
  const value = given[name] ?? fallback
  if (typeof value !== 'number') throw new Refusal(`has no number "${name}"`, FIELD)
  return value
}

/** PBKDF2 as Auth0 has it: `$pbkdf2-sha256$i=100000,l=32$salt$hash`. */
function readPbkdf2 (text: string): Password {
  const { digest, iterations, salt = '', hash = '' } =
    /^\$pbkdf2-(?<digest>sha1|sha256|sha512)\$i=(?<iterations>\d{1,9}),l=\d{1,4}\$(?<salt>[^$]*)\$(?<hash>[^$]+)$/.exec(text)?.groups ?? {}
  if (digest === undefined) return { hash: text }
  return { scheme: 'pbkdf2', digest: digest as 'sha1', iterations: Number(iterations), salt, hash }
}

/** One round of a digest, in the form that LDAP's hashes are stored in. */
function readDigest (algorithm: string, given: Json): Password {
  if (!isObject(given['salt'])) throw new Refusal('has no salt', FIELD)
  const { position } = given['salt']
  const scheme = algorithm === 'md5' ? 'salted-md5' : algorithm === 'sha1' ? 'salted-sha1' : `s${algorithm}`
  const order = position === 'suffix' ? 'after' : 'before'
  return { hash: `$${scheme}$${order}$${toBase64(given['salt'], 'utf8')}$${toBase64(given['hash'], 'hex')}` }
}

/** A password hash in the form of Auth0's import. @throws Refusal */
export function readCustomHash (given: Json): Password {
  const { algorithm, hash } = given
  const text = isObject(hash) && typeof hash['value'] === 'string' ? hash['value'] : undefined
  if (text === undefined) throw new Refusal('has no value of its hash or salt', FIELD)
  switch (algorithm) {
    case 'argon2':
    case 'bcrypt':
    case 'ldap':
      return { hash: text }
    case 'pbkdf2':
      return readPbkdf2(text)
    case 'scrypt':
      return {
        scheme: 'scrypt',
        N: toWhole(given, 'cost', 16_384),
        r: toWhole(given, 'blockSize', 8),
        p: toWhole(given, 'parallelization', 1),
        salt: toBase64(given['salt'], 'utf8'),
        hash: toBase64(hash, 'base64')
      }
    case 'md5':
    case 'sha1':
    case 'sha256':
    case 'sha512':
      return readDigest(algorithm, given)
    default:
      throw new Refusal('has an algorithm that is not supported', FIELD)
  }
}
