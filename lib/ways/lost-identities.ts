import { defined } from '../defined.ts'
import type { UserFields, ExpectedIdentity, LostIdentity, UserRecord } from '../records/user.ts'
import { type Way, type Ways, listKeys } from '../way.ts'

/** Lost identities of one upstream that a record names. */
const MOST_LOST = 8

/** What a user's record says of the identities that they have and have had. */
export type IdentityHistory = Pick<UserRecord, 'ways' | 'lost_identities' | 'expected_identities'>

function toLost ({ upstream, issuer, key }: Way, isUndone: boolean): LostIdentity {
  return defined({ upstream, issuer, key, undone: isUndone ? true as const : undefined })
}

/** Lost once by an undo, and once otherwise: the undo counts. */
function merge (lost: readonly LostIdentity[]): LostIdentity[] {
  const byKey = new Map<string, LostIdentity>()
  for (const one of lost) {
    const id = one.key ?? `of ${one.upstream ?? ''}`
    const known = byKey.get(id)
    byKey.delete(id)
    byKey.set(id, known?.undone === true ? { ...one, undone: true } : one)
  }
  return [...byKey.values()]
}

/** One entry stands for all of an upstream that has too many, or one that stands for all already. */
function bound (lost: readonly LostIdentity[]): LostIdentity[] {
  const byUpstream = Map.groupBy(lost, ({ upstream }) => upstream)
  return [...byUpstream].flatMap(([upstream, all]) => (
    all.length > MOST_LOST || all.some(({ key }) => key === undefined) ? [upstream === undefined ? {} : { upstream }] : all))
}

const toField = (field: 'lost_identities' | 'expected_identities', list: readonly (LostIdentity | ExpectedIdentity)[]): UserFields => (
  list.length === 0 ? { set: {}, unset: [field] } : { set: { [field]: [...list] }, unset: [] })

/**
 * The fields that remember which identities go with a change of the ways. One that is linked again is lost no more, and one of an upstream
 * that is linked is the one that was expected, or takes its place.
 * @param ways those that there will be
 * @param isUndone whether an undo takes those that go
 */
export function toHistoryFields (before: IdentityHistory, ways: Ways, isUndone: boolean): UserFields {
  const { ways: had = {}, lost_identities: lost = [], expected_identities: expected = [] } = before
  const gone = Object.entries(had).filter(([id, { kind }]) => kind === 'upstream' && !Object.hasOwn(ways, id)).map(([, way]) => toLost(way, isUndone))
  const added = Object.entries(ways).filter(([id, { kind }]) => kind === 'upstream' && !Object.hasOwn(had, id)).map(([, way]) => way)
  const keys = listKeys(ways)
  const isLost = gone.length > 0 || lost.some(({ key }) => key !== undefined && keys.includes(key))
  const isExpected = expected.some(({ upstream }) => added.some((way) => way.upstream === upstream))
  const fields = [
    ...(isLost ? [toField('lost_identities', bound(merge([...lost, ...gone]).filter(({ key }) => key === undefined || !keys.includes(key))))] : []),
    ...(isExpected ? [toField('expected_identities', expected.filter(({ upstream }) => !added.some((way) => way.upstream === upstream)))] : [])
  ]
  return { set: Object.assign({}, ...fields.map(({ set }) => set)), unset: fields.flatMap(({ unset }) => unset) }
}
