import { LIMITS } from '../../schemas/common.ts'
import type { Reason } from '../../schemas/reason.ts'
import type { Opening } from '../../schemas/unlock.ts'
import type { Base } from '../base.ts'
import { countCharacters } from '../checks.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError, paramError } from '../errors.ts'
import type { Failures } from '../events/failures.ts'
import type { Turn } from '../fair-queue.ts'
import type { Proof } from '../proofs.ts'
import { toTurn } from '../roles.ts'
import { withPasswordScheme } from '../user-changes/user-changes.ts'
import { type UserRecord, findInactive, hasFormerPassword, isActive } from '../records/user.ts'
import type { Collection } from '../store/port.ts'
import { type Attempts, type Target, findCountReason, toOpening } from '../throttling/attempts.ts'
import type { KnownBrowser } from '../throttling/known-browsers.ts'
import { PASSWORD } from '../way.ts'
import { findByName } from './addresses.ts'
import type { Passwords } from './passwords.ts'

export interface PasswordCheckParts extends Pick<Base, 'now' | 'report'> {
  users: Collection<UserRecord>
  passwords: Passwords
  attempts: Attempts
  failures: Pick<Failures, 'recordSignIn' | 'recordConfirmation'>
  /**
   * Asks the former system about somebody who is not here, or marked, and takes as long for anybody else. Absent: there is none.
   * @returns the person who was brought in; `unavailable` where it could not be asked
   */
  askFormer?: ((account: string, password: string, record: UserRecord | null, turn?: Turn) => Promise<UserRecord | 'unavailable' | null>) | undefined
}

/** Also records an attempt as a failure when it was refused because of earlier failures. */
function recordRefused (record: (reason: Reason) => void): (error: unknown) => never {
  return (error) => {
    const reason = findCountReason(error)
    if (reason !== undefined) record(reason)
    throw error
  }
}

/** The method that was tried. */
const METHOD = { kind: PASSWORD, id: PASSWORD } as const

/** Why a password was refused. @param isSame it is that of the record */
function explain (record: UserRecord | null, isSame: boolean, time: string): Reason {
  if (record === null) return 'no_account'
  const { password, invited_at, imported_lazy, ways = {} } = record
  const inactive = findInactive(record, time)
  if (inactive !== undefined && (isSame || !password)) return inactive
  if (password || imported_lazy === true) return 'wrong_password'
  if (invited_at !== undefined) return 'invitation_open'
  return Object.keys(ways).length > 0 ? 'wrong_password' : 'no_method'
}

/** Compares typed passwords with those of users. Failures are counted (lib/throttling/attempts.ts). */
export function createPasswordChecks ({ users, now, passwords, attempts, failures, askFormer, report }: PasswordCheckParts) {
  /**
   * A known browser has its own count, so that strangers cannot lock its user out. After too many failures it uses the shared
   * count, and a success there opens its own again.
   */
  async function runKnown<T> (
    run: (target: Target) => Promise<T | null>, own: Target, shared: Target, isLast: (found: T) => boolean
  ): Promise<T | null> {
    try {
      return await run(own)
    } catch (error) {
      if (!(error instanceof IdentityError) || error.reason !== 'closed') throw error
      const found = await run(shared)
      if (found !== null && isLast(found)) await attempts.clear(own)
      return found
    }
  }

  /** Best effort: a full hash queue or a failed write must not make the sign-in fail. */
  async function renewHash (record: UserRecord, password: string, turn?: Turn): Promise<void> {
    try {
      const set = { password: await passwords.hash(password, turn) }
      // A concurrent write wins: it may be a new password.
      await users.update(record.id, withPasswordScheme(record, { set, increment: { revision: 1 } }), { equal: { revision: record.revision } })
    } catch (cause) {
      report('users')(new Error('the password hash of a user was not renewed', { cause }))
    }
  }

  return {
    /**
     * Unknown accounts need the same store calls and the same hashing as existing ones.
     * @param isLast whether a right password ends the count of failures. Absent: it does
     */
    async verify (
      typed: string, password: string, turn?: Turn, known?: KnownBrowser, isLast: (record: UserRecord) => boolean = () => true
    ): Promise<UserRecord | null> {
      // Longer ones are never stored, so they cannot match.
      if (countCharacters(typed) > LIMITS.account || countCharacters(password) > LIMITS.password) return null
      const record = await findByName(users, typed)
      const name = typed.toLowerCase()
      const holder = record ?? undefined
      const isKnown = known !== undefined && known.user_id === holder?.id && known.epoch === holder.epoch
      const own = isKnown ? toTurn({ user_id: known.user_id, signal: turn?.signal }) : turn
      let reason: Reason = 'no_account'
      let isRight = false
      const recordFailure = (why: Reason) => failures.recordSignIn(holder?.id, name, { reason: why, method: METHOD, isKnown: isKnown || isRight })
      const compare = async () => {
        const same = await passwords.verify(password, record?.password, own, name)
        if (record !== null && same && isActive(record, toTimestamp(now()))) return record
        reason = explain(record, same, toTimestamp(now()))
        isRight = record !== null && same
        const isWaiting = record !== null && hasFormerPassword(record) && isActive(record, toTimestamp(now()))
        const brought = askFormer === undefined && isWaiting ? 'unavailable' : await askFormer?.(name, password, record, own) ?? null
        if (brought !== 'unavailable') return brought
        reason = 'former_unavailable'
        return null
      }
      // All names of a user share one count, so that a second name allows no more guesses.
      const target: Target = { kind: 'account', name: holder?.id ?? name, holder }
      const run = async (of: Target) => await attempts.run(of, compare, turn?.signal, { isLast })
      const found = await (isKnown ? runKnown(run, { kind: 'browser', name: known.browser, holder }, target, isLast) : run(target))
        .catch(recordRefused((refused) => recordFailure(holder === undefined ? 'no_account' : refused)))
      if (found === null) recordFailure(reason)
      if (found?.password && passwords.isWeak(found.password)) await renewHash(found, password, turn)
      return found
    },

    /**
     * Compares the password that a signed-in user has typed again.
     * @returns the proof
     * @throws ErrParam unless it is theirs, ErrLimit
     */
    async checkCurrent (record: UserRecord, password: string, turn: Turn): Promise<Proof> {
      const compare = async () => await passwords.verify(password, record.password, turn) || null
      const recordFailure = (reason: Reason) => failures.recordConfirmation(record.id, reason)
      const target: Target = { kind: 'user', name: record.id, holder: record }
      const same = await attempts.run(target, compare, turn.signal).catch(recordRefused(recordFailure))
      if (same !== null) return { way: PASSWORD, kind: 'password', at: toTimestamp(now()) }
      recordFailure('wrong_password')
      throw paramError('current_password', 'is wrong')
    },

    /** Ends the counts of failed sign-ins with this password, after a sign-in whose password did not end them. */
    async succeed ({ user_id: id, epoch }: { user_id: string, epoch: number }, known?: KnownBrowser): Promise<void> {
      const holder = { id, epoch }
      await attempts.clear({ kind: 'account', name: id, holder })
      if (known !== undefined) await attempts.clear({ kind: 'browser', name: known.browser, holder })
    },

    /**
     * Deletes the counts of a user's password. Confirmations by a signed-in caller have their own count, so that strangers cannot keep
     * the user from setting a new password.
     * @returns what they were before
     */
    async open (record: UserRecord): Promise<Opening[]> {
      const target = (kind: Target['kind']): Target => ({ kind, name: record.id, holder: record })
      return await Promise.all([
        attempts.open(target('account')).then((was) => toOpening('password', was)),
        attempts.open(target('user')).then((was) => toOpening('confirmation', was))
      ])
    }
  }
}

export type PasswordChecks = ReturnType<typeof createPasswordChecks>
