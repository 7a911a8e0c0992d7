import t from 'tap'
import type { CollectionSpec, Filter, PageQuery } from '../../../../lib/store/port.ts'
import { openStore } from '../../../../lib/store/index.ts'

const SPEC: CollectionSpec = {
  name: 'things',
  keys: { owner: 'string', state: 'string', due_at: 'string', name: 'string', expired_at: 'string' },
  unique: ['name'],
  indexes: [['owner'], ['state', 'due_at']],
  expiry: 'expired_at'
}

const by = (key: string, direction: 'asc' | 'desc' = 'asc') => ({ key, direction })

t.test('an urgent read needs an index that leads to it', async (t) => {
  const store = await openStore('sqlite::memory:', { collections: [SPEC], now: Date.now })
  t.teardown(() => store.close())
  const things = store.collection('things')
  const pages: [query: PageQuery, urgent: boolean][] = [
    [{}, true],
    [{ sort: [by('id', 'desc')] }, true],
    [{ filter: { equal: { owner: 'o' } } }, true],
    [{ filter: { equal: { owner: 'o', state: 'due' } } }, true],
    [{ filter: { equal: { owner: 'o' }, since: { due_at: 'x' } } }, true],
    [{ filter: { equal: { state: 'due' }, before: { due_at: 'x' } }, sort: [by('due_at')] }, true],
    [{ filter: { since: { name: '' } }, sort: [by('name')] }, true],
    [{ filter: { before: { expired_at: 'x' } }, sort: [by('expired_at')] }, true],
    [{ filter: { equal: { state: 'due', due_at: 'x' } } }, true],
    [{ filter: { equal: { id: 'i' } } }, true],
    [{ filter: { equal: { id: 'i', owner: 'o' } }, sort: [by('id')] }, true],
    [{ filter: { equal: { id: 'i', state: 'due', due_at: 'x' }, since: { name: '' } } }, true],
    [{ filter: { equal: { owner: 'o' }, contains: { name: 'n' } } }, false],
    [{ filter: { equal: { state: 'due' } } }, false],
    [{ filter: { equal: { due_at: 'x' } } }, false],
    [{ filter: { before: { due_at: 'x' } }, sort: [by('due_at')] }, false],
    [{ filter: { since: { name: '' } } }, false],
    [{ filter: { before: { due_at: 'x' } }, sort: [by('name')] }, false],
    [{ sort: [by('due_at')] }, false],
    [{ sort: [by('state'), by('due_at', 'desc')] }, false],
    [{ filter: { equal: { owner: 'o' } }, sort: [by('name')] }, false]
  ]
  for (const [query, urgent] of pages) {
    const read = async () => await Array.fromAsync(things.page({ ...query, urgent: true }))
    if (urgent) t.strictSame(await read(), [], JSON.stringify(query))
    else await t.rejects(read(), { name: 'TypeError', message: 'no index leads to an urgent read of things' }, JSON.stringify(query))
    t.strictSame(await Array.fromAsync(things.page(query)), [])
  }
  const counts: Filter[] = [{ equal: { owner: 'o' } }, { equal: { state: 'due' } }, { since: { name: '' } }]
  for (const filter of counts) t.equal(await things.count(filter, { urgent: true }), 0)
  const scans: Filter[] = [{}, { equal: { due_at: 'x' } }, { contains: { owner: 'o' } }]
  for (const filter of scans) await t.rejects(things.count(filter, { urgent: true }), TypeError)
})
