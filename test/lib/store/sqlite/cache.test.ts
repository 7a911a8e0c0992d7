import { DatabaseSync, backup } from 'node:sqlite'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { DocumentCache } from '../../../../lib/store/sqlite/cache.ts'
import { openSqliteStore } from '../../../../lib/store/sqlite.ts'
import type { CollectionSpec, Document, Linked } from '../../../../lib/store/port.ts'

// Look-ups through the cache of a real file. cache-orders.test.ts tests every order of events.

interface Token extends Document { user: string, epoch: number }
interface User extends Document { name: string, epoch: number }

const collections: CollectionSpec[] = [
  { name: 'tokens', keys: { user: 'string' } },
  { name: 'users', keys: { name: 'string' }, hidden: 'aside' },
  { name: 'notes', keys: {}, hidden: '' }
]
const LINKS = { user: 'users' }

async function start (t: Test) {
  const file = join(t.testdir(), 'cache.db')
  const store = await openSqliteStore(`sqlite:${file}`, { collections, now: Date.now })
  const raw = new DatabaseSync(file, { timeout: 5_000 })
  t.teardown(async () => {
    raw.close()
    await store.close()
  })
  const tokens = store.collection<Token>('tokens')
  const users = store.collection<User>('users')
  await users.insert({ id: 'u', name: 'first', epoch: 0 })
  await tokens.insert({ id: 't', user: 'u', epoch: 0 })
  const look = (id = 't') => tokens.getLinked(id, LINKS) as Linked<Token> | null
  return { file, tokens, users, raw, look }
}

t.test('a repeated look-up returns the same decoded documents, frozen, and the same stamp', async (t) => {
  const { look } = await start(t)
  const first = look()
  const second = look()
  t.equal(second?.document, first?.document)
  t.equal(second?.linked.user, first?.linked.user)
  t.type(first?.stamp, 'number')
  t.equal(second?.stamp, first?.stamp)
  t.throws(() => { (second!.linked.user as User).name = 'changed by a guest' }, TypeError)
})

t.test('the stamp is the same until the content changes, despite other writes and look-ups', async (t) => {
  const { tokens, users, look } = await start(t)
  await tokens.insert({ id: 'another', user: 'u', epoch: 0 })
  const { stamp } = look()!
  const writing = users.insert({ id: 'other', name: 'other', epoch: 0 })
  t.equal(look()?.stamp, stamp, 'while something is being written')
  await writing
  t.equal(look()?.stamp, stamp, 'and after')
  t.not(look('another')?.stamp, stamp, 'another answer has another stamp')
  t.equal(look()?.stamp, stamp, 'and does not move that of one that shares a document')
  await users.update('u', { increment: { epoch: 1 } })
  const changed = look()!.stamp
  t.not(changed, stamp)
  await tokens.update('t', { increment: { epoch: 1 } })
  t.notOk([stamp, changed].includes(look()!.stamp))
})

t.test('a field without an id is null and has a stamp; a missing document is null and has none', async (t) => {
  const { tokens, look } = await start(t)
  await tokens.insert({ id: 'absent', epoch: 0 } as Token)
  await tokens.insert({ id: 'null', user: null, epoch: 0 } as unknown as Token)
  await tokens.insert({ id: 'gone', user: 'nobody', epoch: 0 })
  for (let time = 0; time < 2; time++) {
    for (const id of ['absent', 'null', 'gone']) t.equal(look(id)?.linked.user, null)
    t.type(look('absent')?.stamp, 'number')
    t.type(look('null')?.stamp, 'number')
    t.equal(look('absent')?.stamp, look('absent')?.stamp)
    t.notOk('stamp' in look('gone')!)
  }
})

t.test('while an own write of a linked document is pending it is read from the file, without a stamp', async (t) => {
  const { users, look } = await start(t)
  const answer = look()!
  const writing = users.update('u', { increment: { epoch: 1 } })
  const meanwhile = look()!
  t.not(meanwhile.linked.user, answer.linked.user)
  t.strictSame(meanwhile.linked, answer.linked, 'still the content of before')
  t.notOk('stamp' in meanwhile)
  await writing
  t.equal((look()?.linked.user as User).epoch, 1)
})

t.test('an own write is visible as soon as it is acknowledged, even in the same turn', async (t) => {
  const { tokens, users, look } = await start(t)
  for (let epoch = 1; epoch <= 20; epoch++) {
    look()
    await users.update('u', { increment: { epoch: 1 } })
    t.equal((look()?.linked.user as User).epoch, epoch)
  }
  await tokens.deleteMany({ equal: { user: 'u' } })
  t.equal(look(), null)
})

t.test('a document that is removed and inserted again is the new one', async (t) => {
  const { users, look } = await start(t)
  for (let round = 0; round < 20; round++) {
    look()
    const name = `round ${round}`
    const removed = users.delete('u')
    // In the same batch, and in the next.
    if (round % 2 === 1) await nextTurn()
    const inserted = users.insert({ id: 'u', name, epoch: 0 })
    while (look()?.linked.user === null) await nextTurn()
    await Promise.all([removed, inserted])
    t.equal((look()?.linked.user as User).name, name)
  }
})

t.test('an own write leaves other documents cached', async (t) => {
  const { tokens, users, look } = await start(t)
  const { document } = look()!
  await users.insert({ id: 'other', name: 'other', epoch: 0 })
  t.equal(look()?.document, document)
  for (let number = 0; number < 250; number++) await tokens.insert({ id: `old${number}`, user: 'gone', epoch: 0 })
  t.equal(look()?.document, document)
  t.equal(await tokens.deleteMany({ equal: { user: 'nobody' } }), 0)
  t.equal(look()?.document, document)
  t.equal(await tokens.deleteMany({ equal: { user: 'gone' } }), 250)
  t.equal(look()?.document, document)
  t.equal(await tokens.count(), 1)
})

t.test("another connection's write is visible from the next turn on, even from another program", async (t) => {
  const { raw, look } = await start(t)
  for (let round = 0; round < 20; round++) {
    look()
    raw.exec(`UPDATE users SET doc = json_set(doc, '$.name', 'round ${round}')`)
    await nextTurn()
    t.equal((look()?.linked.user as User).name, `round ${round}`)
  }
  raw.exec('DELETE FROM users')
  await nextTurn()
  t.equal(look()?.linked.user, null)
})

t.test('after a write by another program, documents are soon cached again', async (t) => {
  const { raw, look } = await start(t)
  raw.exec("UPDATE users SET doc = json_set(doc, '$.name', 'edited')")
  await nextTurn()
  t.equal(look()?.stamp, undefined, 'the content has no version')
  while (look()?.stamp === undefined) await nextTurn()
  t.equal((look()?.linked.user as User).name, 'edited')
  t.equal(look()?.document, look()?.document)
})

t.test('in the turn of a write by another connection, look-ups see it as soon as one of them does', async (t) => {
  const { tokens, raw, look } = await start(t)
  await tokens.insert({ id: 'uncached', user: 'u', epoch: 0 })
  await nextTurn()
  look()
  raw.exec("UPDATE users SET doc = json_set(doc, '$.name', 'new')")
  t.equal((look('uncached')?.linked.user as User).name, 'new', 'it has to be read')
  t.equal((look()?.linked.user as User).name, 'new')
})

t.test("another connection's write is seen when it comes between own writes", async (t) => {
  const { users, raw, look } = await start(t)
  for (let round = 0; round < 20; round++) {
    look()
    const own = users.update(`nobody-${round}`, { set: { name: 'x' } })
    const also = users.insert({ id: `v${round}`, name: 'v', epoch: 0 })
    raw.exec(`UPDATE users SET doc = json_set(doc, '$.name', 'round ${round}') WHERE id = 'u'`)
    await Promise.all([own, also])
    await nextTurn()
    t.equal((look()?.linked.user as User).name, `round ${round}`)
  }
})

t.test('a backup restored over the file is noticed, even after many more writes', async (t) => {
  const { file, tokens, users, raw, look } = await start(t)
  const copy = `${file}.copy`
  await backup(raw, copy)
  for (let writes = 0; writes < 4; writes++) {
    // The same number of changes of the file on both sides of the restore.
    await tokens.insert({ id: 'late', user: 'u', epoch: 0 })
    await users.update('u', { set: { name: 'promoted' } })
    for (let more = 0; more < writes; more++) await users.insert({ id: `lost ${more}`, name: 'lost', epoch: 0 })
    t.equal((look('late')?.linked.user as User).name, 'promoted')
    const source = new DatabaseSync(copy)
    await backup(source, file)
    source.close()
    for (let more = 0; more < writes + 2; more++) raw.exec(`INSERT INTO users (id, doc) VALUES ('stranger ${more}', '{}')`)
    await nextTurn()
    t.equal(look('late'), null, `after ${writes + 2} writes`)
    t.equal((look()?.linked.user as User).name, 'first')
  }
})

t.test('the version is read once per turn, and again after an own batch', async (t) => {
  let reads = 0
  let turn = 0
  const cache = new DocumentCache(() => String(++reads && 1), { turn: () => turn })
  for (let time = 0; time < 5; time++) t.equal(cache.isCurrent(), true)
  t.equal(reads, 1)
  turn++
  t.equal(cache.isCurrent(), true)
  t.equal(reads, 2)
  cache.send()
  t.equal(cache.isCurrent(), true)
  t.equal(reads, 2)
  cache.answer({ before: '1', after: '1' })
  t.equal(cache.isCurrent(), true)
  t.equal(reads, 3)
})

t.test('an own batch leaves the cache valid, whichever sign of it comes first; another commit empties it', async (t) => {
  let version = 'a'
  let turn = 0
  const cache = new DocumentCache(() => version, { turn: () => turn })
  const users = cache.collection('users')
  const fill = () => {
    turn++
    t.equal(cache.isCurrent(), true)
    t.ok(users.add('u', '{"id":"u"}'))
  }
  const commit = (to: string) => {
    version = to
    turn++
  }

  fill()
  cache.send()
  commit('b')
  t.equal(cache.isCurrent(), false, 'it may be the own commit, or not')
  cache.answer({ before: 'a', after: 'b' })
  t.equal(cache.isCurrent(), true)
  t.ok(users.get('u'), 'it was')

  cache.send()
  commit('c')
  commit('d')
  t.equal(cache.isCurrent(), false)
  cache.answer({ before: 'c', after: 'd' })
  t.equal(cache.isCurrent(), true)
  t.notOk(users.get('u'), 'another commit came before it')
  fill()

  cache.send()
  commit('e')
  commit('f')
  cache.answer({ before: 'd', after: 'e' })
  t.equal(cache.isCurrent(), true)
  t.notOk(users.get('u'), 'another commit came after it')
  fill()

  commit('g')
  t.equal(cache.isCurrent(), true, 'no batch is in flight')
  t.notOk(users.get('u'))
  fill()

  cache.send()
  cache.answer(null)
  cache.send()
  t.equal(cache.isCurrent(), false, 'nobody knows what became of the batch')
  cache.answer({ before: 'g', after: 'h' })
  cache.send()
  commit('h')
  fill()
})

t.test('a version that cannot be read fails every look-up of the turn', async (t) => {
  let broken = true
  const cache = new DocumentCache(() => {
    if (broken) throw new Error('no file')
    return '1'
  }, { turn: () => 0 })
  for (let time = 0; time < 2; time++) t.throws(() => cache.isCurrent(), { message: 'no file' })
  broken = false
  t.equal(cache.isCurrent(), true)
})

t.test('it is bounded in documents and in their size', async (t) => {
  const cache = new DocumentCache(() => '1')
  cache.isCurrent()
  const users = cache.collection('users')
  for (let number = 0; number < 50_000; number++) users.add(`u${number}`, `{"id":"u${number}"}`)
  t.equal(users.get('u0'), undefined)
  t.ok(users.get('u49999'))
  const tokens = cache.collection('tokens')
  t.ok(tokens.add('long', JSON.stringify('x'.repeat(24_000_000))))
  t.equal(tokens.get('long'), undefined)
})

t.test('a write of hidden fields, or of a hidden collection, leaves the caches of all processes as they are', async (t) => {
  const { file, tokens, users, look } = await start(t)
  const other = await openSqliteStore(`sqlite:${file}`, { collections, now: Date.now })
  t.teardown(() => other.close())
  const { stamp } = look()!
  await other.collection<User>('users').update('u', { set: { 'aside:1': 1 }, unset: ['aside:2'] })
  await other.collection('notes').insert({ id: 'n' })
  await other.collection('notes').update('n', { set: { text: 'new' } })
  await other.collection('notes').delete('n')
  await nextTurn()
  t.equal(look()?.stamp, stamp)
  await users.update('u', { set: { 'aside:3': 1 } })
  t.equal(look()?.stamp, stamp, 'an own write too')
  t.match(await users.get('u'), { 'aside:1': 1, 'aside:3': 1 })
  await other.collection<User>('users').update('u', { set: { 'aside:1': 2, name: 'second' } })
  await nextTurn()
  t.equal((look()?.linked.user as User).name, 'second')
  await tokens.update('t', { increment: { epoch: 1 } })
  t.equal(look()?.document.epoch, 1)
})

t.test('a commit of another process drops the documents that it has changed, and no other', async (t) => {
  const { file, tokens, users, raw, look } = await start(t)
  await users.insert({ id: 'v', name: 'other', epoch: 0 })
  await tokens.insert({ id: 'of-v', user: 'v', epoch: 0 })
  const other = await openSqliteStore(`sqlite:${file}`, { collections, now: Date.now })
  t.teardown(() => other.close())
  const others = other.collection<User>('users')
  const [stamp, ofV] = [look()?.stamp, look('of-v')?.stamp]
  const generation = tokens.getGeneration?.()
  await other.collection<Token>('tokens').insert({ id: 'new', user: 'u', epoch: 0 })
  await nextTurn()
  t.equal(look()?.stamp, stamp, 'an insert changes no document')
  t.equal(tokens.getGeneration?.(), generation)
  for (const name of ['second', 'third']) {
    await others.update('v', { set: { name } })
    await nextTurn()
    t.equal(look()?.stamp, stamp, 'what it did not change')
    t.equal((look('of-v')?.linked.user as User).name, name, 'what it did')
  }
  t.not(look('of-v')?.stamp, ofV)
  t.not(tokens.getGeneration?.(), generation)
  const last = look('of-v')?.stamp
  await users.update('u', { set: { name: 'own' } })
  await others.delete('v')
  await nextTurn()
  t.equal((look()?.linked.user as User).name, 'own')
  t.equal(look('of-v')?.linked.user, null)
  t.not(look('of-v')?.stamp, last)
  const before = look()?.stamp
  await Promise.all(Array.from({ length: 40 }, async (_, number) => await others.put({ id: `many ${number}`, name: '', epoch: 0 })))
  await nextTurn()
  t.not(look()?.stamp, before, 'those of a large commit are not named')
  const again = look()?.stamp
  for (let count = 0; count < 80; count++) await others.put({ id: `w${count}`, name: '', epoch: 0 })
  await nextTurn()
  t.not(look()?.stamp, again, 'nor are those of long ago')
  raw.exec("UPDATE users SET doc = '{\"id\":\"u\",\"name\":\"edited\",\"epoch\":9}' WHERE id = 'u'")
  await others.put({ id: 'w', name: '', epoch: 0 })
  await nextTurn()
  t.equal((look()?.linked.user as User).name, 'edited', 'nobody knows what another program has changed')
})
