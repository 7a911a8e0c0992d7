import type { UserRecord } from '../records/user.ts'
import { type Document, DuplicateKeyError, type Store } from '../store/port.ts'
import { scan } from '../store/scan.ts'

/** The relying parties for which passkeys were added. */
interface PartiesRecord extends Document { parties: string[], revision: number }

const ID = 'relying_parties'

/**
 * The passkeys of another relying party, which count as none: of a host that the service had before. The relying parties are kept, so that
 * a start counts passkeys only after the host has changed.
 */
export function createForeignPasskeys (store: Store) {
  const meta = store.collection<PartiesRecord>('meta')
  const users = store.collection<UserRecord>('users')
  let known = ''

  return {
    /** Keeps the relying party of a passkey that is added. */
    async add (party: string): Promise<void> {
      while (known !== party) {
        const record = await meta.get(ID)
        if (record === null) {
          await meta.insert({ id: ID, parties: [party], revision: 0 }).then(() => { known = party }, (error: unknown) => {
            if (!(error instanceof DuplicateKeyError)) throw error
          })
        } else if (record.parties.includes(party)) known = party
        else await meta.update(ID, { set: { parties: [...record.parties, party] }, increment: { revision: 1 } }, { equal: { revision: record.revision } })
      }
    },

    /** Counts the passkeys of other relying parties. @param party absent: there is none now */
    async count (party: string | undefined): Promise<number> {
      const parties = (await meta.get(ID))?.parties ?? []
      if (parties.every((one) => one === party)) return 0
      let count = 0
      for await (const batch of scan(users, { equal: { has_factor: true } })) {
        for (const { ways = {} } of batch) count += Object.values(ways).filter(({ kind, rp }) => kind === 'passkey' && rp !== party).length
      }
      return count
    }
  }
}
