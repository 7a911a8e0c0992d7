import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import type { ClientRecord } from '../records/client.ts'
import type { GrantRecord } from '../records/token.ts'
import { scan } from '../store/scan.ts'

const DAY = 24 * 60 * 60_000

/** Milliseconds without use after which a client without a grant is removed. */
const UNUSED = 90 * DAY

class InUse extends Error {}

/**
 * Removes a client with all that belongs to it.
 * @param permit called with the very record that is removed. An error from it prevents the removal
 * @returns false when the client was gone
 */
export type RemoveUnused = (record: ClientRecord, permit: (record: object) => Promise<void>) => Promise<boolean>

/** Removes the clients of documents that are no longer used. A blocked one stays, and so does one with a valid grant, whatever its age. */
export function createSweep ({ store, now, removeUnused }: Pick<Base, 'store' | 'now'> & { removeUnused: RemoveUnused }) {
  const clients = store.collection<ClientRecord>('clients')
  const grants = store.collection<GrantRecord>('grants')

  async function hasGrant (client_id: string): Promise<boolean> {
    const time = toTimestamp(now())
    for await (const batch of scan(grants, { equal: { client_id } })) if (batch.some(({ expired_at }) => expired_at > time)) return true
    return false
  }

  const isUnused = ({ document, disabled_at }: ClientRecord) =>
    document !== undefined && disabled_at === undefined && Date.parse(document.used_at) + UNUSED <= now()

  async function remove (found: ClientRecord): Promise<boolean> {
    try {
      // Checked on the very version that is deleted: a decision meanwhile makes another one.
      return await removeUnused(found, async (record) => { if (!isUnused(record as ClientRecord) || await hasGrant(found.id)) throw new InUse() })
    } catch (error) {
      if (error instanceof InUse) return false
      throw error
    }
  }

  /** Resolves to the number of removed clients. */
  return async function sweep (): Promise<number> {
    let count = 0
    for await (const batch of scan(clients, { absent: ['userId'] })) {
      for (const record of batch) if (isUnused(record) && await remove(record)) count++
    }
    return count
  }
}
