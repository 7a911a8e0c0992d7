import type { UserRecord } from '../records.ts'
import { ScratchMap } from '../store/scratch.ts'

/** A person whom an earlier line of a dry run would have brought in or changed. */
export interface EarlierPerson extends Pick<UserRecord, 'id' | 'imported_source'> {
  isEarlier: true
}

/** What two people cannot share. */
type Kind = 'id' | 'account' | 'name' | 'external' | 'way'

/** The people of the earlier lines of a dry run, which has written none of them. */
export function createEarlierLines (source: string) {
  // Opened by the first person, so that a run that never begins has nothing to close.
  let ids: ScratchMap | undefined
  return {
    find (kind: Kind, key: string): EarlierPerson | null {
      const id = ids?.get(`${kind} ${key}`)
      return id === undefined ? null : { id, imported_source: source, isEarlier: true }
    },

    add ({ id, account, addresses = [], external_keys = [], ways = {} }: UserRecord): void {
      const keys: [Kind, string][] = [
        ['id', id],
        ['account', account],
        ...[account, ...addresses].map((name): [Kind, string] => ['name', name]),
        ...external_keys.map((key): [Kind, string] => ['external', key]),
        ...Object.values(ways).flatMap(({ key }): [Kind, string][] => key === undefined ? [] : [['way', key]])
      ]
      ids ??= new ScratchMap()
      for (const [kind, key] of keys) ids.set(`${kind} ${key}`, id)
    },

    close: () => ids?.close()
  }
}

export type EarlierLines = ReturnType<typeof createEarlierLines>
