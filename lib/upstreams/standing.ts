import type { Clock } from '../clock.ts'
import type { Proof } from '../proofs.ts'
import type { UserRecord } from '../records.ts'
import type { Store } from '../store/port.ts'
import { REMEMBERED, type UpstreamEnds } from './ends.ts'

/** Whether a proof of an identity still stands where the provider has the last word. */
export interface IdentityStanding {
  /** Whether the provider has ended the sign-in since. @param user as it is now, with the identity that the proof is of */
  isOver (user: Pick<UserRecord, 'ways'>, proof: Proof): Promise<boolean>
  /**
   * The same, for whoever has just made a session or a grant with this proof, and does not know the user's record.
   * @param isNew whether the session is made by the sign-in itself. Then it is over if it took longer than its end would be remembered
   */
  isOverFor (user_id: string, proof: Proof | undefined, isNew?: boolean): Promise<boolean>
}

/** Milliseconds from the way to the provider to the end of a sign-in. An end is remembered for longer. */
const LONGEST_SIGN_IN = REMEMBERED * 1000 / 2

export function createIdentityStanding ({ store, now, ends }: { store: Store, now: Clock, ends: Pick<UpstreamEnds, 'isEnded'> }): IdentityStanding {
  const users = store.collection<UserRecord>('users')

  async function isOver ({ ways = {} }: Pick<UserRecord, 'ways'>, { kind, way, session, asked_at }: Proof): Promise<boolean> {
    if (kind !== 'upstream') return false
    return await ends.isEnded({ identity: ways[way]?.key, ...(session !== undefined && { session }), ...(asked_at !== undefined && { asked_at }) })
  }

  return {
    isOver,
    async isOverFor (user_id, proof, isNew = false) {
      if (proof === undefined) return false
      if (isNew && proof.asked_at !== undefined && Date.parse(proof.asked_at) + LONGEST_SIGN_IN < now()) return true
      return await isOver(await users.get(user_id) ?? {}, proof)
    }
  }
}
