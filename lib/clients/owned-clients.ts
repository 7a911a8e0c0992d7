import { unlessGone } from '../change-record.ts'
import { IdentityError } from '../errors.ts'
import type { Recorder } from '../events/recorder.ts'
import type { ClientRecord } from '../records.ts'
import type { Actor } from '../roles.ts'
import type { Change, Collection } from '../store/port.ts'
import { scan } from '../store/scan.ts'
import type { Decision } from './happenings.ts'
import { isVouchedFor } from './kinds.ts'
import { filterOwned, isOwnedBy } from './owner.ts'
import { isConfidential } from './token-auth.ts'

interface OwnedParts {
  clients: Collection<ClientRecord>
  /** @throws ErrPerm for a client that the operator vouches for, unless the actor is an admin */
  checkMayManage (record: ClientRecord, actor: Actor): void
  /** Changes a client that the actor may see. Nothing is written for null. */
  change (clientId: string, actor: Actor, decide: (record: ClientRecord) => Decision | null): Promise<ClientRecord>
  renewCredentials (record: ClientRecord): Change
  /**
   * @param permit throws unless the client may be removed as it is by then
   * @returns false when the client was gone
   */
  remove (record: ClientRecord, permit: Parameters<Recorder['remove']>[3]): Promise<boolean>
}

const notFound = () => new IdentityError('ErrNotFound', 'clientId: no such client')

/** What happens to all clients of a user at once. */
export function createOwnedClients ({ clients, checkMayManage, change, renewCredentials, remove }: OwnedParts) {
  return {
    /**
     * Replaces the readable secrets of all confidential clients of a user, and removes their named ones, which others may have added.
     * This revokes their tokens. Clients that the operator vouches for keep theirs unless the actor is an admin.
     */
    async replaceSecrets (userId: string, actor: Actor): Promise<void> {
      for await (const batch of scan(clients, filterOwned(userId))) {
        for (const { id } of batch) {
          await unlessGone(change(id, actor, (record) => {
            const isKept = !isConfidential(record) || !isOwnedBy(record, userId) || (!actor.isAdmin && isVouchedFor(record))
            return isKept ? null : { ...renewCredentials(record), increment: { epoch: 1 }, changed: [] }
          }))
        }
      }
    },

    /** Counts the enabled clients for which only this user stands. They stop when the user is disabled, expired or deleted. */
    async countDependent (userId: string): Promise<number> {
      let count = 0
      for await (const batch of scan(clients, filterOwned(userId))) {
        count += batch.filter((record) => record.disabled_at === undefined && !isVouchedFor(record)).length
      }
      return count
    },

    /**
     * Removes all of a user's clients, even the client of the caller's own token.
     * @returns how many
     * @throws ErrPerm when the operator vouches for one and the actor is not an admin: before any client is removed, unless that comes meanwhile
     */
    async removeOwned (userId: string, actor: Actor): Promise<number> {
      let removed = 0
      if (!actor.isAdmin) {
        for await (const batch of scan(clients, filterOwned(userId))) for (const record of batch) checkMayManage(record, actor)
      }
      for await (const batch of scan(clients, filterOwned(userId))) {
        await Promise.all(batch.map(async (record) => {
          // Another owner may have got it meanwhile, or the operator may vouch for it by now.
          const isRemoved = await unlessGone(remove(record, async (current) => {
            if (!isOwnedBy(current as ClientRecord, userId)) throw notFound()
            checkMayManage(current as ClientRecord, actor)
          }))
          if (isRemoved === true) removed++
        }))
      }
      return removed
    }
  }
}
