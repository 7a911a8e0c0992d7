import { defined } from '../defined.ts'
import { type UserChange, type UserRecord, listAddresses } from '../records/user.ts'
import type { Step } from '../store/migrator.ts'
import type { AddressProof } from '../user-changes/address-proof.ts'
import type { Way } from '../way.ts'
import type { Change } from '../store/port.ts'

/** Milliseconds within which the first sign-in with a provider made the account, its identity and its proved address. */
const AT_ONCE = 60_000

interface Earlier extends Pick<UserRecord, 'created_at' | 'imported_source'> {
  ways?: Record<string, Pick<Way, 'kind' | 'upstream' | 'at'>>
}

/**
 * The upstreams on whose word alone an address of an earlier layout may rest: the first sign-in with one made the account. Records of that
 * layout do not say who has proved an address. A person who signed up by a mailed link, and linked an identity within a minute, looks the same.
 */
function listMakers (
  { created_at, imported_source: source, ways = {} }: Earlier, { email_verified_at: at, email_verified_by: by }: AddressProof
): (string | undefined)[] {
  const isMade = (time: string) => Math.abs(Date.parse(time) - Date.parse(created_at)) <= AT_ONCE
  if (at === undefined || by !== undefined || source !== undefined || !isMade(at)) return []
  return Object.values(ways).filter(({ kind, at: linked }) => kind === 'upstream' && isMade(linked)).map(({ upstream }) => upstream)
}

/**
 * Judges the proof of an address of an earlier layout.
 * @param isAuthority whether the configured upstream with this id is an authority on addresses. One that is not configured is none
 * @returns false for an address that counts as unproved, the upstream that has proved it, or undefined where nothing is known
 */
export function judgeEarlier (record: Earlier, proof: AddressProof, isAuthority: (upstream: string) => boolean): string | false | undefined {
  const makers = listMakers(record, proof)
  const [maker] = makers
  return makers.some((one) => one === undefined || !isAuthority(one)) ? false : maker
}

/** The change of a record of an earlier layout: the address, and those that a link can bring back. Null where nothing changes. */
function toChange (user: UserRecord, isAuthority: (upstream: string) => boolean): UserChange | null {
  const { address_changes: changes = [] } = user
  const verdict = judgeEarlier(user, user, isAuthority)
  const isUnproved = changes.map((change) => judgeEarlier(user, change, isAuthority) === false)
  if (verdict === undefined && !isUnproved.includes(true)) return null
  const kept = changes.map((change, index) => {
    const { email_verified_at: _at, ...rest } = change
    return isUnproved[index] ? rest : change
  })
  const address_changes = isUnproved.includes(true) ? kept : undefined
  if (verdict !== false) return { set: defined({ email_verified_by: verdict, address_changes }) }
  const addresses = listAddresses(user.account)
  return addresses.length > 0
    ? { set: defined({ address_changes, addresses }), unset: ['email', 'email_verified_at'] }
    : { set: defined({ address_changes }), unset: ['email', 'email_verified_at', 'addresses'] }
}

/**
 * Makes the addresses unproved that a provider had only seen when it made an account under an earlier layout. The account keeps its name, and
 * the next link that is mailed to it proves the address.
 * @param isAuthority as in judgeEarlier
 */
export function createAddressJudging (isAuthority: (upstream: string) => boolean): Step {
  return {
    version: 6,
    collection: 'users',
    toChange (document) {
      const user = document as unknown as UserRecord
      const change = toChange(user, isAuthority) as Change | null
      if (change === null) return null
      const { revision } = user
      return revision === undefined ? { change } : { change: { ...change, increment: { revision: 1 } }, where: { equal: { revision } } }
    }
  }
}
