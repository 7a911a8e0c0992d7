import { ARGON2 } from './argon2.ts'
import { BCRYPT_SCHEMES } from './bcrypt.ts'
import { DIGEST_SCHEMES } from './digests.ts'
import { HashError } from './encoding.ts'
import { PBKDF2 } from './pbkdf2.ts'
import type { ForeignHash, Scheme } from './scheme.ts'
import { SCRYPT_SCHEMES } from './scrypt.ts'

/** The most characters of a hash. */
const LENGTH = 1_024

/** The most milliseconds that one verification may be estimated to take. */
const WORK = 2_000

const SCHEMES: readonly Scheme[] = [...BCRYPT_SCHEMES, ARGON2, ...SCRYPT_SCHEMES, PBKDF2, ...DIGEST_SCHEMES]

/** A stored hash of another program, with the scheme that made it. */
export interface ReadHash extends ForeignHash {
  scheme: string
  weak: boolean
  /** The hash with the length of each secret part instead of the part, such as `$2b$10$~53`. */
  form: string
}

/** The groups of the patterns that are secret. */
const SECRETS = ['salt', 'digest', 'separator', 'signer']

function toForm (stored: string, positions: Record<string, [start: number, end: number]>): string {
  let [form, last] = ['', 0]
  for (const [start, end] of SECRETS.flatMap((name) => positions[name] === undefined ? [] : [positions[name]]).sort(([one], [other]) => one - other)) {
    form += `${stored.slice(last, start)}~${stored.slice(start, end).replace(/=+$/, '').length}`
    last = end
  }
  return form + stored.slice(last)
}

/**
 * Reads a hash in its stored form.
 * @throws HashError when its scheme is unknown, or a verification would take too long
 */
export function readHash (stored: string): ReadHash {
  if (stored.length > LENGTH) throw new HashError(`it is longer than ${LENGTH} characters`)
  for (const { name, weak = false, pattern, read } of SCHEMES) {
    const match = pattern.exec(stored)
    if (match === null) continue
    const hash = read(match.groups!)
    if (hash.work > WORK) throw new HashError(`one verification would take about ${Math.round(hash.work / 100) / 10} s; the limit is ${WORK / 1_000} s`)
    return { ...hash, scheme: name, weak, form: toForm(stored, match.indices!.groups!) }
  }
  throw new HashError('its scheme is unknown')
}

/** The same, and undefined for a hash that can't be used: no password matches it. */
export function findHash (stored: string): ReadHash | undefined {
  try {
    return readHash(stored)
  } catch (error) {
    if (error instanceof HashError) return undefined
    throw error
  }
}
