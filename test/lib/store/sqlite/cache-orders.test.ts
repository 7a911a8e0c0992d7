import t, { type Test } from 'tap'
import type { CollectionSpec, Document } from '../../../../lib/store/port.ts'
import type { Backend } from '../../../../lib/store/sqlite/backend.ts'
import { DocumentCache } from '../../../../lib/store/sqlite/cache.ts'
import { SqliteCollection } from '../../../../lib/store/sqlite/collection.ts'
import { Connection } from '../../../../lib/store/sqlite/connection.ts'
import { type Operation, type Versions, readChanges, readVersion, runBatch } from '../../../../lib/store/sqlite/operations.ts'
import { migrate } from '../../../../lib/store/sqlite/schema.ts'
import { Table } from '../../../../lib/store/sqlite/sql.ts'
import { type Choose, createRandom, exhaust } from '../../../helpers/scheduler.ts'
import type { StoreCall } from '../../../helpers/wrap-store.ts'

// Tests the cache in every order of own writes, other processes' commits, look-ups and turns of the event loop. The statements run
// on a real database; the test decides their order.

const collections: CollectionSpec[] = [{ name: 'tokens', keys: { user: 'string' } }, { name: 'users', keys: {} }]
const tables = new Map(collections.map((spec) => [spec.name, new Table(spec)]))
const LINKS = { user: 'users' }

type Write = readonly [collection: 'tokens' | 'users', id: string]

/** A document as JSON, or null, by its id. */
type State = Record<'t' | 'u', string | null>

/** A store of one token and its user. The test runs its batches and turns step by step. */
class World {
  readonly connection = new Connection(':memory:', { busy: 0 })
  #version = 0
  #turn = 0
  readonly #cache = new DocumentCache(() => readVersion(this.connection), { turn: () => this.#turn, readChanges: () => readChanges(this.connection) })
  readonly #tokens: SqliteCollection<Document>
  #waiting: Write[] = []
  #sent: Write[] = []
  #committed: { versions: Versions, state: number } | null = null
  /** The content of the database. */
  #present: State = { t: null, u: null }
  /** Every content of the database, in order. */
  #states: State[] = []
  /** The first state a look-up may answer from: for all documents, and for those that an own write changed. */
  #floor = 0
  #ownFloor = { t: 0, u: 0 }
  #stamps = new Map<number, string>()
  #copy: { state: State, version: string, changes: string } | null = null

  constructor () {
    migrate(this.connection, collections)
    const backend: Partial<Backend> = { connection: this.connection, tables, cache: this.#cache, verify: () => {}, read: (run) => run(this.connection) }
    this.#tokens = new SqliteCollection(backend as Backend, tables.get('tokens')!)
  }

  /** Begins another order, with an empty cache. */
  reset (): void {
    this.#cache.answer(null)
    this.#states = []
    this.#stamps.clear()
    this.#write(['tokens', 't'], ['users', 'u'])
    this.#copy = { state: this.#record(), version: readVersion(this.connection)!, changes: readChanges(this.connection) }
    this.turn()
  }

  /** Queues an own batch. */
  request (...writes: Write[]): void {
    for (const [collection, id] of writes) this.#cache.collection(collection).beginWrite(id)
    this.#waiting.push(...writes)
  }

  send (): void {
    this.#sent = this.#waiting.splice(0)
    this.#cache.send()
  }

  commit (): void {
    const versions = this.#write(...this.#sent)
    this.#record()
    this.#committed = { versions, state: this.#states.length - 1 }
  }

  answer (): void {
    const { versions, state } = this.#committed!
    this.#cache.answer(versions)
    for (const [collection, id] of this.#sent.splice(0)) {
      this.#cache.collection(collection).endWrite(id)
      if (id === 't' || id === 'u') this.#ownFloor[id] = state
    }
  }

  /** The own writes that wait are given up. */
  expire (): void {
    for (const [collection, id] of this.#waiting.splice(0)) this.#cache.collection(collection).endWrite(id)
  }

  /** The batch is committed, and the thread dies before it acknowledges it. */
  die (): void {
    const { state } = this.#committed!
    this.#cache.answer(null)
    for (const [collection, id] of this.#sent.splice(0)) {
      this.#cache.collection(collection).endWrite(id)
      if (id === 't' || id === 'u') this.#ownFloor[id] = state
    }
  }

  /** A commit of another process of the service. */
  change (collection: Write[0], id: string): void {
    this.#write([collection, id])
    this.#record()
  }

  /** Commits of another program, which leave no version. */
  edit (collection: Write[0], id: string): void {
    this.connection.run(tables.get(collection)!.put(this.#next(id)))
    this.#record()
  }

  remove (): void {
    this.connection.database.exec("DELETE FROM users WHERE id = 'u'")
    this.#present = { ...this.#present, u: null }
    this.#record()
  }

  /** Restores a backup of the beginning over the file, with its version and the changes before it. */
  restore (): void {
    const { state, version, changes } = this.#copy!
    this.connection.run(tables.get('tokens')!.put(JSON.parse(state.t!) as Document))
    this.connection.run(tables.get('users')!.put(JSON.parse(state.u!) as Document))
    this.#present = state
    this.connection.run({ sql: 'UPDATE "store.content" SET "version" = CAST(? AS INTEGER)', values: [version] })
    this.connection.run({ sql: 'UPDATE "store.changes" SET "lines" = ?', values: [changes] })
    this.#record()
  }

  turn (): void {
    this.#turn++
    this.#beginTurn()
  }

  /** Returns the fault of a look-up: an answer is older than allowed, or its stamp was used for other content. */
  look (): string | null {
    const found = this.#tokens.getLinked('t', LINKS)!
    const answer = { t: JSON.stringify(found.document), u: found.linked.user === null ? null : JSON.stringify(found.linked.user) }
    for (const id of ['t', 'u'] as const) {
      const allowed = this.#states.slice(Math.max(this.#floor, this.#ownFloor[id])).map((state) => state[id])
      if (!allowed.includes(answer[id])) return `${id} is ${answer[id]}, and may be ${allowed.join(' or ')}`
    }
    if (found.stamp === undefined) return null
    const content = JSON.stringify(answer)
    if (answer.u === null) return 'an answer without a user has a stamp'
    if ((this.#stamps.get(found.stamp) ?? content) !== content) return `the stamp of ${this.#stamps.get(found.stamp)} is that of ${content}`
    this.#stamps.set(found.stamp, content)
    return null
  }

  /** Whether look-ups no longer read the documents. Another program leaves no version to cache them by. */
  isCached (): boolean {
    return readVersion(this.connection) === null || this.#states.at(-1)!.u === null || this.#tokens.getLinked('t', LINKS)!.stamp !== undefined
  }

  #beginTurn (): void {
    this.#floor = this.#states.length - 1
    // Writes that a restore has undone need not be seen any more.
    this.#ownFloor = { t: this.#floor, u: this.#floor }
  }

  /** The next content of a document. */
  #next (id: string): Document {
    const document = { id, ...(id === 't' && { user: 'u' }), ...{ version: ++this.#version } }
    this.#present = { ...this.#present, [id]: JSON.stringify(document) }
    return document
  }

  #write (...writes: Write[]): Versions {
    const operations = writes.map(([collection, id]): Operation => ({ kind: 'run', ...tables.get(collection)!.put(this.#next(id)) }))
    return runBatch(this.connection, tables, operations, { changed: writes.map(([collection, id]) => ({ collection, id })) }).versions!
  }

  #record (): State {
    this.#states.push(this.#present)
    return this.#present
  }
}

/** What a step reads or writes. Two steps with nothing in common can be made in either order. */
type Part = 'cache' | 'content' | 'history' | 'floor'

interface Step {
  act: (world: World) => string | null | void
  parts: readonly Part[]
}

type Script = readonly Step[]

const CONTENT: Part[] = ['content', 'history']

const look: Step = { act: (world) => world.look(), parts: ['cache', 'content', 'history', 'floor'] }
const turn: Step = { act: (world) => world.turn(), parts: ['history', 'floor'] }
const send: Step = { act: (world) => world.send(), parts: ['cache'] }
const expire: Step = { act: (world) => world.expire(), parts: ['cache'] }
const commit: Step = { act: (world) => world.commit(), parts: CONTENT }
const answer: Step = { act: (world) => world.answer(), parts: ['cache', 'floor'] }
const die: Step = { act: (world) => world.die(), parts: ['cache', 'floor'] }
const own = (...writes: Write[]): Step => ({ act: (world) => world.request(...writes), parts: ['cache'] })
const changeUser: Step = { act: (world) => world.change('users', 'u'), parts: CONTENT }
const changeToken: Step = { act: (world) => world.change('tokens', 't'), parts: CONTENT }
const changeOther: Step = { act: (world) => world.change('users', 'v'), parts: CONTENT }
const editUser: Step = { act: (world) => world.edit('users', 'u'), parts: CONTENT }
const editToken: Step = { act: (world) => world.edit('tokens', 't'), parts: CONTENT }
const remove: Step = { act: (world) => world.remove(), parts: CONTENT }
const restore: Step = { act: (world) => world.restore(), parts: CONTENT }

const USER = ['users', 'u'] as const
const TOKEN = ['tokens', 't'] as const
const OTHER = ['users', 'v'] as const

const times = (count: number, step: Step) => Array<Step>(count).fill(step)

/** Runs the scripts' steps in one order. Returns the fault with the order, or null. */
function run (world: World, scripts: Record<string, Script>, choose: Choose): string | null {
  world.reset()
  const order: string[] = []
  const left = Object.entries(scripts).map(([name, steps]) => ({ name, steps: [...steps] }))
  while (left.length > 0) {
    const index = choose(left.length, left.map(({ name, steps }) => ({ id: `${name} ${steps.length}`, actor: name, collection: '', method: '', args: steps[0]!.parts as Part[] })))
    const { name, steps } = left[index]!
    order.push(name)
    const wrong = steps.shift()!.act(world)
    if (typeof wrong === 'string') return `${wrong}, after ${order.join(', ')}`
    if (steps.length === 0) left.splice(index, 1)
  }
  // The next turn sees all changes.
  world.turn()
  const wrong = world.look() ?? world.look() ?? (world.isCached() ? null : 'the documents are not cached')
  return wrong === null ? null : `${wrong}, at the end of ${order.join(', ')}`
}

/** Whether two steps, whose parts are given as their arguments, have nothing in common. */
const areApart = (one: StoreCall, other: StoreCall): boolean => one.args.every((part) => !other.args.includes(part))

const SCENARIOS: Record<string, Record<string, Script>> = {
  'an own write of the user': { own: [own(USER), send, commit, answer], other: [changeUser], look: times(3, look), turn: times(2, turn) },
  'an own write of something else': { own: [own(OTHER), send, commit, answer], other: [changeUser], look: times(3, look), turn: times(2, turn) },
  'an own write of both': { own: [own(USER, TOKEN), send, commit, answer], other: [changeOther], look: times(3, look), turn: times(2, turn) },
  'a thread that dies': { own: [own(USER), send, commit, die], other: [changeToken], look: times(3, look), turn: times(2, turn) },
  'two own batches': { own: [own(USER), send, own(OTHER), commit, answer, send, commit, answer], other: [changeUser], look: times(3, look), turn: [turn] },
  'an own write that expires while it waits': { own: [own(OTHER), send, own(USER), expire, commit, answer], other: [changeToken], look: times(3, look), turn: times(2, turn) },
  'two own writes of one document': { own: [own(USER), send, own(USER), commit, answer, send, commit, answer], look: times(3, look), turn: times(2, turn) },
  'a user that is removed': { own: [own(TOKEN), send, commit, answer], other: [remove, changeUser], look: times(3, look), turn: [turn] },
  'edits by another program': { other: [editUser, changeOther, editToken], look: times(3, look), turn: times(3, turn) },
  'edits around an own write': { own: [own(OTHER), send, commit, answer], other: [editUser, editToken], look: times(3, look), turn: times(2, turn) },
  'an edit between two own writes': { own: [own(OTHER), send, commit, answer, own(TOKEN), send, commit, answer], other: [editUser], look: times(3, look), turn: [turn] },
  'a restored backup': { other: [changeUser, changeToken, restore], look: times(4, look), turn: times(3, turn) },
  'a backup restored during an own write': { own: [own(OTHER), send, commit, answer], other: [changeUser, restore], look: times(3, look), turn: [turn] }
}

t.test('no order of events lets a look-up answer with a stale document or a wrong stamp', async (t) => {
  const world = new World()
  t.teardown(() => world.connection.close())
  for (const [name, scripts] of Object.entries(SCENARIOS)) {
    const wrong: string[] = []
    await exhaust({ least: 1_300, commute: areApart }, async (choose) => {
      const found = run(world, scripts, choose)
      if (found !== null) wrong.push(found)
    })
    t.strictSame(wrong.slice(0, 3), [], name)
  }
})

t.test('nor does a random order of many', (t: Test) => {
  const world = new World()
  t.teardown(() => world.connection.close())
  for (let seed = 1; seed <= 1_000; seed++) {
    const choose = createRandom(seed)
    const writes = [[own(USER)], [own(TOKEN)], [own(OTHER)], [own(USER, OTHER)], [own(USER), own(TOKEN)]]
    const batches = Array.from({ length: 4 }, () => [...writes[choose(writes.length)]!, send, commit, choose(8) === 0 ? die : answer])
    const commits = Array.from({ length: 5 }, () => [changeUser, changeToken, changeOther, remove, restore][choose(5)]!)
    const wrong = run(world, { own: batches.flat(), other: commits, look: times(20, look), turn: times(6, turn) }, choose)
    if (wrong !== null) t.fail(`seed ${seed}: ${wrong}`)
  }
  t.end()
})
