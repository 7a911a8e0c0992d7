import { toTimestamp } from '../clock.ts'
import type { AddressChange, FirstFactor, UndoRecord, UserRecord } from '../records/user.ts'
import { keepProof } from './address-proof.ts'

/** Milliseconds for which a link of 1158eb3 has worked, if no option said otherwise. */
const LIFE = 72 * 60 * 60_000

/** The part of a record that the lists of 1158eb3 are read with. */
export type Earlier = Pick<UserRecord, 'ways' | 'email' | 'email_verified_at' | 'email_verified_by' | 'address_changes' | 'first_factors'>

/** Both lists in the order in which things happened: a factor names the changes of the address that came before it. */
function sort (changes: readonly AddressChange[], factors: readonly FirstFactor[]): (AddressChange | FirstFactor)[] {
  const sorted: (AddressChange | FirstFactor)[] = []
  let rest = factors
  for (const change of changes) {
    const end = rest.findIndex((factor) => factor.changes?.includes(change.ticket) !== false)
    const before = end < 0 ? rest : rest.slice(0, end)
    sorted.push(...before, change)
    rest = rest.slice(before.length)
  }
  return [...sorted, ...rest]
}

/** What 1158eb3 has recorded in two lists, as entries of the one list. It named the ways that were there, and this names those that were added. */
export function listEarlier (record: Earlier): UndoRecord[] {
  const { ways = {}, address_changes: changes = [], first_factors: factors = [] } = record
  const sorted = sort(changes, factors)
  const isChange = (one: AddressChange | FirstFactor): one is AddressChange => changes.includes(one)
  return sorted.map((one, index) => {
    const { ticket: id, until, ways: kept = [] } = one
    const later = sorted[index + 1]
    const added = Object.keys(ways).filter((way) => !kept.includes(way) && (later === undefined || (later.ways ?? []).includes(way)))
    const before = keepProof(sorted.slice(index).find(isChange) ?? record)
    return { id, at: toTimestamp(Date.parse(until) - LIFE), until, kind: isChange(one) ? 'address' : 'factor', added, before }
  })
}
