import type { ImportLine } from '../../schemas/import.ts'
import { Refused, naming } from './refused.ts'

/** The fewest bytes of a seed: 80 bits, as many as the first authenticator apps had. RFC 4226, 4 asks for 128. */
const LEAST_BYTES = 10

/** The most bytes, a block of SHA-1: a longer seed is hashed first, and apps differ in that. */
const MOST_BYTES = 64

const BASE32 = /^[A-Z2-7]+$/

/** Only what every authenticator app computes (lib/ways/totp.ts). */
function findProblem (
  { secret, algorithm = 'SHA1', digits = 6, period = 30 }: NonNullable<ImportLine['totp']>[number]
): [field: string, problem: string] | null {
  if (algorithm.toUpperCase().replace('-', '') !== 'SHA1') return ['algorithm', 'must be SHA1']
  if (digits !== 6) return ['digits', 'must be 6']
  if (period !== 30) return ['period', 'must be 30']
  const seed = normalize(secret)
  if (!BASE32.test(seed)) return ['secret', 'must be base32']
  const bytes = Math.floor(seed.length * 5 / 8)
  if (bytes < LEAST_BYTES) return ['secret', `must have at least ${LEAST_BYTES * 8} bits`]
  return bytes > MOST_BYTES ? ['secret', `must have at most ${MOST_BYTES * 8} bits`] : null
}

/** People and programs write seeds in groups, in lower case and with padding. */
function normalize (secret: string): string {
  return secret.toUpperCase().replaceAll(/[\s-]/g, '').replace(/=+$/, '')
}

/**
 * Reads the seeds of a line.
 * @returns the seeds in base32; none, and `isDropped`, where the import leaves factors out that cannot be taken
 * @throws Refused
 */
export function readSeeds (
  totp: NonNullable<ImportLine['totp']>, { withoutFactors, canAddFactors }: { withoutFactors: boolean, canAddFactors: boolean }
): { seeds: string[], isDropped: boolean } {
  const seeds: string[] = []
  let isDropped = false
  for (const [index, factor] of totp.entries()) {
    const problem = canAddFactors ? findProblem(factor) : [undefined, 'two-factor authentication is off']
    const seed = normalize(factor.secret)
    const [field, reason] = problem ?? (seeds.includes(seed) ? ['secret', 'is there twice'] : [])
    if (reason === undefined) seeds.push(seed)
    else if (withoutFactors) isDropped = true
    else throw new Refused(`totp[${index}]${field === undefined ? '' : `.${field}`}`, `${reason}; ${naming('without-factors')} brings the person in without it`)
  }
  return { seeds, isDropped }
}
