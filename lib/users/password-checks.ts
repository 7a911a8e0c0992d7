import { LIMITS } from '../../schemas/common.ts'
import { countCharacters } from '../checks.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError, paramError } from '../errors.ts'
import type { Failures } from '../events/failures.ts'
import type { Turn } from '../fair-queue.ts'
import type { Proof } from '../proofs.ts'
import { toTurn } from '../roles.ts'
import { withPasswordScheme } from '../change-user.ts'
import { type UserRecord, isActive } from '../records.ts'
import type { Collection } from '../store/port.ts'
import type { Attempts, Target } from '../throttling/attempts.ts'
import type { KnownBrowser } from '../throttling/known-browsers.ts'
import { PASSWORD } from '../way.ts'
import { findByName } from './addresses.ts'
import type { Passwords } from './passwords.ts'

export interface PasswordCheckParts {
  users: Collection<UserRecord>
  now: Clock
  passwords: Passwords
  attempts: Attempts
  failures: Pick<Failures, 'recordSignIn' | 'recordConfirmation'>
  /**
   * Asks the former system about somebody who is not here, or marked, and takes as long for anybody else. Absent: there is none.
   * @returns the person who was brought in
   */
  askFormer?: ((account: string, password: string, record: UserRecord | null, turn?: Turn) => Promise<UserRecord | null>) | undefined
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
}

/** Also records an attempt as a failure when it was refused because of earlier failures. */
function recordRefused (record: () => void): (error: unknown) => never {
  return (error) => {
    if (error instanceof IdentityError && error.reason !== undefined) record()
    throw error
  }
}

/** Compares typed passwords with those of users. Failures are counted (lib/throttling/attempts.ts). */
export function createPasswordChecks ({ users, now, passwords, attempts, failures, askFormer, onError }: PasswordCheckParts) {
  /**
   * A known browser has its own count, so that strangers cannot lock its user out. After too many failures it uses the shared
   * count, and a success there opens its own again.
   */
  async function runKnown<T> (run: (target: Target) => Promise<T | null>, own: Target, shared: Target, isLast: (found: T) => boolean): Promise<T | null> {
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
      onError(new Error('the password hash of a user was not renewed', { cause }))
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
      const compare = async () => {
        const same = await passwords.verify(password, record?.password, own, name)
        if (record !== null && same && isActive(record, toTimestamp(now()))) return record
        return await askFormer?.(name, password, record, own) ?? null
      }
      // All names of a user share one count, so that a second name allows no more guesses.
      const target: Target = { kind: 'account', name: holder?.id ?? name, holder }
      const run = async (of: Target) => await attempts.run(of, compare, turn?.signal, { isLast })
      const found = await (isKnown ? runKnown(run, { kind: 'browser', name: known.browser, holder }, target, isLast) : run(target))
        .catch(recordRefused(() => failures.recordSignIn(holder?.id, name, isKnown)))
      if (found === null) failures.recordSignIn(holder?.id, name, isKnown)
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
      const recordFailure = () => failures.recordConfirmation(record.id)
      const target: Target = { kind: 'user', name: record.id, holder: record }
      const same = await attempts.run(target, compare, turn.signal).catch(recordRefused(recordFailure))
      if (same !== null) return { way: PASSWORD, kind: 'password', at: toTimestamp(now()) }
      recordFailure()
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
     */
    async open (record: UserRecord): Promise<void> {
      await Promise.all((['account', 'user'] as const).map((kind) => attempts.clear({ kind, name: record.id, holder: record })))
    }
  }
}

export type PasswordChecks = ReturnType<typeof createPasswordChecks>
