import { paramError } from '../errors.ts'
import { type UserRecord, isAddress } from '../records/user.ts'
import { type KeyedHashesParts, createKeyedHashes } from './keyed-hashes.ts'
import { isReserved } from './reserved-names.ts'

/**
 * Which names a stranger may choose: apps may know people by their name, so that of a deleted person is not free as long as events tell
 * of them. Only its hash is stored.
 * @param roles the names of roles that the configuration knows
 */
export function createFormerNames ({ roles, ...parts }: KeyedHashesParts & { roles: readonly string[] }) {
  const names = createKeyedHashes(parts, 'former_names', 'names')

  return {
    /** Remembers the name of somebody who is about to be deleted. Nobody chooses an address, so those are left out. */
    async remember ({ account }: Pick<UserRecord, 'account'>): Promise<void> {
      if (!isAddress(account)) await names.remember(account)
    },

    /** @throws ErrParam for a name that a stranger may not choose. The message is that for a name of somebody else */
    async checkChosen (account: string): Promise<void> {
      if (isReserved(account, roles) || await names.has(account)) throw paramError('account', 'is taken')
    }
  }
}

export type FormerNames = ReturnType<typeof createFormerNames>
