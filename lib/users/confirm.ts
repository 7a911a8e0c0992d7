import type { Clock } from '../clock.ts'
import { IdentityError, scopeError } from '../errors.ts'
import type { Evidence, Proof } from '../proofs.ts'
import type { UserRecord } from '../records/user.ts'
import { checkUnrestricted } from '../restricted.ts'
import { type Actor, toTurn } from '../roles.ts'
import type { ConfirmRecord } from '../user-changes/user-changes.ts'
import type { PasswordChecks } from './password-checks.ts'

/** Checks evidence for an operation on a user, see lib/ways/evidence.ts. @throws ErrParam, ErrUnknown with a challenge */
export type CheckEvidence = (record: UserRecord, evidence: Evidence) => Promise<void>

/** What a form proves beside the present password. It is called after the password has been compared, and throws unless it is right. */
export type ProveMore = (record: UserRecord) => Promise<readonly Proof[]>

/** What the proof of an operation leads to. */
export interface Confirmed {
  proofs: readonly Proof[]
  /** For the conditional write of the operation: the actor may act still, and what they have proved is enough still. */
  confirm: ConfirmRecord
  /** The same without the actor, whose token may be one that the operation itself has ended. */
  checkRecord: ConfirmRecord
}

/** What a request brings. */
export interface Brought {
  /** The present password. */
  password?: string | undefined
  proveMore?: ProveMore | undefined
  /** False for a request that cannot bring a password. It is then refused with the challenge to sign in again. */
  mayType?: boolean
  /** Whether a sign-in of a way that is for some clients only is enough. Absent: it is not, see checkUnrestricted. */
  mayBeRestricted?: boolean
}

/** The actor of an operation. Without `isUnrestricted` it is a program or the command line. */
type Confirmer = Pick<Actor, 'isUnrestricted' | 'isRestricted' | 'auth' | 'holds' | 'signal'>

/**
 * Whether the sign-in of the actor's token stands for a proof. Any user may give `account:write` to their client, and a person who lets an app
 * change their profile has not let it take over the account. Only an administrator gives `account:security`.
 */
const mayStand = ({ holds }: Confirmer): boolean => holds === undefined || holds('account:security')

/** Requires the proof for an operation that a stolen token must not be enough for: a new password or address, the deletion of the account. */
export function createConfirmation (
  { now, checkCurrent, checkEvidence }: Pick<PasswordChecks, 'checkCurrent'> & { now: Clock, checkEvidence: CheckEvidence }
) {
  /**
   * A password that is given is always compared.
   * @returns the evidence, which is to be checked again on the record that a write replaces
   * @throws RestrictedError, ErrParam, ErrLimit, ErrPerm, ErrUnknown with a challenge, and what `proveMore` throws
   */
  return async function confirm (
    record: UserRecord, actor: Confirmer, { password, proveMore, mayType = true, mayBeRestricted = false }: Brought
  ): Promise<Evidence> {
    if (!mayBeRestricted) checkUnrestricted(actor)
    const { auth, isUnrestricted: isOperator = true, signal } = actor
    const typed = password !== undefined ? [await checkCurrent(record, password, toTurn({ user_id: record.id, signal }))] : []
    const more = await proveMore?.(record) ?? []
    const evidence: Evidence = { isOperator, auth: mayStand(actor) ? auth : undefined, proofs: [...typed, ...more], mayType, at: now() }
    await checkEvidence(record, evidence).catch((error: unknown) => {
      throw error instanceof IdentityError && error.code === 'ErrUnknown' && !mayStand(actor) ? scopeError(['account:security']) : error
    })
    return evidence
  }
}

export type Confirm = ReturnType<typeof createConfirmation>
