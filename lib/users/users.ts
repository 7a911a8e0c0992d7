import type { CreateUser, PatchUser, User, UserItem, UserListQuery } from '../../schemas/user.ts'
import { checkAccount, checkFields, checkRoles, checkTimestamp } from '../checks.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Turn } from '../fair-queue.ts'
import type { Notices } from '../notice.ts'
import { type Roles, type UserRecord, createUserRecord, findMailbox, isActive, isAddress } from '../records.ts'
import { type Actor, type RoleNames, toTurn } from '../roles.ts'
import { checkUnrestricted } from '../restricted.ts'
import { DuplicateKeyError, type Store } from '../store/port.ts'
import type { KnownBrowser } from '../throttling/known-browsers.ts'
import { proveAddress } from './address-proof.ts'
import { isTaken } from './addresses.ts'
import { type CheckEvidence, createConfirmation } from './confirm.ts'
import { addressTaken, checkFreeAddress, setAddress } from './give-up-address.ts'
import { createManagerRules } from './manager-rules.ts'
import { createOwnAccount } from './own-account.ts'
import { type PasswordCheckParts, createPasswordChecks } from './password-checks.ts'
import type { CheckNewPassword } from './password-rules.ts'
import { CHECKS, createPatches } from './patches.ts'
import { showItemOf, showUser } from './show-user.ts'
import { type StoredUsers, userNotFound } from './stored-users.ts'
import { createUserLists } from './user-lists.ts'

export interface UserServices extends Omit<PasswordCheckParts, 'users'> {
  store: Store
  stored: StoredUsers
  roles: RoleNames
  /** The roles that callers without the admin role may grant and remove. Absent: all but admin and service. */
  managerRoles?: readonly string[] | undefined
  checkNewPassword: CheckNewPassword
  recorder: Recorder
  checkEvidence: CheckEvidence
  /** Opens the second factors of a user that too many wrong codes have closed. */
  openFactors?: ((record: UserRecord) => Promise<void>) | undefined
  notices: Notices
  /** Removes the links that would verify the address of a user. They are no longer valid. */
  removeLinks: (user_id: string) => Promise<unknown>
}

const showIf = <V>(record: UserRecord | null, show: (record: UserRecord) => V): V | null => record && show(record)

/** User accounts and their rules (docs/api.md). */
export function createUsers ({
  store, stored, managerRoles, checkNewPassword, recorder, openFactors, notices, removeLinks, ...parts
}: UserServices) {
  const { users, requireUser, insertUser, changeUser, removeUser } = stored
  const { now, passwords, checkEvidence, roles: names } = parts
  const patches = createPatches({ changeUser, passwords, checkNewPassword, notices, now })
  const { toChange, patch } = patches
  const checkMayPatch = createManagerRules(names, managerRoles)
  const { verify, checkCurrent, open, succeed } = createPasswordChecks({ ...parts, users })
  const confirm = createConfirmation({ now, checkCurrent, checkEvidence })

  /** An administrator opens what too many failures have closed. */
  async function openAll (record: UserRecord): Promise<void> {
    await open(record)
    await openFactors?.(record)
  }

  async function create (input: CreateUser, extra: { id?: string, roles?: Roles, bootstrap?: string, language?: string | undefined, verified?: boolean, actor?: Actor } = {}): Promise<{ user_id: string }> {
    checkUnrestricted(extra.actor ?? {})
    const { account: given, password: secret, ...data } = input.data
    const account = checkAccount(given)
    const password = await checkNewPassword(secret, { account })
    const fields = checkFields(data, CHECKS)
    if (extra.verified === true && !isAddress(account)) throw paramError('email_verified', 'the account is not an email address')
    const expired_at = input.expired_at === undefined ? undefined : checkTimestamp('expired_at', input.expired_at)
    const roles = checkRoles(extra.roles ?? {})
    // Avoids a hash of a quarter of a second when the account exists. The unique index decides.
    const exists = () => new IdentityError('USER_EXIST', 'account: a user with this account exists')
    if (await isTaken(users, account)) throw exists()
    const hashed = await passwords.hash(password, extra.actor && toTurn(extra.actor))
    // The caller may have been revoked during the hash. The same applies below.
    await extra.actor?.confirm?.()
    const record = createUserRecord(now(), {
      id: extra.id,
      account,
      expired_at,
      roles,
      password: hashed,
      operator_password: true,
      name: '',
      info: {},
      ...fields,
      language: extra.language,
      bootstrap: extra.bootstrap,
      ...(extra.verified === true && proveAddress(account, 'operator', now()))
    })
    const verified = extra.verified === true ? [{ type: 'user.verified', id: record.id } as const] : []
    await insertUser(record, [{ type: 'user.created', id: record.id, granted: Object.keys(roles) }, ...verified], exists)
    return { user_id: record.id }
  }

  return {
    /**
     * Creates a user (`POST /user`). `extra` is for bootstrap and the command line.
     * @throws ErrParam, USER_EXIST
     */
    create,

    /** The user, or null. */
    async get (user_id: string): Promise<User | null> {
      return showIf(await users.get(user_id), showUser)
    },

    /** The user, with the times that `fields` adds as in a list; throws ErrNotFound. */
    async require (user_id: string, { fields }: Pick<UserListQuery, 'fields'> = {}): Promise<UserItem> {
      return showItemOf(fields)(await requireUser(user_id))
    },

    /** The user with this account, or null. */
    async getByAccount (account: string): Promise<User | null> {
      return showIf(await users.getBy('account', account.toLowerCase()), showUser)
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

    /**
     * Ends the counts of failures at the user's password, after a sign-in of several steps.
     * @param known the content of the browser's cookie for the account
     */
    succeed,

    /**
     * Patches any user (`PATCH /user/{userId}`).
     * @throws ErrNotFound, ErrPerm, ErrParam, USER_EXIST where another user has verified the address
     */
    async patch (user_id: string, body: PatchUser, actor: Actor): Promise<void> {
      const target = await requireUser(user_id)
      checkMayPatch(target, body, actor)
      const { data = {}, disable } = body
      // Who reads the mailbox sets a password by a mailed link.
      if (data.password !== undefined || data.email !== undefined || data.email_verified !== undefined) checkUnrestricted(actor)
      const { set = {}, increment = {} } = actor.isAdmin ? await toChange(target, data, toTurn(actor)) : {}
      await actor.confirm?.()
      const unset: string[] = []
      if (set.password !== undefined) set.operator_password = true
      if (data.roles !== undefined) set.roles = checkRoles(data.roles)
      if (data.verified_at !== undefined && actor.isAdmin) {
        set.verified_at = checkTimestamp('verified_at', data.verified_at)
        unset.push('expired_at')
      }
      if (disable === true) {
        set.disabled_at = toTimestamp(now())
        increment.epoch = 1
      } else if (disable === false) unset.push('disabled_at')
      const address = data.email === undefined ? undefined : await checkFreeAddress(users, data.email, user_id)
      let isProved = false
      // Checked again on the record that the write replaces, because the target may have become an admin meanwhile.
      await patch(user_id, async (record) => {
        checkMayPatch(record, body, actor)
        const given = setAddress(record, { address, verified: data.email_verified }, now)
        isProved = 'email_verified_at' in given.set
        const change = { set: { ...set, ...given.set }, unset: [...unset, ...given.unset], increment }
        if (data.email_verified === true && Object.keys(change.set).length + change.unset.length === 0) return null
        const isTold = isProved && isActive(record, toTimestamp(now()))
        const mails = [
          ...await Promise.all(given.former.map(async (to) => await notices.write('address-given-up', record, { to }))),
          isTold ? await notices.write('address-verified', record, { to: address ?? findMailbox(record) }) : []
        ]
        return { ...change, notices: mails.flat() }
      }, actor).catch((error) => {
        const isHeld = error instanceof DuplicateKeyError && error.field === 'addresses'
        throw isHeld ? addressTaken(address === undefined ? 'email_verified' : 'email') : error
      })
      if (isProved) await removeLinks(user_id).catch(parts.onError)
      if (disable === false && actor.isAdmin) await openAll(target)
    },

    /**
     * Changes the roles of a user.
     * @param change computes the new roles from the current ones. It is called again after a concurrent write
     * @returns the new roles
     * @throws ErrNotFound, ErrPerm, ErrParam
     */
    async changeRoles (user_id: string, change: (held: Roles) => Roles, actor: Actor): Promise<Roles> {
      const { roles } = await patch(user_id, (record) => {
        const roles = checkRoles(change(record.roles))
        checkMayPatch(record, { data: { roles } }, actor)
        return { set: { roles } }
      }, actor)
      return roles
    },

    /** Deletes the counts of failures after a new password was set. */
    async openNewPassword (user_id: string): Promise<void> {
      const record = await users.get(user_id)
      if (record !== null) await open(record)
    },

    /**
     * Opens a password that was closed after too many failures, as a new password does, and the second factors, which no new password opens.
     * @throws ErrNotFound
     */
    async unlock (user_id: string): Promise<void> {
      await openAll(await requireUser(user_id))
      await recorder.insert({ type: 'user.unlocked', id: user_id })
    },

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

    ...createOwnAccount({ ...patches, requireUser, confirm, checkEvidence }),
    ...createUserLists(store)
  }
}

export type Users = ReturnType<typeof createUsers>
