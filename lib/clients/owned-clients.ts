import { unlessGone } from '../change-record.ts'
import { type ClientRecord, isVouchedFor } from '../records/client.ts'
import type { Actor } from '../roles.ts'
import { scan } from '../store/scan.ts'
import { filterOwned, isOwnedBy } from './owner.ts'
import { type PatchParts, renewCredentials } from './patches.ts'
import { type StoredClients, checkMayManage, notFound } from './stored-clients.ts'
import { isConfidential } from './token-auth.ts'

type OwnedParts = Pick<StoredClients, 'clients' | 'change' | 'remove'> & Pick<PatchParts, 'createSecret'>

/** What happens to all clients of a user at once. */
export function createOwnedClients ({ clients, change, remove, createSecret }: OwnedParts) {
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
            return isKept ? null : { ...renewCredentials(record, createSecret), increment: { epoch: 1 }, changed: [] }
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
