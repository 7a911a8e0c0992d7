import type { Happening } from '../events/types.ts'
import type { Way } from '../way.ts'

/** Characters of the hash of a subject: enough to tell identities apart, and too few to find the subject by guesses at its key. */
const HASH_LENGTH = 22

/** An identity as events show it: its upstream, and a hash of issuer and subject. */
export function showIdentity ({ upstream = '', key = '' }: Pick<Way, 'upstream' | 'key'>): NonNullable<Happening['via']> & { subject: string } {
  return { upstream, subject: key.slice(0, HASH_LENGTH) }
}
