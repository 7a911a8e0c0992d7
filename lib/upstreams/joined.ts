import type { LinkChange } from '../accounts/identities.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import type { Happening } from '../events/types.ts'
import type { UserRecord } from '../records/user.ts'
import { toVerified } from '../users/addresses.ts'
import { PASSWORD } from '../way.ts'
import { showIdentity } from '../ways/identity.ts'
import { listOthers } from './join-rule.ts'
import type { Proven } from './linking.ts'

/** The events of the identities that go. */
const listUnlinked = ({ id, ways = {} }: UserRecord, gone: readonly string[]): Happening[] => (
  gone.flatMap((way) => ways[way]?.kind === 'upstream' ? [{ type: 'identity.unlinked', id, via: showIdentity(ways[way]) }] : []))

/** What lets somebody in, of an account that belongs to whoever proves its address first. What could be undone goes with the link of the identity. */
const BEFORE = ['invited_at', 'enrol_ticket'] as const

/**
 * Takes over an account whose address nobody has proved before: whoever has used it so far may be somebody else, who has made it with this
 * address or was given its password. Every way in and every link from before goes, and all sessions end.
 */
function takeOver (record: UserRecord, address: string, { upstream: { id: upstream } }: Proven, now: Clock): LinkChange {
  const { addresses, ...verified } = toVerified(record, address, { upstream }, now)
  const gone = [PASSWORD, ...Object.keys(record.ways ?? {})]
  // Only what changes: of two unique fields in one write a store may not be able to say which has clashed.
  const isNew = String(addresses) !== String(record.addresses)
  return {
    notice: 'identity-joined',
    remove: gone,
    isEnd: true,
    also: {
      set: defined({ ...verified, addresses: isNew ? addresses : undefined }),
      unset: BEFORE.filter((field) => record[field] !== undefined)
    },
    happened: [{ type: 'user.verified', id: record.id }, ...listUnlinked(record, gone)]
  }
}

/**
 * What the write that joins an identity to an account by itself changes beside the link.
 * @param record with the issuers of its identities
 * @param options.address the proved one, which is that of the account
 * @param options.rejoins whether the identity takes the place of those of the same upstream
 */
export function toJoined (
  record: UserRecord, proven: Proven, { address, rejoins, now }: { address: string, rejoins: boolean, now: Clock }
): LinkChange {
  const isProved = record.email === address && record.email_verified_at !== undefined
  if (!isProved) return takeOver(record, address, proven, now)
  if (!rejoins) return {}
  const gone = listOthers(record, proven)
  return {
    notice: 'identity-rejoined',
    remove: gone,
    isEnd: true,
    also: { set: { rejoined_at: toTimestamp(now()) } },
    happened: listUnlinked(record, gone)
  }
}
