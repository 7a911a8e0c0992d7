import t from 'tap'
import type { ListQuery, SortKey } from '../../../lib/store/port.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { decodeCursor } from '../../../lib/lists/cursor.ts'
import { pageDocuments } from '../../../lib/lists/documents.ts'
import { openStore } from '../../../lib/store/index.ts'

interface Item { id: string, name?: string, createdAt?: string }

async function collect<T> (batches: AsyncIterable<T[]>): Promise<T[]> {
  const all: T[] = []
  for await (const batch of batches) {
    t.ok(batch.length > 0 && batch.length <= 100)
    all.push(...batch)
  }
  return all
}

t.test('documents in memory are listed as a store lists them', async (t) => {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now, onError: () => {} })
  t.teardown(() => store.close())
  const clients = store.collection<Item>('clients')
  const names = ['b', 'a', 'B', '\u{1f600}', '\uff5e', undefined, 'a', '', 'ab']
  const items: Item[] = names.map((name, index) => ({ id: `id${index}`, ...(name !== undefined && { name }), createdAt: String(index % 3) }))
  for (const item of items) await clients.insert(item)
  const sorts: SortKey[][] = [
    [{ key: 'name', direction: 'asc' }], [{ key: 'name', direction: 'desc' }],
    [{ key: 'createdAt', direction: 'asc' }, { key: 'name', direction: 'desc' }], [{ key: 'createdAt', direction: 'desc' }, { key: 'name', direction: 'asc' }]
  ]
  const read = async (query: ListQuery) => (await collect(clients.stream(query))).map(({ id }) => id)
  for (const sort of sorts) {
    const inMemory = async (query: { after?: string, offset?: number, limit?: number }) => {
      const page = pageDocuments(items, sort, query)
      return { ids: (await collect(page.batches)).map(({ id }) => id), after: page.after }
    }
    for (const query of [{}, { limit: 0 }, { limit: 3 }, { offset: 2 }, { offset: 2, limit: 3 }, { offset: 20 }, { limit: 9 }]) {
      t.strictSame((await inMemory(query)).ids, await read({ sort, ...query }), JSON.stringify([sort, query]))
    }
    let after: string | undefined
    const seen: string[] = []
    do {
      const page = await inMemory({ limit: 2, ...(after !== undefined && { after }) })
      if (after !== undefined) t.strictSame(page.ids, await read({ sort, limit: 2, after: decodeCursor(after, sort) }))
      seen.push(...page.ids)
      after = page.after
    } while (after !== undefined && seen.length < 20)
    t.strictSame(seen, await read({ sort }), 'pages by cursor')
  }
})

t.test('more than a batch', async (t) => {
  const items = Array.from({ length: 250 }, (_, index) => ({ id: String(index).padStart(3, '0') }))
  const { batches, after } = pageDocuments(items, [], { limit: 0 })
  t.strictSame((await collect(batches)).map(({ id }) => id), items.map(({ id }) => id))
  t.equal(after, undefined)
})
