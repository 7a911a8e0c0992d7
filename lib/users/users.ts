import type { CreateUser, PatchProfile, PatchUser, Profile, User, UserCountQuery, UserItem, UserListQuery } from '../../schemas/user.ts'
import { LIMITS } from '../../schemas/common.ts'
import { type Checks, checkAccount, checkFields, checkMap, checkRoles, checkTimestamp, countCharacters } from '../checks.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import type { Turn } from '../fair-queue.ts'
import { type Page, mapBatches, readPage, toStart } from '../lists/cursor.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import { createReads } from '../lists/reads.ts'
import { checkName } from '../names.ts'
import type { CheckNewPassword } from './password-rules.ts'
import type { Passwords } from './passwords.ts'
import { type Roles, type UserRecord, createUserRecord, isActive } from '../records.ts'
import { type Actor, type RoleNames, toTurn } from '../roles.ts'
import { parseSort } from '../lists/sort.ts'
import type { Attempts, Target } from '../throttling/attempts.ts'
import type { KnownBrowser } from '../throttling/known-browsers.ts'
import { type Change, DuplicateKeyError, type Filter, type Json, type ListQuery, type Store } from '../store/port.ts'
import { type Tokens, invalidToken } from '../tokens/tokens.ts'
import type { Failures } from '../events/failures.ts'
import type { Recorder } from '../events/recorder.ts'
import { listHappenings } from './happenings.ts'
import { findByName, isTaken } from './addresses.ts'
import { createAdministrators } from './administrators.ts'
import { createChangeUser, userNotFound } from './change-user.ts'
import { addressTaken, checkFreeAddress, setAddress } from './give-up-address.ts'
import { createManagerRules } from './manager-rules.ts'
import { showItemOf, showProfile, showUser } from './show-user.ts'

const SORT_KEYS = { account: 'account', created: 'created_at', modified: 'modified_at', verified: 'verified_at', name: 'name' }

/** Checks of the fields that users set themselves. A schema field without a check or a record field does not compile. */
const CHECKS: Checks<Pick<UserRecord, Exclude<keyof PatchProfile['data'], 'password' | 'current_password'>>> = {
  name: (text) => checkName('name', text),
  info: (info) => checkMap('info', info)
}

/**
 * Removes a user, unless the actor's token was revoked. Resolves to false when there is no such user.
 * @throws ErrPerm for the last administrator
 */
export type RemoveUser = (user_id: string, actor?: Pick<Actor, 'confirm' | 'isForced'>) => Promise<boolean>

export interface UserServices {
  store: Store
  now: Clock
  roles: RoleNames
  /** The roles that callers without the admin role may grant and remove. Absent: all but admin and service. */
  managerRoles?: readonly string[] | undefined
  passwords: Passwords
  checkNewPassword: CheckNewPassword
  attempts: Attempts
  tokens: Tokens
  recorder: Recorder
  failures: Pick<Failures, 'recordSignIn' | 'recordConfirmation'>
  /** Receives failures that no caller waits for. */
  onError: (error: unknown) => void
  /** Removes the user with their tokens and links. */
  removeUser: RemoveUser
  /** Called after a user or an administrator has changed the user's password. */
  onPasswordChange?: ((record: UserRecord) => Promise<void>) | undefined
  /** Called after an administrator has set an address, with the mailboxes that the user has given up. */
  onAddressChange?: ((record: UserRecord, former: string[]) => Promise<void>) | undefined
  /** Called after an administrator has said that the user's address is theirs. */
  onAddressVerified?: ((record: UserRecord) => Promise<void>) | undefined
}

/** `account` takes precedence over `contains`. Empty means absent. Accounts are stored lower-cased. */
function toFilter ({ account, contains }: UserCountQuery): Filter {
  if (account) return { equal: { account: account.toLowerCase() } }
  if (contains) return { contains: { account: contains.toLowerCase() } }
  return {}
}

function toListQuery (query: UserListQuery): ListQuery {
  const sort = parseSort(query.sort, SORT_KEYS, 'account:asc')
  return { filter: toFilter(query), sort, ...toStart(query, sort), limit: query.limit ?? 100 }
}

/** User accounts and their rules (docs/api.md). */
export function createUsers ({ store, now, roles: names, managerRoles, passwords, checkNewPassword, attempts, tokens, recorder, failures, onError, removeUser, onPasswordChange, onAddressChange, onAddressVerified }: UserServices) {
  const users = store.collection<UserRecord>('users')
  const { counts, pages } = createReads(store)
  const checkMayPatch = createManagerRules(names, managerRoles)
  const administrators = createAdministrators({ store, now, role: names.admin, onError })
  const changeUser = createChangeUser({ users, now, recorder, administrators, tokens })

  /** The fields that every patch may set. A new password increments the epoch, which revokes all of the user's tokens. */
  async function toChange (owner: UserRecord | null, { password, ...fields }: Omit<PatchProfile['data'], 'current_password'>, turn: Turn): Promise<Change> {
    // A name that is stored already may stay, whatever it is, for callers who send back what they have read.
    const set: Record<string, Json> = checkFields(fields, fields.name === owner?.name ? { ...CHECKS, name: (text) => text } : CHECKS)
    if (password === undefined) return { set }
    if (owner === null) throw userNotFound()
    set.password = await passwords.hash(await checkNewPassword(password, owner), turn)
    return { set, increment: { epoch: 1 } }
  }

  async function patch (id: string, decide: (record: UserRecord) => Change, isForced?: boolean): Promise<UserRecord> {
    let isPassword = false
    const written = await changeUser(id, (record) => {
      const change = decide(record)
      if (Object.keys(change.set ?? {}).length === 0 && (change.unset ?? []).length === 0) {
        throw new IdentityError('ErrParam', 'body: must contain a change')
      }
      isPassword = change.set?.password !== undefined
      return { ...change, happened: listHappenings(record, change) }
    }, { isForced })
    if (isPassword) await onPasswordChange?.(written)
    return written
  }

  async function create (input: CreateUser, extra: { id?: string, roles?: Roles, bootstrap?: string, language?: string | undefined, actor?: Actor } = {}): Promise<{ user_id: string }> {
    const { account: given, password: secret, ...data } = input.data
    const account = checkAccount(given)
    const password = await checkNewPassword(secret, { account })
    const fields = checkFields(data, CHECKS)
    const expired_at = input.expired_at === undefined ? undefined : checkTimestamp('expired_at', input.expired_at)
    const roles = checkRoles(extra.roles ?? {})
    // Avoids a hash of a quarter of a second when the account exists. The unique index decides.
    const exists = () => new IdentityError('USER_EXIST', 'account: a user with this account exists')
    if (await isTaken(users, account)) throw exists()
    const hashed = await passwords.hash(password, extra.actor && toTurn(extra.actor))
    // The caller may have been revoked during the hash. The same applies below.
    await extra.actor?.confirm?.()
    const record = administrators.mark(createUserRecord(now(), {
      id: extra.id,
      account,
      expired_at,
      roles,
      password: hashed,
      name: '',
      info: {},
      ...fields,
      language: extra.language,
      bootstrap: extra.bootstrap
    }))
    try {
      await users.insert({ ...record, ...recorder.attach(null, { type: 'user.created', id: record.id, granted: Object.keys(roles) }) })
    } catch (error) {
      if (error instanceof DuplicateKeyError && (error.field === 'account' || error.field === 'addresses')) throw exists()
      throw error
    }
    return { user_id: record.id }
  }

  /** Unknown accounts need the same store calls and the same hashing as existing ones. */
  async function verifyPassword (typed: string, password: string, turn?: Turn, known?: KnownBrowser): Promise<UserRecord | null> {
    // Longer ones are never stored, so they cannot match.
    if (countCharacters(typed) > LIMITS.account || countCharacters(password) > LIMITS.password) return null
    const record = await findByName(users, typed)
    const name = typed.toLowerCase()
    const compare = async () => {
      const same = await passwords.verify(password, record?.password, turn, name)
      return record !== null && same && isActive(record, toTimestamp(now())) ? record : null
    }
    const holder = record ?? undefined
    // All names of a user share one count, so that a second name allows no more guesses.
    const target: Target = { kind: 'account', name: holder?.id ?? name, holder }
    const isKnown = known !== undefined && known.user_id === holder?.id && known.epoch === holder.epoch
    const found = await (isKnown
      ? runKnown({ kind: 'browser', name: known.browser, holder }, target, compare)
      : attempts.run(target, compare)
    ).catch(recordRefused(() => failures.recordSignIn(holder?.id, name)))
    if (found === null) failures.recordSignIn(holder?.id, name)
    if (found?.password && passwords.isWeak(found.password)) await renewHash(found, password, turn)
    return found
  }

  /** Also records an attempt as a failure when it was refused because of earlier failures. */
  function recordRefused (record: () => void): (error: unknown) => never {
    return (error) => {
      if (error instanceof IdentityError && error.reason !== undefined) record()
      throw error
    }
  }

  /**
   * A known browser has its own count, so that strangers cannot lock its user out. After too many failures it uses the shared
   * count.
   */
  async function runKnown<T> (own: Target, shared: Target, compare: () => Promise<T | null>): Promise<T | null> {
    try {
      return await attempts.run(own, compare)
    } catch (error) {
      if (!(error instanceof IdentityError) || error.reason !== 'closed') throw error
      return await attempts.run(shared, compare)
    }
  }

  /**
   * The counts of a user's password. Confirmations by a signed-in caller have their own count, so that strangers cannot keep the
   * user from setting a new password.
   */
  function toTargets (record: UserRecord): Target[] {
    return (['account', 'user'] as const).map((kind) => ({ kind, name: record.id, holder: record }))
  }

  async function openPassword (record: UserRecord): Promise<void> {
    await Promise.all(toTargets(record).map((target) => attempts.clear(target)))
  }

  /** Best effort: a full hash queue or a failed write must not make the sign-in fail. */
  async function renewHash (record: UserRecord, password: string, turn?: Turn): Promise<void> {
    try {
      const set = { password: await passwords.hash(password, turn) }
      // A concurrent write wins: it may be a new password.
      await users.update(record.id, { set, increment: { revision: 1 } }, { equal: { revision: record.revision } })
    } catch (cause) {
      onError(new Error('the password hash of a user was not renewed', { cause }))
    }
  }

  /** @throws ErrParam unless the password is the user's; it may be omitted with an operator's unrestricted token */
  async function checkCurrent (record: UserRecord, password: string | undefined, turn: Turn, isUnrestricted = true): Promise<void> {
    if (password === undefined) {
      if (isUnrestricted) return
      throw paramError('current_password', 'is required with a new password')
    }
    const compare = async () => await passwords.verify(password, record.password, turn) || null
    const recordFailure = () => failures.recordConfirmation(record.id)
    const same = await attempts.run({ kind: 'user', name: record.id, holder: record }, compare).catch(recordRefused(recordFailure))
    if (same !== null) return
    recordFailure()
    throw paramError('current_password', 'is wrong')
  }

  return {
    /**
     * Creates a user (`POST /user`). `extra` is for bootstrap and the command line.
     * @throws ErrParam, USER_EXIST
     */
    create,

    /** The user, or null. */
    async get (user_id: string): Promise<User | null> {
      const record = await users.get(user_id)
      return record === null ? null : showUser(record)
    },

    /** The user, with the times that `fields` adds as in a list; throws ErrNotFound. */
    async require (user_id: string, { fields }: Pick<UserListQuery, 'fields'> = {}): Promise<UserItem> {
      const record = await users.get(user_id)
      if (record === null) throw userNotFound()
      return showItemOf(fields)(record)
    },

    /** The user with this account, or null. */
    async getByAccount (account: string): Promise<User | null> {
      const record = await users.getBy('account', account.toLowerCase())
      return record === null ? null : showUser(record)
    },

    /** The user's own profile; throws ErrNotFound. */
    async requireProfile (user_id: string): Promise<Profile> {
      const record = await users.get(user_id)
      if (record === null) throw userNotFound()
      return showProfile(record)
    },

    /**
     * Checks a password, with the same work whether or not the account exists, and renews a hash of a lower cost. Failures are
     * counted (lib/throttling/attempts.ts).
     * @returns the user; null for an unknown account, a wrong password, and a disabled or expired user
     * @throws ErrLimit after too many failures
     */
    async verify (account: string, password: string): Promise<User | null> {
      const record = await verifyPassword(account, password)
      return record === null ? null : showUser(record)
    },

    /**
     * Signs in: `verify`, with the epoch that was read before the password was compared. Tokens of the sign-in carry that
     * epoch, so that a concurrent password change revokes them.
     * @param turn shares the wait for a hash by the caller's address, because anyone may try an account
     * @param known the content of the browser's cookie for the account
     * @throws ErrLimit after too many failures
     */
    async signIn (account: string, password: string, turn?: Turn, known?: KnownBrowser): Promise<{ user_id: string, epoch: number } | null> {
      const record = await verifyPassword(account, password, turn, known)
      return record === null ? null : { user_id: record.id, epoch: record.epoch }
    },

    /**
     * Patches the user's own profile (`PATCH /user`), unless the actor's token was revoked. A new password requires the current
     * one, because a stolen token must not be enough to take over the account.
     * @returns the user's epoch after the patch
     * @throws ErrParam, ErrNotFound, ErrUnknown, ErrLimit
     */
    async patchOwn (user_id: string, { data: { current_password, ...data } }: Pick<PatchProfile, 'data'>, actor?: Actor): Promise<{ epoch: number }> {
      const turn = toTurn(actor ?? { user_id })
      const owner = data.password === undefined && data.name === undefined ? null : await users.get(user_id)
      if (owner !== null && data.password !== undefined) await checkCurrent(owner, current_password, turn, actor?.isUnrestricted)
      const change = await toChange(owner, data, turn)
      await actor?.confirm?.()
      const { epoch } = await patch(user_id, (record) => {
        if (actor?.epoch !== undefined && record.epoch !== actor.epoch) throw invalidToken()
        return change
      })
      return { epoch }
    },

    /**
     * Confirms that the actor knows the user's password, before an action that a stolen token must not allow.
     * @throws ErrParam; the password may be omitted with an operator's unrestricted token
     */
    async confirmPassword (actor: Actor, password: string | undefined): Promise<void> {
      const record = await users.get(actor.user_id)
      if (record === null) throw userNotFound()
      await checkCurrent(record, password, toTurn(actor), actor.isUnrestricted)
      await actor.confirm?.()
    },

    /**
     * Patches any user (`PATCH /user/{userId}`).
     * @throws ErrNotFound, ErrPerm, ErrParam, USER_EXIST where another user has verified the address
     */
    async patch (user_id: string, body: PatchUser, actor: Actor): Promise<void> {
      const target = await users.get(user_id)
      if (target === null) throw userNotFound()
      checkMayPatch(target, body, actor)
      const { data = {}, disable } = body
      const { set = {}, increment = {} } = actor.isAdmin ? await toChange(target, data, toTurn(actor)) : {}
      await actor.confirm?.()
      const unset: string[] = []
      if (data.roles !== undefined) set.roles = checkRoles(data.roles as Roles)
      if (data.verified_at !== undefined && actor.isAdmin) {
        set.verified_at = checkTimestamp('verified_at', data.verified_at)
        unset.push('expired_at')
      }
      if (disable === true) {
        set.disabled_at = toTimestamp(now())
        increment.epoch = 1
      } else if (disable === false) unset.push('disabled_at')
      const address = data.email === undefined ? undefined : await checkFreeAddress(users, data.email, user_id)
      let former: string[] = []
      // Checked again on the record that the write replaces, because the target may have become an admin meanwhile.
      const written = await patch(user_id, (record) => {
        checkMayPatch(record, body, actor)
        const given = setAddress(record, { address, verified: data.email_verified }, now)
        former = given.former
        return { set: { ...set, ...given.set }, unset: [...unset, ...given.unset], increment }
      }, actor.isForced).catch((error) => { throw error instanceof DuplicateKeyError && error.field === 'addresses' ? addressTaken(address === undefined ? 'email_verified' : 'email') : error })
      if (address !== undefined) await onAddressChange?.(written, former)
      if (data.email_verified === true) await onAddressVerified?.(written)
      if (disable === false && actor.isAdmin) await openPassword(target)
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
      }, actor.isForced)
      return roles
    },

    /** Deletes the counts of failures after a new password was set. */
    async openNewPassword (user_id: string): Promise<void> {
      const record = await users.get(user_id)
      if (record !== null) await openPassword(record)
    },

    /**
     * Opens a password that was closed after too many failures. Setting a new password has the same effect.
     * @throws ErrNotFound
     */
    async unlock (user_id: string): Promise<void> {
      const record = await users.get(user_id)
      if (record === null) throw userNotFound()
      await openPassword(record)
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

    /** @param actor the caller; absent: the program itself */
    async count (query: UserCountQuery = {}, actor?: Actor): Promise<number> {
      return await counts.run(() => users.count(toFilter(query)), actor && toTurn(actor))
    },

    /**
     * Batches of users. The whole query is checked before the first batch.
     * @throws ErrParam for an invalid sort, or a cursor of another sort
     */
    list (query: UserListQuery = {}): AsyncIterable<UserItem[]> {
      return mapBatches(users.list(toListQuery(query)), showItemOf(query.fields))
    },

    /**
     * The same list as a page, with the cursor of the next one if the limit is at most 100.
     * @throws as `list`
     */
    async page (query: UserListQuery = {}, actor?: Actor): Promise<Page<UserItem>> {
      const { fields } = query
      const listQuery = { ...toListQuery(query), signal: actor?.signal }
      const read = () => readPage(users, listQuery, showItemOf(fields), { renderer: 'users', options: { fields } })
      return await pages.run(read, actor && toTurn(actor))
    }
  }
}

export type Users = ReturnType<typeof createUsers>
