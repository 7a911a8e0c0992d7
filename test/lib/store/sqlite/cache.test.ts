import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DocumentCache } from '../../../../lib/store/sqlite/cache.ts'
import { openSqliteStore } from '../../../../lib/store/sqlite.ts'
import type { CollectionSpec, Document, Linked } from '../../../../lib/store/port.ts'

interface Token extends Document { user: string, epoch: number }
interface User extends Document { name: string, epoch: number }

const collections: CollectionSpec[] = [{ name: 'tokens', keys: { user: 'string' } }, { name: 'users', keys: { name: 'string' } }]
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
  const look = () => tokens.getLinked('t', LINKS) as Linked<Token> | null
  return { tokens, users, raw, look }
}

t.test('a look-up that is repeated is answered with the same decoded documents, frozen', async (t) => {
  const { look } = await start(t)
  const first = look()
  const second = look()
  t.equal(second?.document, first?.document)
  t.equal(second?.linked.user, first?.linked.user)
  t.throws(() => { (second!.linked.user as User).name = 'changed by a guest' }, TypeError)
})

t.test('what has not changed is the same answer, whatever else was written', async (t) => {
  const { tokens, users, raw, look } = await start(t)
  look()
  const answer = look()
  t.equal(look(), answer)
  t.throws(() => { answer!.linked.user = null }, TypeError)
  const writing = users.insert({ id: 'other', name: 'other', epoch: 0 })
  t.equal(look(), answer, 'while something is being written')
  await writing
  t.equal(look(), answer, 'and after')
  t.equal(tokens.getLinked('t', { ...LINKS }), answer, 'the same question in other words')
  t.not(tokens.getLinked('t', {}), answer, 'another question has answers of its own')
  raw.exec('UPDATE "store.version" SET "version" = "version" + 1')
  t.not(look(), answer, 'not after what another connection did')
})

t.test('while an own write of a linked document is under way the old answer is not given', async (t) => {
  const { users, look } = await start(t)
  look()
  const answer = look()
  const writing = users.update('u', { increment: { epoch: 1 } })
  const meanwhile = look()
  t.not(meanwhile, answer, 'it is read')
  t.strictSame(meanwhile, answer, 'and is still what it was')
  await writing
  t.equal((look()?.linked.user as User).epoch, 1)
})

t.test('an own write is seen as soon as it is acknowledged, in the same turn too', async (t) => {
  const { tokens, users, look } = await start(t)
  for (let epoch = 1; epoch <= 20; epoch++) {
    look()
    await users.update('u', { increment: { epoch: 1 } })
    t.equal((look()?.linked.user as User).epoch, epoch)
  }
  await tokens.deleteMany({ equal: { user: 'u' } })
  t.equal(look(), null)
})

t.test('a document that is removed and made again is the new one, as soon as it is', async (t) => {
  const { users, raw, look } = await start(t)
  const committed = raw.prepare("SELECT doc ->> 'name' AS name FROM users WHERE id = 'u'")
  for (let round = 0; round < 20; round++) {
    look()
    const name = `round ${round}`
    const removed = users.delete('u')
    // Of the same batch, and of the next.
    if (round % 2 === 1) await new Promise(setImmediate)
    const made = users.insert({ id: 'u', name, epoch: 0 })
    await Promise.all([removed, made])
    t.equal((look()?.linked.user as User).name, name)
    const again = Promise.all([users.delete('u'), users.insert({ id: 'u', name: `${name} again`, epoch: 0 })])
    await new Promise(setImmediate)
    // No answer comes meanwhile.
    for (const end = performance.now() + 10_000; performance.now() < end && committed.get()?.name === name;);
    t.equal((look()?.linked.user as User).name, `${name} again`, 'when it is committed and not yet answered')
    await again
    t.equal((look()?.linked.user as User).name, `${name} again`)
  }
})

t.test('an own write leaves the rest of the cache as it was', async (t) => {
  const { users, look } = await start(t)
  const { document } = look()!
  await users.insert({ id: 'other', name: 'other', epoch: 0 })
  t.equal(look()?.document, document)
})

t.test('an own write that is committed and not answered yet leaves the rest of the cache in use', async (t) => {
  const { users, raw, look } = await start(t)
  const { document } = look()!
  const committed = raw.prepare("SELECT 1 FROM users WHERE id = 'other'")
  const writing = users.insert({ id: 'other', name: 'other', epoch: 0 })
  await new Promise(setImmediate)
  // No answer comes meanwhile: this turn of the event loop goes on.
  for (const end = performance.now() + 10_000; performance.now() < end && committed.get() === undefined;);
  for (const end = performance.now() + 10_000; performance.now() < end && look()?.document !== document;);
  t.equal(look()?.document, document)
  raw.exec("UPDATE users SET doc = json_set(doc, '$.name', 'another') WHERE id = 'u'")
  t.equal((look()?.linked.user as User).name, 'another')
  await writing
  t.equal((look()?.linked.user as User).name, 'another')
})

t.test('what deleteMany does not remove stays known', async (t) => {
  const { tokens, raw, look } = await start(t)
  for (let number = 0; number < 250; number++) await tokens.insert({ id: `old${number}`, user: 'gone', epoch: 0 })
  look()
  const answer = look()
  t.equal(await tokens.deleteMany({ equal: { user: 'nobody' } }), 0)
  t.equal(look(), answer)
  t.equal(await tokens.deleteMany({ equal: { user: 'gone' } }), 250)
  t.equal(look(), answer)
  t.equal(Number(raw.prepare('SELECT count(*) AS count FROM tokens').get()!.count), 1)
  t.equal(await tokens.deleteMany({ equal: { user: 'u' } }), 1)
  t.equal(look(), null)
})

t.test("another connection's write is seen by the next look-up, in the same turn too, whatever tool made it", async (t) => {
  const { raw, look } = await start(t)
  for (let round = 0; round < 20; round++) {
    look()
    raw.exec(`UPDATE users SET doc = json_set(doc, '$.name', 'round ${round}')`)
    t.equal((look()?.linked.user as User).name, `round ${round}`)
  }
  raw.exec('DELETE FROM users')
  t.equal(look()?.linked.user, null)
})

t.test("another's write is seen when it comes between own writes", async (t) => {
  const { users, raw, look } = await start(t)
  for (let round = 0; round < 20; round++) {
    look()
    const own = users.update(`nobody-${round}`, { set: { name: 'x' } })
    const also = users.insert({ id: `v${round}`, name: 'v', epoch: 0 })
    raw.exec(`UPDATE users SET doc = json_set(doc, '$.name', 'round ${round}') WHERE id = 'u'`)
    await Promise.all([own, also])
    t.equal((look()?.linked.user as User).name, `round ${round}`)
  }
})

t.test('while nothing was committed the version is not read', async (t) => {
  let reads = 0
  let same = false
  const calls: string[] = []
  const cache = new DocumentCache(() => ++reads && 1)
  cache.watch({ isSame: () => same, keep: () => { calls.push('keep') }, forget: () => { calls.push('forget') } })
  t.equal(cache.isUsable(), true)
  t.strictSame([reads, calls], [1, ['forget', 'keep']])
  same = true
  t.equal(cache.isUsable(), true)
  t.equal(reads, 1)
  cache.send()
  cache.answer(null)
  t.equal(calls.at(-1), 'forget', 'of what a batch left nothing is known')
})

t.test('the protocol, step by step', async (t) => {
  let version = 7
  const cache = new DocumentCache(() => version)
  const fill = () => {
    t.equal(cache.isUsable(), true)
    cache.set('users', { id: 'u' }, 10)
    t.ok(cache.get('users', 'u'))
  }

  await t.test('a version that an own batch in flight may explain: neither used nor added to, then kept', async (t) => {
    fill()
    cache.send()
    version = 8
    t.equal(cache.isUsable(), false)
    cache.answer({ from: 7, to: 8 })
    t.equal(cache.isUsable(), true)
    t.ok(cache.get('users', 'u'))
  })

  await t.test("another's write before the own batch empties it", async (t) => {
    fill()
    cache.send()
    version = 10
    cache.answer({ from: 9, to: 10 })
    t.equal(cache.isUsable(), true)
    t.equal(cache.get('users', 'u'), undefined)
  })

  await t.test("another's write after the own batch empties it", async (t) => {
    fill()
    cache.send()
    version = 12
    t.equal(cache.isUsable(), false)
    cache.answer({ from: 10, to: 11 })
    t.equal(cache.isUsable(), true)
    t.equal(cache.get('users', 'u'), undefined)
  })

  await t.test('an own batch explains a version as soon as it has told of it, and only its own', async (t) => {
    fill()
    let told = { from: 11, to: 12 }
    cache.follow({ explains: ({ from, to }) => from === told.from && to === told.to })
    cache.send()
    version = 14
    t.equal(cache.isUsable(), false, 'what the batch before did explains nothing')
    told = { from: 12, to: 14 }
    t.equal(cache.isUsable(), true)
    t.ok(cache.get('users', 'u'))
    cache.answer({ from: 12, to: 14 })
    t.equal(cache.isUsable(), true)
    t.ok(cache.get('users', 'u'))
    cache.send()
    version = 17
    told = { from: 15, to: 17 }
    t.equal(cache.isUsable(), false, "another's write came before it")
    told = { from: 14, to: 16 }
    t.equal(cache.isUsable(), false, "another's write came after it")
    told = { from: 14, to: 17 }
    t.equal(cache.isUsable(), true)
    version = 18
    t.equal(cache.isUsable(), false)
    cache.answer({ from: 14, to: 17 })
    t.equal(cache.isUsable(), true)
    t.equal(cache.get('users', 'u'), undefined)
  })

  await t.test('a batch of which nothing is known empties it', async (t) => {
    fill()
    cache.send()
    cache.answer(null)
    t.equal(cache.isUsable(), true)
    t.equal(cache.get('users', 'u'), undefined)
  })

  await t.test('what a write touches is not kept until the write is answered, each of them', async (t) => {
    fill()
    cache.touch('users', 'u')
    cache.touch('users', 'u')
    t.equal(cache.get('users', 'u'), undefined)
    cache.set('users', { id: 'u' }, 10)
    t.equal(cache.get('users', 'u'), undefined)
    cache.release('users', 'u')
    cache.set('users', { id: 'u' }, 10)
    t.equal(cache.get('users', 'u'), undefined)
    cache.release('users', 'u')
    fill()
  })
})

t.test('it is bounded in documents and in their size', async (t) => {
  const cache = new DocumentCache(() => 1)
  cache.isUsable()
  for (let number = 0; number < 25_000; number++) cache.set('users', { id: `u${number}` }, 100)
  t.equal(cache.get('users', 'u0'), undefined)
  t.ok(cache.get('users', 'u24999'))
  cache.set('tokens', { id: 'whole' }, 16_000_001)
  t.equal(cache.get('tokens', 'whole'), undefined)
})
