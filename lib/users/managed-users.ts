import type { PatchUser } from '../../schemas/user.ts'
import type { Base } from '../base.ts'
import { checkAttributes, checkRoles, checkTimestamp } from '../checks.ts'
import { toTimestamp } from '../clock.ts'
import type { Notice, Notices } from '../notice.ts'
import { type UserChange, type UserField, type UserRecord, findMailbox, isActive } from '../records/user.ts'
import { checkUnrestricted } from '../restricted.ts'
import { type Actor, type Roles, toTurn } from '../roles.ts'
import { DuplicateKeyError } from '../store/port.ts'
import { type AddressSet, addressTaken, checkFreeAddress, setAddress } from './give-up-address.ts'
import { createManagerRules } from './manager-rules.ts'
import type { Patches } from './patches.ts'
import { checkUserMatch } from './show-user.ts'
import type { StoredUsers } from './stored-users.ts'

export interface ManagementParts extends Pick<Base, 'now' | 'roles' | 'report'> {
  /** The roles that callers without the admin role may grant and remove. Absent: all but those of admins, services and support. */
  managerRoles?: readonly string[] | undefined
  notices: Notices
  /** Removes the links that would verify the address of a user. They are no longer valid. */
  removeLinks: (user_id: string) => Promise<unknown>
}

/** What administrators and managers change of any user. */
export function createManagement ({
  users, requireUser, toChange, patch, openAll, managerRoles, notices, removeLinks, now, roles: names, report
}: ManagementParts & Patches & Pick<StoredUsers, 'users' | 'requireUser'> & { openAll: (record: UserRecord) => Promise<unknown> }) {
  const checkMayPatch = createManagerRules(names, managerRoles)

  /** What a body changes, but for the address. */
  async function toFields (
    target: UserRecord, { data = {}, disable }: PatchUser, actor: Actor
  ): Promise<Required<Pick<UserChange, 'unset' | 'increment'>> & { set: Partial<UserRecord> }> {
    const { set = {}, increment = {} } = actor.isAdmin ? await toChange(target, data, toTurn(actor)) : {}
    // The caller may have been revoked during the hash.
    await actor.confirm?.()
    const unset: UserField[] = []
    if (set.password !== undefined) set.operator_password = true
    if (data.attributes !== undefined) set.attributes = checkAttributes(data.attributes)
    if (data.roles !== undefined) set.roles = checkRoles(data.roles)
    if (data.verified_at !== undefined && actor.isAdmin) {
      set.verified_at = checkTimestamp('verified_at', data.verified_at)
      unset.push('expired_at')
    }
    if (disable === true) {
      set.disabled_at = toTimestamp(now())
      increment.epoch = 1
    } else if (disable === false) unset.push('disabled_at')
    return { set, unset, increment }
  }

  /** The mails about the address of a user. They go to each mailbox that the user gives up, and to the one that is now verified. */
  async function writeMails (record: UserRecord, { set, givenUp }: AddressSet): Promise<Notice[]> {
    const isTold = set.email_verified_at !== undefined && isActive(record, toTimestamp(now()))
    const mails = [
      ...await Promise.all(givenUp.map(async (to) => await notices.write('address-given-up', record, { to }))),
      isTold ? await notices.write('address-verified', record, { to: set.email ?? findMailbox(record) }) : []
    ]
    return mails.flat()
  }

  return {
    /**
     * Patches any user (`PATCH /user/{userId}`).
     * @param ifMatch refuses what others have changed since the caller read it
     * @throws ErrNotFound, ErrPerm, ErrParam, USER_EXIST where another user has verified the address
     */
    async patch (user_id: string, body: PatchUser, actor: Actor, ifMatch?: string): Promise<void> {
      const target = await requireUser(user_id)
      checkMayPatch(target, body, actor)
      checkUserMatch(ifMatch, target, body.data)
      const { data: { password, email, email_verified: verified } = {}, disable } = body
      // Who reads the mailbox sets a password by a mailed link.
      if (password !== undefined || email !== undefined || verified !== undefined) checkUnrestricted(actor)
      const { set, unset, increment } = await toFields(target, body, actor)
      const address = email === undefined ? undefined : await checkFreeAddress(users, email, user_id)
      let isProved = false
      // A hash takes so long that the user is read again after it.
      const known = password === undefined ? target : undefined
      // Checked again on the record that the write replaces, because the target may have become an admin meanwhile.
      await patch(user_id, async (record) => {
        checkMayPatch(record, body, actor)
        checkUserMatch(ifMatch, record, body.data)
        const given = setAddress(record, { address, verified }, now)
        isProved = given.set.email_verified_at !== undefined
        const change = { set: { ...set, ...given.set }, unset: [...unset, ...given.unset], increment }
        if (verified === true && Object.keys(change.set).length + change.unset.length === 0) return null
        return { ...change, notices: await writeMails(record, given) }
      }, { isForced: actor.isForced, known }).catch((error) => {
        const isHeld = error instanceof DuplicateKeyError && error.field === 'addresses'
        throw isHeld ? addressTaken(address === undefined ? 'email_verified' : 'email') : error
      })
      if (isProved) await removeLinks(user_id).catch(report('users'))
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
    }
  }
}
