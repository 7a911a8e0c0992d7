import { type IdentityError, paramError } from '../errors.ts'
import { type Acr, type Evidence, toStrength } from '../proofs.ts'
import type { UserRecord } from '../records/user.ts'
import { meets, stepUpError } from './step-up.ts'
import type { WayService } from './ways.ts'
import { DEFAULT_POLICY, type Holder, type WayPolicy, findDemanded, hasFactor, listStanding } from './words.ts'

/** Seconds for which a sign-in stands for a proof. */
export const FRESH = 600

/**
 * Whether evidence is enough for an operation that a stolen token must not be enough for. A sign-in must be fresh, and as strong as is
 * demanded of the person. What they prove with the request itself must be of both kinds if they have a factor.
 */
export function isEnough (holder: Holder, { isOperator, auth, proofs, at }: Evidence, policy: WayPolicy): boolean {
  if (isOperator || meets(auth, { acr: findDemanded(holder, policy), maxAge: FRESH }, at)) return true
  const standing = listStanding(proofs, holder, policy)
  const acr: Acr = hasFactor(holder, policy) ? 'mfa' : '1'
  return standing.length > 0 && meets(toStrength(standing), { acr, maxAge: FRESH }, at)
}

/**
 * The error for evidence that is not enough: a person with a password and nothing else types it, if the
 * request can bring that, and everybody else signs in again.
 */
function refuse (holder: Holder, { mayType = true }: Evidence, policy: WayPolicy): IdentityError {
  if (mayType && holder.password && !hasFactor(holder, policy)) return paramError('current_password', 'is required with a new password')
  return stepUpError({ acr: findDemanded(holder, policy), maxAge: FRESH })
}

/**
 * The one gate of all operations that ask for proof, by the API and on the pages.
 * @returns a check of a user's record, which throws ErrParam or ErrUnknown. A way whose material is missing counts as none
 */
export function createEvidenceCheck ({ ways, policy = DEFAULT_POLICY }: { ways: Pick<WayService, 'withExisting'>, policy?: WayPolicy }) {
  return async function checkEvidence (record: UserRecord, evidence: Evidence): Promise<void> {
    const holder = await ways.withExisting(record)
    if (!isEnough(holder, evidence, policy)) throw refuse(holder, evidence, policy)
  }
}
