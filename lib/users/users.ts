import type { Opening } from '../../schemas/unlock.ts'
import type { User, UserItem, UserListQuery } from '../../schemas/user.ts'
import type { Base } from '../base.ts'
import { permError } from '../errors.ts'
import type { AccountLimits } from '../throttling/account-limits.ts'
import type { Failures } from '../events/failures.ts'
import type { Turn } from '../fair-queue.ts'
import type { UserRecord } from '../records/user.ts'
import type { Actor } from '../roles.ts'
import type { KnownBrowser } from '../throttling/known-browsers.ts'
import { listNames } from './addresses.ts'
import { type CheckEvidence, createConfirmation } from './confirm.ts'
import { createLimitedAttempts } from './limited-attempts.ts'
import { type ManagementParts, createManagement } from './managed-users.ts'
import { createCreation } from './new-users.ts'
import { createOwnAccount } from './own-account.ts'
import { type PasswordCheckParts, createPasswordChecks } from './password-checks.ts'
import type { CheckNewPassword } from './password-rules.ts'
import { createPatches } from './patches.ts'
import { showItemOf, showUser } from './show-user.ts'
import { createPeople } from './people.ts'
import type { StoredUsers } from './stored-users.ts'
import { createUnlock } from './unlock.ts'
import { userNotFound } from '../user-changes/user-changes.ts'
import { createUserLists } from './user-lists.ts'

export interface UserServices extends Base, Omit<PasswordCheckParts, 'users' | 'failures'>, ManagementParts {
  failures: Pick<Failures, 'recordSignIn' | 'recordConfirmation' | 'defer'>
  stored: StoredUsers
  checkNewPassword: CheckNewPassword
  checkEvidence: CheckEvidence
  /** Opens the second factors of a user that too many wrong codes have closed. */
  openFactors?: ((record: UserRecord) => Promise<Opening[]>) | undefined
  limits: Pick<AccountLimits, 'open'>
}

const showIf = <V>(record: UserRecord | null, show: (record: UserRecord) => V): V | null => record && show(record)

/** User accounts and their rules (docs/api.md). */
export function createUsers ({ stored, ...parts }: UserServices) {
  const { users, requireUser, removeUser } = stored
  const { checkNewPassword, checkEvidence, openFactors } = parts
  const patches = createPatches({ ...parts, changeUser: stored.changeUser })
  const { verify, checkCurrent, open, succeed } = createPasswordChecks({ ...parts, users })
  const confirm = createConfirmation({ ...parts, checkCurrent })

  /** Opens what too many failures have closed. */
  const openAll = async (record: UserRecord): Promise<Opening[]> => [...await open(record), ...await openFactors?.(record) ?? []]

  const people = createPeople(parts)

  return {
    /**
     * Creates a user (`POST /user`). The options are for bootstrap and the command line.
     * @throws ErrParam, USER_EXIST
     */
    create: createCreation({ ...parts, ...stored }),

    /** The user, or null. */
    async get (user_id: string): Promise<User | null> {
      return showIf(await users.get(user_id), showUser)
    },

    /** The user, with the times that `fields` adds as in a list; throws ErrNotFound. */
    async require (user_id: string, { fields }: Pick<UserListQuery, 'fields'> = {}): Promise<UserItem> {
      return showItemOf(fields)(await requireUser(user_id))
    },

    /**
     * The same for a caller who may read this person (lib/users/people.ts).
     * @throws ErrNotFound, ErrPerm
     */
    async read (user_id: string, actor: Actor, { fields }: Pick<UserListQuery, 'fields'> = {}): Promise<UserItem> {
      return showItemOf(fields)(await people.requireReadable(user_id, actor))
    },

    /** The user with this account, or null. */
    async getByAccount (account: string): Promise<User | null> {
      return showIf(await users.getBy('account', account.toLowerCase()), showUser)
    },

    /** The names by which a user signs in. None without such a user. */
    async listNames (user_id: string): Promise<string[]> {
      return showIf(await users.get(user_id), listNames) ?? []
    },

    /**
     * Checks a password, with the same work whether or not the account exists, and renews a hash of a lower cost. Failures are
     * counted (lib/throttling/attempts.ts).
     * @returns the user; null for an unknown account, a wrong password, and a disabled or expired user
     * @throws ErrLimit after too many failures
     */
    async verify (account: string, password: string): Promise<User | null> {
      return showIf(await verify(account, password), showUser)
    },

    /**
     * Signs in: `verify`, with the epoch that was read before the password was compared. Tokens of the sign-in carry that
     * epoch, so that a concurrent password change revokes them.
     * @param turn shares the wait for a hash by the caller's address, because anyone may try an account
     * @param known the content of the browser's cookie for the account
     * @throws ErrLimit after too many failures
     */
    async signIn (account: string, password: string, turn?: Turn, known?: KnownBrowser): Promise<{ user_id: string, epoch: number } | null> {
      // Who knows the password alone must not end the count of failures: further steps may follow.
      const found = await verify(account, password, turn, known, ({ ways }) => ways === undefined)
      return showIf(found, ({ id: user_id, epoch }) => ({ user_id, epoch }))
    },

    /** Records an attempt to sign in that a limit a minute has refused. */
    recordLimited: createLimitedAttempts({ ...parts, users }),

    /**
     * Ends the counts of failures at the user's password, after a sign-in of several steps.
     * @param known the content of the browser's cookie for the account
     */
    succeed,

    /** Deletes the counts of failures after a new password was set. */
    async openNewPassword (user_id: string): Promise<void> {
      const record = await users.get(user_id)
      if (record !== null) await open(record)
    },

    /** Which people a caller may read and help. */
    people,

    /**
     * Opens a password that was closed after too many failures, as a new password does, and the second factors, which no new password opens
     * (lib/users/unlock.ts).
     */
    unlock: createUnlock({ ...parts, changeUser: stored.changeUser, people, openAll }),

    /**
     * Checks a new password for this user (lib/users/password-rules.ts).
     * @returns the password
     * @throws ErrParam with a `reason`
     */
    checkNewPassword,

    /**
     * Removes a user with their sessions, codes, tokens and links. Their clients are kept.
     * @throws ErrPerm for the actor's own account and for the last administrator, ErrNotFound
     */
    async remove (user_id: string, actor: Actor): Promise<void> {
      if (actor.user_id === user_id) throw permError('userId', 'users cannot delete themselves')
      if (!await removeUser(user_id, actor)) throw userNotFound()
    },

    ...createManagement({ ...parts, ...patches, users, requireUser, openAll }),
    ...createOwnAccount({ ...patches, requireUser, confirm, checkEvidence }),
    ...createUserLists(parts.store)
  }
}

export type Users = ReturnType<typeof createUsers>
