import type { ImportPassword } from '../../schemas/import.ts'
import { defined } from '../defined.ts'
import { HashError } from '../hashes/encoding.ts'
import { readHash } from '../hashes/foreign.ts'
import { describedToStored, toStored } from '../hashes/formats.ts'
import { readOwnHash } from '../users/passwords.ts'
import { Refused, naming } from './refused.ts'

/** A password hash of a line. */
export interface ReadPassword {
  /** The form in which it is stored. */
  stored: string
  scheme: string
  /** See ReadHash. Absent for a hash of our own that takes as long as the configured cost. */
  form?: string
  /** Estimated milliseconds of one verification. */
  work: number
}

/** The most milliseconds that a verification of one of our own hashes may take: the limit of those of other programs. */
const WORK = 2_000

function readOwn (hash: string, cost: number): ReadPassword | null {
  const own = readOwnHash(hash)
  if (own === null) return null
  if (own.work > WORK) throw new HashError(`one verification would take more than ${WORK / 1_000} s`)
  return defined({ stored: hash, scheme: 'own', work: own.work, form: own.cost > cost ? own.form : undefined })
}

/**
 * Reads a password hash of a line.
 * @param cost the configured cost of our own hashes
 * @throws Refused
 */
export async function readPassword (
  given: ImportPassword, { cost, allowWeak = false }: { cost: number, allowWeak?: boolean | undefined }
): Promise<ReadPassword> {
  try {
    const own = 'scheme' in given ? null : readOwn(given.hash, cost)
    if (own !== null) return own
    const stored = 'scheme' in given ? describedToStored(given) : toStored(given.hash)
    const { scheme, weak, work, form } = readHash(stored)
    if (weak && !allowWeak) throw new HashError(`${scheme} is weak, and needs ${naming('allow-weak')}`)
    return { stored, scheme, form, work }
  } catch (error) {
    if (error instanceof HashError) throw new Refused('password', error.message)
    throw error
  }
}
