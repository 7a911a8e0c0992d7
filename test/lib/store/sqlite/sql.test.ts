import t from 'tap'
import { COLLECTIONS } from '../../../../lib/store/collections.ts'
import type { Filter, ListQuery, Keyset, SortKey } from '../../../../lib/store/port.ts'
import { Connection } from '../../../../lib/store/sqlite/connection.ts'
import { migrate } from '../../../../lib/store/sqlite/schema.ts'
import { Table } from '../../../../lib/store/sqlite/sql.ts'

// The query plans of lists far from their start. The tables are empty: without statistics a plan is the same for any size.

const connection = new Connection(':memory:', { busy: 0 })
t.teardown(() => connection.close())
migrate(connection, COLLECTIONS)
const tables = new Map(COLLECTIONS.map((spec) => [spec.name, new Table(spec)]))

function planOf (collection: string, query: ListQuery): string[] {
  const { sql, values } = tables.get(collection)!.list(query, 'doc')
  return connection.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...values).map(({ detail }) => detail)
}

const OWNED: Filter = { equal: { userId: 'u' } }
const LISTS: [collection: string, key: string, filter?: Filter][] = [
  ...['name', 'createdAt', 'modifiedAt'].flatMap((key): [string, string, Filter?][] => [['clients', key], ['clients', key, OWNED]]),
  ...['account', 'created_at', 'modified_at', 'verified_at', 'name'].map((key): [string, string] => ['users', key])
]
const PLACES: Record<string, Keyset> = { 'a value': { values: ['v'], id: 'i' }, 'no value': { values: [null], id: 'i' } }

t.test('a list after a place seeks to it by the index of its sort, and sorts nothing', async (t) => {
  for (const [collection, key, filter] of LISTS) {
    for (const direction of ['asc', 'desc'] as const) {
      for (const [place, after] of Object.entries(PLACES)) {
        const label = `${collection} by ${key} ${direction}${filter === undefined ? '' : ' of an owner'}, after ${place}`
        const sort: SortKey[] = [{ key, direction }]
        const plan = planOf(collection, { ...(filter !== undefined && { filter }), sort, after, limit: 101 })
        const reads = plan.filter((step) => /^(SEARCH|SCAN)/.test(step))
        t.not(reads.length, 0)
        const owner = filter === undefined ? '' : 'userId=\\? AND '
        for (const step of reads) {
          t.match(step, new RegExp(`^SEARCH ${collection} USING INDEX ${collection}\\.(userId\\.)?${key}(\\.unique|\\.search)? \\(${owner}${key}[<>=]`), `${label}: ${step}`)
        }
        // The index of a unique key has no id at its end, so documents that may share a value are sorted by id.
        const mayTie = key === 'account' && (direction === 'desc' || place === 'no value')
        t.strictSame(plan.filter((step) => /TEMP B-TREE/.test(step) && !(mayTie && /LAST TERM/.test(step))), [], label)
      }
    }
  }
})
