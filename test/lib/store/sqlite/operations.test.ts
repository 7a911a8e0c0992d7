import { constants } from 'node:sqlite'
import t, { type Test } from 'tap'
import { Connection } from '../../../../lib/store/sqlite/connection.ts'
import { type Operation, readVersion, runBatch } from '../../../../lib/store/sqlite/operations.ts'
import { migrate } from '../../../../lib/store/sqlite/schema.ts'
import { Table } from '../../../../lib/store/sqlite/sql.ts'

const spec = { name: 'things', keys: {} }
const table = new Table(spec)
const tables = new Map([['things', table]])

const insert = (id: string, text = ''): Operation => ({ kind: 'run', ...table.insert({ id, text } as { id: string }) })

function start (t: Test): Connection {
  const connection = new Connection(`${t.testdir()}/store.db`, { busy: 0 })
  migrate(connection, [spec])
  t.teardown(() => connection.close())
  return connection
}

function idsOf (connection: Connection): string[] {
  return connection.all<{ id: string }>('SELECT id FROM things ORDER BY id').map(({ id }) => id)
}

t.test('a full disk fails the writes that do not fit, and keeps the acknowledged ones', async (t) => {
  const connection = start(t)
  connection.database.exec('PRAGMA max_page_count = 30')
  const operations = [insert('a'), insert('b', 'x'.repeat(500_000)), insert('c')]
  const { outcomes } = runBatch(connection, tables, operations)
  t.match(outcomes[1], { failure: { message: /full/ } })
  t.equal(connection.database.isTransaction, false)
  t.strictSame(idsOf(connection), ['a', 'c'].filter((_, index) => 'value' in outcomes[index * 2]!), 'what has a value is there, and nothing else')
  connection.database.exec('PRAGMA max_page_count = 100000')
  t.strictSame(runBatch(connection, tables, operations.slice(1, 2)).outcomes, [{ value: 1 }])
})

t.test('a failed commit fails all its writes, and the next transaction is a new one', async (t) => {
  const connection = start(t)
  connection.database.setAuthorizer((action, name) => action === constants.SQLITE_TRANSACTION && name === 'COMMIT' ? constants.SQLITE_DENY : constants.SQLITE_OK)
  const { outcomes, versions } = runBatch(connection, tables, [insert('a'), insert('b')])
  t.equal(versions, null, 'what became of the file is not known')
  t.match(outcomes, [{ failure: { message: /authorized/ } }, { failure: { message: /authorized/ } }])
  connection.database.setAuthorizer(null)
  t.equal(connection.database.isTransaction, false)
  t.strictSame(idsOf(connection), [])
  t.strictSame(runBatch(connection, tables, [insert('a')]).outcomes, [{ value: 1 }])
})

t.test('an increment of a value that is not a number is refused, and null counts as 0', async (t) => {
  const connection = start(t)
  connection.run(table.insert({ id: 'a', text: 'x', none: null, list: [1] } as { id: string }))
  const increment = (field: string): Operation => ({ kind: 'update', collection: 'things', ...table.find('a'), change: JSON.stringify({ increment: { [field]: 2 } }) })
  t.match(runBatch(connection, tables, ['text', 'list', 'none', 'toString'].map(increment)).outcomes, [
    { mistake: 'text is not a number and cannot be incremented' },
    { mistake: 'list is not a number and cannot be incremented' },
    { value: '{"id":"a","text":"x","none":2,"list":[1]}' },
    { value: '{"id":"a","text":"x","none":2,"list":[1],"toString":2}' }
  ])
})

t.test('a batch that changes a row makes another version, and no other batch does', async (t) => {
  const connection = start(t)
  const seen = new Set<string | null>([readVersion(connection)])
  const expectChange = (changes: boolean, ...operations: Operation[]) => {
    const { versions } = runBatch(connection, tables, operations)
    t.ok(seen.has(versions!.before))
    t.equal(seen.has(versions!.after), !changes, JSON.stringify(operations))
    t.match(versions!.after, /^-?\d{1,19}$/)
    t.equal(readVersion(connection), versions!.after)
    seen.add(versions!.after)
  }
  const update = (id: string): Operation => ({ kind: 'update', collection: 'things', ...table.find(id), change: '{}' })
  expectChange(true, insert('a'))
  expectChange(true, insert('b'), insert('c'))
  expectChange(true, { kind: 'run', ...table.put({ id: 'b' }) })
  expectChange(true, update('a'))
  expectChange(true, insert('a'), update('nobody'), { kind: 'run', ...table.delete('c') })
  expectChange(false, update('nobody'))
  expectChange(false, insert('a'))
  expectChange(false, { kind: 'run', ...table.delete('nobody') })
  expectChange(false)

  connection.run(table.put({ id: 'edited' }))
  const { versions } = runBatch(connection, tables, [])
  t.equal(versions!.before, null, 'another program changed a row')
  t.notOk(seen.has(versions!.after), 'any batch gives the content a version again')
})

t.test('a refused write changes neither rows, nor indexes, nor the version', (t) => {
  const connection = new Connection(`${t.testdir()}/store.db`, { busy: 0 })
  t.teardown(() => connection.close())
  const spec = { name: 'people', keys: { name: 'string', mail: 'string', age: 'number' } as const, unique: ['name', 'mail'], indexes: [['age']] }
  migrate(connection, [spec])
  const table = new Table(spec)
  const run = (...operations: Operation[]) => runBatch(connection, new Map([['people', table]]), operations)
  const document = (id: string, name: string, mail: string, age: number) => ({ id, name, mail, age } as { id: string })
  run(...[document('a', 'Ann', 'ann@', 1), document('b', 'Bob', 'bob@', 2)].map((one) => ({ kind: 'run', ...table.insert(one) }) as const))
  const rows = connection.all('SELECT * FROM people')
  const change = (set: object): Operation => ({ kind: 'update', collection: 'people', ...table.find('b'), change: JSON.stringify({ set }) })
  const refused: [operation: Operation, field: string][] = [
    [{ kind: 'run', ...table.insert(document('a', 'Cid', 'cid@', 3)) }, 'id'],
    [{ kind: 'run', ...table.insert(document('c', 'Cid', 'bob@', 3)) }, 'mail'],
    [{ kind: 'run', ...table.put(document('c', 'Ann', 'cid@', 3)) }, 'name'],
    [{ kind: 'run', ...table.put(document('b', 'Bob', 'ann@', 3)) }, 'mail'],
    [change({ age: 3, name: 'Cid', mail: 'ann@' }), 'mail'],
    [change({ age: 3, name: 'Ann', mail: 'cid@' }), 'name']
  ]
  for (const [operation, field] of refused) {
    const { outcomes, versions } = run(operation)
    t.strictSame(outcomes, [{ duplicate: field }])
    t.equal(versions?.after, versions?.before)
  }
  const neighbours = run(refused[1]![0], { kind: 'run', ...table.insert(document('c', 'Cid', 'cid@', 3)) }, refused[4]![0])
  t.strictSame(neighbours.outcomes, [{ duplicate: 'mail' }, { value: 1 }, { duplicate: 'mail' }])
  t.not(neighbours.versions!.after, neighbours.versions!.before)
  t.strictSame(connection.all("SELECT * FROM people WHERE id <> 'c'"), rows)
  t.match(connection.all('PRAGMA integrity_check'), [{ integrity_check: 'ok' }], 'and the indexes have what the table has')
  t.end()
})
