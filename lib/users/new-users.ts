import type { CreateUser } from '../../schemas/user.ts'
import { checkAccount, checkAttributes, checkFields, checkRoles, checkTimestamp } from '../checks.ts'
import type { Clock } from '../clock.ts'
import { IdentityError, paramError } from '../errors.ts'
import { createUserRecord, isAddress } from '../records/user.ts'
import { checkUnrestricted } from '../restricted.ts'
import { type Actor, type Roles, toTurn } from '../roles.ts'
import { proveAddress } from '../user-changes/address-proof.ts'
import { isTaken } from './addresses.ts'
import type { CheckNewPassword } from './password-rules.ts'
import type { Passwords } from './passwords.ts'
import { attributesDenied } from './manager-rules.ts'
import { CHECKS } from './patches.ts'
import type { StoredUsers } from './stored-users.ts'

/** What a request cannot say of a new user. */
export interface NewUserOptions {
  id?: string
  roles?: Roles
  bootstrap?: string
  language?: string | undefined
  /** Whether the address is proved. */
  verified?: boolean
  actor?: Actor
}

const accountExists = (): IdentityError => new IdentityError('USER_EXIST', 'account: a user with this account exists')

interface CreationParts extends Pick<StoredUsers, 'users' | 'insertUser'> {
  passwords: Pick<Passwords, 'hash'>
  checkNewPassword: CheckNewPassword
  now: Clock
}

/** Creates users who have a password. */
export function createCreation ({ users, insertUser, passwords, checkNewPassword, now }: CreationParts) {
  return async function createUser (
    input: CreateUser, { id, roles: granted = {}, bootstrap, language, verified = false, actor }: NewUserOptions = {}
  ): Promise<{ user_id: string }> {
    checkUnrestricted(actor ?? {})
    const { account: typed, password: secret, attributes, ...data } = input.data
    if (attributes !== undefined && actor?.isAdmin === false) throw attributesDenied()
    const account = checkAccount(typed)
    const password = await checkNewPassword(secret, { account })
    const fields = checkFields(data, CHECKS)
    const given = attributes === undefined ? {} : { attributes: checkAttributes(attributes) }
    if (verified && !isAddress(account)) throw paramError('email_verified', 'the account is not an email address')
    const expired_at = input.expired_at === undefined ? undefined : checkTimestamp('expired_at', input.expired_at)
    const roles = checkRoles(granted)
    // Avoids a hash of a quarter of a second when the account exists. The unique index decides.
    if (await isTaken(users, account)) throw accountExists()
    const hashed = await passwords.hash(password, actor && toTurn(actor))
    // The caller may have been revoked during the hash.
    await actor?.confirm?.()
    const proof = verified ? proveAddress(account, 'operator', now()) : {}
    const record = createUserRecord(now(), {
      id,
      account,
      expired_at,
      roles,
      password: hashed,
      operator_password: true,
      name: '',
      info: {},
      ...fields,
      ...given,
      language,
      bootstrap,
      ...proof
    })
    const happened = { type: 'user.created', id: record.id, granted: Object.keys(roles) } as const
    await insertUser(record, verified ? [happened, { type: 'user.verified', id: record.id }] : happened, accountExists)
    return { user_id: record.id }
  }
}
