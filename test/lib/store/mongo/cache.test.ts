import type { Db } from 'mongodb'
import t, { type Test } from 'tap'
import { StaleCache } from '../../../../lib/store/mongo/cache.ts'
import { Calls } from '../../../../lib/store/mongo/calls.ts'
import { MongoCollection } from '../../../../lib/store/mongo/collection.ts'
import { Turns } from '../../../../lib/store/mongo/turns.ts'
import type { CollectionSpec, Document, Linked } from '../../../../lib/store/port.ts'
import { ServerStandIn, settled } from './stand-in.ts'

// A stand-in for the server, and a clock of the test's: every order of a read and a write can be walked through.

interface Token extends Document { user: string, epoch: number }
interface User extends Document { epoch: number }

const STALENESS = 1_000
const LINKS = { user: 'users' }
const SPECS: CollectionSpec[] = [
  { name: 'tokens', keys: { user: 'string', epoch: 'number' }, stale: true },
  { name: 'codes', keys: { user: 'string' } },
  { name: 'users', keys: { epoch: 'number' } }
]

function setUp ({ timeout = 60_000 } = {}) {
  const server = new ServerStandIn()
  for (const id of ['t', 'sibling']) server.collection('tokens').set(id, { _id: id, user: 'u', epoch: 0 })
  server.collection('codes').set('c', { _id: 'c', user: 'u' })
  server.collection('users').set('u', { _id: 'u', epoch: 0 })
  const clock = { now: 0 }
  const db = { collection: (name: string) => server.native(name) } as unknown as Db
  const context = {
    db,
    reads: db,
    calls: new Calls(timeout),
    turns: new Turns(),
    cache: new StaleCache(STALENESS, () => clock.now),
    spec: (wanted: string) => SPECS.find(({ name }) => name === wanted)!
  }
  const tokens = new MongoCollection<Token>(context, 'tokens')
  const users = new MongoCollection<User>(context, 'users')
  const codes = new MongoCollection<Token>(context, 'codes')

  /** Looks up, and lets the server answer at once when it is asked. Tells whether it was. */
  async function look (id = 't'): Promise<{ found: Linked<Token> | null, asked: boolean }> {
    const answer = tokens.getLinked(id, LINKS)
    if (!(answer instanceof Promise)) return { found: answer, asked: false }
    await settled()
    server.answer('look-up')
    return { found: await answer, asked: true }
  }

  /** What the server would answer now. */
  function stored (id = 't'): unknown {
    const token = server.collection('tokens').get(id)
    const user = server.collection('users').get('u')
    const show = (raw: { _id: string } | undefined) => raw === undefined ? null : Object.fromEntries(Object.entries(raw).map(([name, value]) => [name === '_id' ? 'id' : name, value]))
    return token === undefined ? null : { document: show(token), linked: { user: show(user) } }
  }
  return { server, clock, tokens, users, codes, look, stored }
}

t.test('a look-up is answered from what was read, the same object and frozen, for so long and no longer', async (t) => {
  const { server, clock, look, stored } = setUp()
  const { found } = await look()
  t.strictSame(found, stored())
  server.collection('users').set('u', { _id: 'u', epoch: 1 })
  clock.now = STALENESS
  const again = await look()
  t.strictSame(again.asked, false)
  t.equal(again.found, found, "another process's write is not seen yet")
  t.throws(() => { (again.found!.linked.user as User).epoch = 7 }, TypeError)
  t.throws(() => { again.found!.linked.user = null }, TypeError)
  clock.now = STALENESS + 1
  t.strictSame(await look(), { found: stored(), asked: true }, 'and now it is')
})

t.test('the time counts from when the look-up was sent', async (t) => {
  const { server, clock, tokens, look } = setUp()
  const slow = tokens.getLinked('t', LINKS)
  await settled()
  clock.now = STALENESS
  server.answer('look-up')
  await slow
  t.equal((await look()).asked, false)
  clock.now++
  t.equal((await look()).asked, true)
})

t.test('what is known of a user serves all his tokens, and is as new as the last that asked', async (t) => {
  const { server, clock, look, stored } = setUp()
  await look()
  server.collection('users').set('u', { _id: 'u', epoch: 1 })
  clock.now = 600
  const { found: sibling } = await look('sibling')
  t.strictSame(sibling, stored('sibling'))
  const { found, asked } = await look()
  t.equal(asked, false)
  t.equal(found!.linked.user, sibling!.linked.user)
  t.equal((await look()).found, found)
  clock.now = STALENESS + 1
  t.equal((await look('sibling')).asked, false)
})

t.test('an answer that comes late does not take the place of a newer one', async (t) => {
  const { server, clock, tokens, look, stored } = setUp()
  const late = tokens.getLinked('t', LINKS)
  await settled()
  server.run('look-up')
  server.collection('users').set('u', { _id: 'u', epoch: 1 })
  clock.now = 1
  const early = tokens.getLinked('sibling', LINKS)
  await settled()
  server.answer('look-up', -1)
  await early
  server.answer('look-up')
  await late
  t.strictSame((await look()).found, stored())
})

t.test('what is not there is asked for each time, and so is what is not declared stale', async (t) => {
  const { server, codes, look } = setUp()
  t.equal((await look('nobody')).asked, true)
  t.equal((await look('nobody')).asked, true)
  server.collection('users').delete('u')
  t.strictSame((await look()).found!.linked, { user: null })
  t.equal((await look()).asked, true)
  for (let time = 0; time < 2; time++) {
    const answer = codes.getLinked('c', LINKS)
    t.ok(answer instanceof Promise)
    await settled()
    server.answer('look-up')
    t.equal(Object.isFrozen(await answer), false)
  }
})

/** Every kind of write, of the document that is looked up and of one that it points at. */
const WRITES: Record<string, (scene: ReturnType<typeof setUp>) => Promise<unknown>> = {
  'update of the user': ({ users }) => users.update('u', { increment: { epoch: 1 } }),
  'put of the user': ({ users }) => users.put({ id: 'u', epoch: 1 }),
  'delete of the user': ({ users }) => users.delete('u'),
  'take of the user': ({ users }) => users.take('u'),
  'deleteMany of users': ({ users }) => users.deleteMany({ equal: { epoch: 0 } }),
  'update of the token': ({ tokens }) => tokens.update('t', { increment: { epoch: 1 } }),
  'put of the token': ({ tokens }) => tokens.put({ id: 't', user: 'u', epoch: 1 }),
  'delete of the token': ({ tokens }) => tokens.delete('t'),
  'take of the token': ({ tokens }) => tokens.take('t'),
  'deleteMany of tokens': ({ tokens }) => tokens.deleteMany({ equal: { user: 'u' } })
}

/** All orders of two sequences, as which of them goes next. */
function orders (reads: number, writes: number): ('read' | 'write')[][] {
  if (reads === 0 && writes === 0) return [[]]
  return [
    ...(reads > 0 ? orders(reads - 1, writes).map((rest) => ['read' as const, ...rest]) : []),
    ...(writes > 0 ? orders(reads, writes - 1).map((rest) => ['write' as const, ...rest]) : [])
  ]
}

/** A look-up of one token of the user is asked for, run and answered while a write is: what is kept afterwards? */
async function interleave (t: Test, write: (scene: ReturnType<typeof setUp>) => Promise<unknown>, order: ('read' | 'write')[], warm: boolean) {
  const scene = setUp()
  const { server, tokens, look, stored } = scene
  if (warm) {
    await look('t')
    await look('sibling')
    // So that the look-up asks the server, while the other token and the user are kept.
    await Promise.all([tokens.update('sibling', { increment: { epoch: 1 } }), settled().then(() => server.answer('write'))])
  }
  let [reading, writing]: Promise<unknown>[] = []
  const steps = {
    read: [() => { reading = Promise.resolve(tokens.getLinked('sibling', LINKS)) }, () => server.run('look-up'), () => server.answer('look-up')],
    write: [() => { writing = write(scene) }, () => server.run('write'), () => server.answer('write')]
  }
  for (const turn of order) {
    steps[turn].shift()!()
    await settled()
  }
  await Promise.all([reading, writing])
  const label = `${warm ? 'warm' : 'cold'}, ${order.join(' ')}`
  for (const id of ['t', 'sibling']) t.strictSame((await look(id)).found, stored(id), `${label}: ${id}`)
  // As long as both are still there they are kept, or else all of this would show nothing.
  const [first, second] = [await look(), await look()]
  if (first.found?.linked.user != null) t.strictSame([first.asked, second.found === first.found], [false, true], `${label}: and kept again`)
}

for (const [name, write] of Object.entries(WRITES)) {
  t.test(`${name}: acknowledged, it is seen, in whatever order a look-up and it went`, async (t) => {
    for (const order of orders(3, 3)) for (const warm of [false, true]) await interleave(t, write, order, warm)
  })

  t.test(`${name}: from when it is asked for to its answer nothing is answered from memory`, async (t) => {
    const scene = setUp()
    const { server, look, stored } = scene
    await look()
    const writing = write(scene)
    await settled()
    for (let time = 0; time < 2; time++) t.strictSame(await look(), { found: stored(), asked: true }, 'before')
    server.run('write')
    for (let time = 0; time < 2; time++) t.strictSame(await look(), { found: stored(), asked: true }, 'before the answer')
    server.answer('write')
    await writing
    t.strictSame(await look(), { found: stored(), asked: true }, 'after')
  })
}

t.test('a write that fails is over when it has failed; one whose caller gave up, when the driver has', async (t) => {
  const { server, users, look } = setUp({ timeout: 20 })
  await look()
  const failing = users.update('u', { increment: { epoch: 1 } })
  await settled()
  server.fail('write', new Error('broken'))
  await t.rejects(failing, { code: 'ErrDb' })
  t.strictSame([(await look()).asked, (await look()).asked], [true, false])
  await t.rejects(users.update('u', { increment: { epoch: 1 } }), { code: 'ErrDb' })
  t.strictSame([(await look()).asked, (await look()).asked], [true, true], 'it may still be done')
  server.answer('write')
  await settled()
  t.strictSame([(await look()).asked, (await look()).asked], [true, false])
})

t.test('a look-up remembers the writes it may have missed, whatever others end meanwhile', async (t) => {
  const { server, tokens, users, look, stored } = setUp()
  const long = tokens.getLinked('t', LINKS)
  await settled()
  server.run('look-up')
  const writing = users.update('u', { increment: { epoch: 1 } })
  await settled()
  server.answer('write')
  await writing
  const short = tokens.getLinked('nobody', LINKS)
  await settled()
  server.answer('look-up', -1)
  await short
  server.answer('look-up')
  await long
  t.strictSame(await look(), { found: stored(), asked: true })
})

t.test('a document that is inserted again is seen at once', async (t) => {
  const { server, tokens, look, stored } = setUp()
  await look()
  server.collection('tokens').delete('t')
  const inserting = tokens.insert({ id: 't', user: 'u', epoch: 5 })
  await settled()
  server.answer('write')
  await inserting
  t.strictSame((await look()).found, stored())
})

t.test('it is bounded in documents and in their size', async (t) => {
  const cache = new StaleCache(STALENESS, () => 0)
  const read = cache.begin()
  for (let number = 0; number < 25_000; number++) cache.keep(read, 'users', { id: `u${number}` })
  t.equal(cache.get('users', 'u0'), undefined)
  t.ok(cache.get('users', 'u24999'))
  const large = (id: string) => ({ id, text: 'x'.repeat(9_000_000) })
  cache.keep(read, 'tokens', large('a'))
  cache.keep(read, 'tokens', large('b'))
  t.equal(cache.get('tokens', 'a'), undefined)
  t.ok(cache.get('tokens', 'b'))
  cache.clear()
  t.equal(cache.get('users', 'u24999'), undefined)
})
