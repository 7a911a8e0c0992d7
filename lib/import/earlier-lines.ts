import type { UserRecord } from '../records/user.ts'
import { ScratchMap } from '../store/scratch.ts'

/** What two people cannot share. */
type Kind = 'id' | 'account' | 'name' | 'external' | 'way' | 'credential'

/** The people of the earlier lines of a dry run, which has written none of them, as these lines would have left them. */
export function createEarlierLines () {
  // Opened by the first person, so that a run that never begins has nothing to close.
  let map: ScratchMap | undefined
  return {
    find (kind: Kind, key: string): UserRecord | null {
      const id = map?.get(`${kind} ${key}`)
      return id === undefined ? null : JSON.parse(map!.get(`user ${id}`)!) as UserRecord
    },

    /** @param isNamed whether the id is that of the person in the store, or of their line: a run would give them the same */
    add (user: UserRecord, isNamed: boolean): void {
      const { id, account, addresses = [], external_keys = [], ways = {} } = user
      const keys: [Kind, string][] = [
        ['id', id],
        ['account', account],
        ...[account, ...addresses].map((name): [Kind, string] => ['name', name]),
        ...external_keys.map((key): [Kind, string] => ['external', key]),
        ...Object.entries(ways).flatMap(([way, { key }]): [Kind, string][] =>
          [['credential', way], ...(key === undefined ? [] : [['way', key] as [Kind, string]])])
      ]
      map ??= new ScratchMap()
      map.set(`user ${id}`, JSON.stringify(user))
      for (const [kind, key] of keys) map.set(`${kind} ${key}`, id)
      if (!isNamed) map.set(`unnamed ${id}`, '')
    },

    /** Whether a run would give the person another id. */
    isUnnamed: (id: string): boolean => map?.get(`unnamed ${id}`) !== undefined,

    close: () => map?.close()
  }
}

export type EarlierLines = ReturnType<typeof createEarlierLines>
