import { createHmac, randomBytes } from 'node:crypto'
import { type Clock, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { readStoredKey } from '../crypto/stored-key.ts'
import { paramError } from '../errors.ts'
import { type UserRecord, isAddress } from '../records.ts'
import type { Document, Store } from '../store/port.ts'
import { isReserved } from './reserved-names.ts'

const DAY = 24 * 60 * 60_000

/** The document of the key, in the collection `keys`. It is sealed for itself, so that a rotation of the secret key changes no hash. */
const KEY_ID = 'names'
const KEY_BYTES = 32

/** The name of somebody who was deleted. The id is an HMAC of it. */
interface FormerNameRecord extends Document {
  expired_at: string
}

/**
 * Which names a stranger may choose: apps may know people by their name, so that of a deleted person is not free as long as events tell
 * of them. Only its hash is stored.
 * @param days for which events are kept
 * @param roles the names of roles that the configuration knows
 */
export function createFormerNames ({ store, now, box, days = 400, roles }: { store: Store, now: Clock, box: SecretBox, days?: number | undefined, roles: readonly string[] }) {
  const names = store.collection<FormerNameRecord>('former_names')

  async function toId (account: string): Promise<string> {
    const key = await readStoredKey({ store, box }, KEY_ID, () => randomBytes(KEY_BYTES).toString('base64url'))
    return createHmac('sha256', Buffer.from(key, 'base64url')).update(account).digest('base64url')
  }

  return {
    /** Remembers the name of somebody who is about to be deleted. Nobody chooses an address, so those are left out. */
    async remember ({ account }: Pick<UserRecord, 'account'>): Promise<void> {
      if (!isAddress(account)) await names.put({ id: await toId(account), expired_at: toTimestamp(now() + days * DAY) })
    },

    /** @throws ErrParam for a name that a stranger may not choose. The message is that for a name of somebody else */
    async checkChosen (account: string): Promise<void> {
      const record = isReserved(account, roles) ? undefined : await names.get(await toId(account))
      if (record === undefined || (record !== null && record.expired_at > toTimestamp(now()))) throw paramError('account', 'is taken')
    }
  }
}

export type FormerNames = ReturnType<typeof createFormerNames>
