import { type CommandStartedEvent, MongoClient, Collection as Native } from 'mongodb'
import t, { type Test } from 'tap'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { openMongoStore } from '../../../lib/store/mongo.ts'
import { STATE_COLLECTION } from '../../../lib/store/mongo/state.ts'
import type { Collection, CollectionSpec, Json, ListQuery, Store } from '../../../lib/store/port.ts'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { type Thing, ids, read } from './conformance/suite.ts'
import { type Places, createPlaces } from './mongo/places.ts'
import { type Command, explain, findScans, findSorts } from './mongo/plans.ts'

t.setTimeout(120_000)

if (MONGODB_URL === undefined) {
  t.skip('MONGODB_URL is not set', async () => {})
} else {
  const places = createPlaces(t, MONGODB_URL)
  for (const [name, run] of Object.entries(cases(MONGODB_URL, places))) await t.test(name, run)
}

/** A store on a host's client, with the commands that the driver sends for it. */
interface Watched {
  client: MongoClient
  store: Store
  /** The commands since the last call, in order, without the driver's own and the reads of the state, which time decides. */
  sent: () => Command[]
  /** The number of reads of the state so far. */
  countStateReads: () => number
  database: string
}

function cases (server: string, places: Places): Record<string, (t: Test) => Promise<void>> {
  const specs: CollectionSpec[] = [
    { name: 'users', keys: { account: 'string', rank: 'number' }, unique: ['account'], indexes: [['rank']] },
    { name: 'tokens', keys: { user_id: 'string', client_id: 'string', grant_id: 'string', parent_id: 'string', expired_at: 'string' }, indexes: [['user_id']], expiry: 'expired_at' }
  ]

  async function open (t: Test, place: string, collections: readonly CollectionSpec[] = specs): Promise<Store> {
    const store = await openMongoStore(places.url(place), { collections, now: Date.now })
    t.teardown(() => store.close())
    return store
  }

  async function watch (t: Test, place: string, collections: readonly CollectionSpec[] = specs): Promise<Watched> {
    const client = new MongoClient(server, { monitorCommands: true })
    t.teardown(() => client.close())
    const commands: Command[] = []
    let stateReads = 0
    client.on('commandStarted', ({ command, commandName }: CommandStartedEvent) => {
      if (command.find === STATE_COLLECTION) stateReads++
      else if (commandName !== 'endSessions') commands.push(command)
    })
    const store = await openMongoStore(places.url(place), { collections, now: Date.now, client })
    commands.length = 0
    return { client, store, sent: () => commands.splice(0), countStateReads: () => stateReads, database: places.database(place) }
  }

  return {
    'the id is stored as _id and an expiry as a Date, so that the server removes expired documents': async (t) => {
      const store = await open(t, 'stored')
      const tokens = store.collection<Thing>('tokens')
      const expired = '2999-12-31T23:59:59.999Z'
      await tokens.insert({ id: 'a', user_id: 'u', expired_at: expired, note: '2999-12-31T23:59:59.999Z' })
      await tokens.insert({ id: 'b' })
      await tokens.update('b', { set: { expired_at: expired } })
      const raw = places.client.db(places.database('stored')).collection<{ _id: string }>('tokens')
      t.strictSame(await raw.find().sort({ _id: 1 }).toArray(), [
        { _id: 'a', user_id: 'u', expired_at: new Date(expired), note: '2999-12-31T23:59:59.999Z' },
        { _id: 'b', expired_at: new Date(expired) }
      ])
      t.match((await raw.indexes()).find(({ name }) => name === 'expired_at_1'), { key: { expired_at: 1 }, expireAfterSeconds: 0 })
      t.strictSame(await tokens.get('b'), { id: 'b', expired_at: expired })
    },

    'deleteMany keeps a document that has stopped matching since it was read': async (t) => {
      const tokens = (await open(t, 'moved')).collection<Thing>('tokens')
      await tokens.insertMany([{ id: 'a', user_id: 'u' }, { id: 'b', user_id: 'u' }])
      const { find } = Native.prototype
      t.intercept(Native.prototype, 'find', {
        value (this: Native, ...query: Parameters<Native['find']>) {
          const cursor = find.apply(this, query)
          const read = cursor.toArray.bind(cursor)
          cursor.toArray = async () => {
            const found = await read()
            await tokens.update('a', { set: { user_id: 'v' } })
            return found
          }
          return cursor
        }
      })
      t.equal(await tokens.deleteMany({ equal: { user_id: 'u' } }), 1)
      t.strictSame([await tokens.get('a'), await tokens.get('b')], [{ id: 'a', user_id: 'v' }, null])
    },

    'filters and sorts compare an expiry as a time': async (t) => {
      const tokens = (await open(t, 'expiry')).collection<Thing>('tokens')
      const times = ['2998-01-01T00:00:00.000Z', '2999-01-01T00:00:00.000Z', '2999-01-01T00:00:00.001Z']
      for (const [index, expired] of times.entries()) await tokens.insert({ id: String(index), expired_at: expired })
      await tokens.insert({ id: 'never' })
      await tokens.insert({ id: 'null', expired_at: null })
      t.strictSame(await ids(tokens, { filter: { before: { expired_at: times[2]! } } }), ['0', '1'])
      t.strictSame(await ids(tokens, { filter: { equal: { expired_at: times[1]! } } }), ['1'])
      t.strictSame(await ids(tokens, { sort: [{ key: 'expired_at', direction: 'desc' }] }), ['2', '1', '0', 'null', 'never'])
      t.equal(await tokens.update('1', { set: { user_id: 'u' } }, { before: { expired_at: times[1]! } }), null)
      for (const bad of ['2999', '2999-01-01T00:00:00Z', '2999-01-01', 'never']) {
        await t.rejects(tokens.insert({ id: 'x', expired_at: bad }), TypeError, `insert ${bad}`)
        await t.rejects(tokens.update('1', { set: { expired_at: bad } }), TypeError, `update ${bad}`)
        t.throws(() => tokens.stream({ filter: { before: { expired_at: bad } } }), TypeError, `before ${bad}`)
      }
      t.throws(() => tokens.stream({ filter: { contains: { expired_at: '2999' } } }), TypeError, 'a time contains no text')
    },

    'a value that BSON would change comes back as it went in': async (t) => {
      const users = (await open(t, 'awkward')).collection<Thing>('users')
      const awkward: Record<string, Json> = {
        'a reference': { $ref: 'users', $id: 'a', $db: 'x' },
        'a reference to a dotted name': [{ $ref: 'a.b', $id: 1 }],
        'half a reference': { $id: 1 },
        'a BSON type': { _bsontype: 'ObjectId', id: 'x' },
        'extended JSON': { $oid: '0123456789abcdef01234567' },
        'a NUL in a key': { 'a\0b': 1 },
        'our own mark': { '%json': '{"a":1}' },
        'half a surrogate pair': ['\ud800', { '\udfff': 1 }],
        'a key __proto__': JSON.parse('{"__proto__":{"admin":true}}'),
        'deep nesting': JSON.parse(`${'[{"a":'.repeat(120)}1${'}]'.repeat(120)}`)
      }
      for (const [id, info] of Object.entries(awkward)) {
        const user: Thing = { id, info, 'a%2Eb': 1, _id: 'mine', '': '', 'a\0': 1, '%': '%' }
        await users.insert(user)
        t.strictSame(await users.get(id), user, id)
        t.strictSame(await users.update(id, { set: { info: [info] } }), { ...user, info: [info] }, `${id} by an update`)
      }
    },

    'every declared look-up and list uses an index': async (t) => {
      const { client, store, sent, database } = await watch(t, 'plans', COLLECTIONS)
      const db = client.db(database)
      const { ferretdb } = await db.command({ buildInfo: 1 })
      for (const spec of COLLECTIONS as readonly CollectionSpec[]) {
        await db.collection<{ _id: string }>(spec.name).insertMany(Array.from({ length: 200 }, (_, number) => (
          { _id: String(number), ...Object.fromEntries(Object.keys(spec.keys).map((key) => [key, sample(spec, key, number)])) }
        )))
        const indexed = (await db.collection(spec.name).indexes()).map(({ key }) => Object.keys(key).join())
        const collection = store.collection<Thing>(spec.name)
        for (const [name, read] of Object.entries(lookups(spec, collection))) {
          sent()
          await read()
          const commands = sent()
          t.not(commands.length, 0, `${name} of ${spec.name} is seen`)
          for (const command of commands) {
            const plan = await explain(db, command)
            const label = `${name} of ${spec.name}`
            if (ferretdb === undefined) t.strictSame(findSorts(plan), [], `${label} sorts nothing`)
            // For a list without a filter FerretDB sorts the collection, where mongod walks the index.
            if (ferretdb !== undefined && command.sort !== undefined && Object.keys(command.filter as object).length === 0) {
              t.ok(indexed.includes([...(command.sort as Map<string, number>).keys()].join()), `${label} has its index`)
            } else {
              t.strictSame(findScans(plan), [], `${label} scans no collection`)
            }
          }
        }
      }
    },

    'a write is one statement, acknowledged by a majority in the journal': async (t) => {
      const { store, sent, countStateReads } = await watch(t, 'writes')
      const users = store.collection<Thing>('users')
      const writes: Record<string, () => Promise<unknown>> = {
        insert: () => users.insert({ id: 'a', rank: 1 }),
        put: () => users.put({ id: 'a', rank: 2 }),
        update: () => users.update('a', { set: { x: 1 }, unset: ['y'], increment: { rank: 1 } }, { equal: { rank: 2 } }),
        delete: () => users.delete('a')
      }
      const before = { reads: countStateReads(), time: performance.now() }
      await users.put({ id: 'first' })
      t.equal(countStateReads(), before.reads + 1, 'after a read of the state')
      t.match(sent(), [{ update: 'users' }])
      for (const [name, write] of Object.entries(writes)) {
        await write()
        t.match(sent(), [{ writeConcern: { w: 'majority', j: true, wtimeout: 10_000 } }], name)
      }
      const seconds = (performance.now() - before.time) / 1_000
      t.ok(countStateReads() - before.reads <= 1 + seconds, 'the state is read at most once a second')
    },

    'getLinked is one round trip': async (t) => {
      const { store, sent } = await watch(t, 'linked')
      await store.collection<Thing>('users').insert({ id: 'u' })
      const token = { id: 't', user_id: 'u', parent_id: 't', expired_at: '2999-01-01T00:00:00.000Z' }
      await store.collection<Thing>('tokens').insert(token)
      sent()
      t.strictSame(await store.collection<Thing>('tokens').getLinked('t', { user_id: 'users', parent_id: 'tokens' }), {
        document: token,
        linked: { user_id: { id: 'u' }, parent_id: token }
      })
      const [command, ...more] = sent()
      t.match(command, { aggregate: 'tokens' })
      t.strictSame(more, [])
      const links = { user_id: 'users' }
      const several = await Promise.all(['t', 'nobody', 't'].map((id) => store.collection<Thing>('tokens').getLinked(id, links)))
      const found = { document: token, linked: { user_id: { id: 'u' } } }
      t.strictSame(several, [found, null, found])
      t.match(sent(), [{ aggregate: 'tokens' }], 'and so are several at once')
    },

    'getLinked follows three links, of which any may be absent, null or point at nothing': async (t) => {
      const { store, sent } = await watch(t, 'links')
      const links = { user_id: 'users', client_id: 'users', grant_id: 'tokens' }
      const tokens = store.collection<Thing>('tokens')
      await store.collection<Thing>('users').insert({ id: 'u' })
      await tokens.insert({ id: 'grant' })
      for (const [id, fields, linked] of [
        ['all', { user_id: 'u', client_id: 'u', grant_id: 'grant' }, { user_id: { id: 'u' }, client_id: { id: 'u' }, grant_id: { id: 'grant' } }],
        ['absent', { user_id: 'u' }, { user_id: { id: 'u' }, client_id: null, grant_id: null }],
        ['null', { user_id: 'u', client_id: null, grant_id: null }, { user_id: { id: 'u' }, client_id: null, grant_id: null }],
        ['gone', { user_id: 'u', client_id: 'u', grant_id: 'nobody' }, { user_id: { id: 'u' }, client_id: { id: 'u' }, grant_id: null }]
      ] as const) {
        const document: Thing = { id, ...fields }
        await tokens.insert(document)
        sent()
        t.strictSame(await tokens.getLinked(id, links), { document, linked }, id)
        t.match(sent(), [{ aggregate: 'tokens' }], `${id} in one round trip`)
      }
    },

    'a list is one cursor read by the hundred; leaving it closes the cursor and frees its connection': async (t) => {
      const { client, database, store, sent } = await watch(t, 'cursors')
      let connections = 0
      client.on('connectionCheckedOut', () => connections++).on('connectionCheckedIn', () => connections--)
      await client.db(database).collection<{ _id: string }>('users')
        .insertMany(Array.from({ length: 350 }, (_, number) => ({ _id: String(number) })))
      sent()
      const users = store.collection<Thing>('users')
      t.equal((await read(users)).things.length, 350)
      t.match(sent(), [{ find: 'users', batchSize: 100 }, ...Array(3).fill({ collection: 'users', batchSize: 100 })])
      t.strictSame((await read(users, { limit: 101 })).sizes, [100, 1])
      const [page, ...rest] = sent()
      t.match([page, rest], [{ find: 'users', limit: 101 }, []], 'a batch and one more are one answer')
      const left = users.stream()[Symbol.asyncIterator]()
      t.equal((await left.next()).value?.length, 100)
      t.equal(connections, 0, 'an open cursor holds no connection')
      await left.return?.()
      const [find, kill, ...more] = sent()
      t.match([find, kill], [{ find: 'users' }, { killCursors: 'users' }])
      t.strictSame(more, [])
      await t.rejects(client.db(database).command({ getMore: (kill!.cursors as unknown[])[0], collection: 'users' }),
        { code: 43 }, 'the server has closed the cursor')
      t.equal(connections, 0)
    },

    'a list whose client is closed while it is read fails, and does not look complete': async (t) => {
      const { client, database, store } = await watch(t, 'cut')
      await client.db(database).collection<{ _id: string }>('users')
        .insertMany(Array.from({ length: 350 }, (_, number) => ({ _id: String(number) })))
      const list = store.collection<Thing>('users').stream()[Symbol.asyncIterator]()
      const unread = store.collection<Thing>('users').stream()[Symbol.asyncIterator]()
      await list.next()
      await client.close()
      await t.rejects(list.next(), { code: 'ErrDb' })
      await t.rejects(unread.next(), { code: 'ErrDb' })
    },

    'a list that was never read sends nothing': async (t) => {
      const { store, sent } = await watch(t, 'unread')
      store.collection('users').stream()
      await store.ping()
      t.match(sent(), [{ ping: 1 }])
    },

    'a client that was handed in is used and left open': async (t) => {
      const client = new MongoClient(server, { promoteValues: false, ignoreUndefined: false, w: 1, readPreference: 'secondaryPreferred' })
      t.teardown(() => client.close())
      let closed = false
      client.on('topologyClosed', () => { closed = true })
      const store = await openMongoStore(places.url('handed'), { collections: specs, now: Date.now, client })
      const users = store.collection<Thing>('users')
      await users.insert({ id: 'a', rank: 1, none: undefined })
      t.strictSame(await users.get('a'), { id: 'a', rank: 1 }, "whatever the host's own options are")
      t.equal(await users.count({ equal: { rank: 1 } }), 1)
      await store.close()
      await t.rejects(users.get('a'), { code: 'ErrDb' })
      t.notOk(closed)
      t.match(await client.db(places.database('handed')).collection('users').findOne(), { _id: 'a' })
    },

    'a function that makes a client is called once, and its client closed with the store': async (t) => {
      const clients: MongoClient[] = []
      let closed = 0
      const store = await openStore(places.url('made'), {
        client: async () => {
          clients.push(new MongoClient(server))
          clients[0]!.on('topologyClosed', () => closed++)
          return clients[0]!
        }
      })
      await store.collection<Thing>('keys').insert({ id: 'a' })
      t.match(await clients[0]!.db(places.database('made')).collection('keys').findOne(), { _id: 'a' })
      await store.close()
      t.equal(clients.length, 1)
      t.equal(closed, 1)
    },

    'an index that exists with other options stops the start, and the error names it': async (t) => {
      await places.client.db(places.database('conflict')).collection('users').createIndex({ account: 1 }, { name: 'account_1' })
      await t.rejects(open(t, 'conflict'), { code: 'ErrDb', message: /collection users has an index whose options differ.*account_1/s })
    },

    'documents that clash on a unique key stop the start, and the error does not show them': async (t) => {
      const users = places.client.db(places.database('clash')).collection<{ _id: string, account: string }>('users')
      await users.insertMany([{ _id: 'a', account: 'same@example.com' }, { _id: 'b', account: 'same@example.com' }])
      const error = await open(t, 'clash').then(() => null, (error: Error) => error)
      t.match(error, { code: 'ErrDb', message: /collection users has documents with the same value/ })
      t.notMatch(error?.message, /same@/)
    }
  }
}

function sample (spec: CollectionSpec, key: string, number: number): unknown {
  if (key === spec.expiry) return new Date(Date.UTC(2999, 0, 1 + number))
  return { string: `${key} ${number}`, number, boolean: number % 2 === 0 }[spec.keys[key]!]
}

/** One call for each look-up and each list that a collection declares. */
function lookups (spec: CollectionSpec, collection: Collection<Thing>): Record<string, () => Promise<unknown>> {
  const links = Object.fromEntries(['user_id', 'client_id', 'grant_id'].filter((key) => key in spec.keys).map((key) => [key, 'users']))
  const value = (key: string) => sample(spec, key, 7) as string | number | boolean
  const list = (query: ListQuery) => read(collection, { ...query, limit: 10 })
  const calls: Record<string, () => Promise<unknown>> = {
    get: () => collection.get('7'),
    getLinked: async () => collection.getLinked('7', links),
    'getLinked of several at once': () => Promise.all(Array.from({ length: 32 }, (_, number) => collection.getLinked(String(number), links))),
    put: () => collection.put({ id: 'put' }),
    update: () => collection.update('7', { set: { touched: true } }),
    delete: () => collection.delete('9')
  }
  for (const key of spec.unique ?? []) {
    calls[`getBy ${key}`] = () => collection.getBy(key, value(key))
    calls[`list sorted by ${key}`] = () => list({ sort: [{ key, direction: 'asc' }] })
  }
  for (const keys of spec.indexes ?? []) {
    const last = keys.at(-1)!
    const equal = Object.fromEntries(keys.slice(0, -1).map((key) => [key, value(key)]))
    for (const direction of ['asc', 'desc'] as const) {
      const query: ListQuery = { filter: { equal }, sort: [{ key: last, direction }] }
      calls[`list by ${keys.slice(0, -1)} sorted by ${last} ${direction}`] = () => list(query)
      calls[`list by ${keys.slice(0, -1)} sorted by ${last} ${direction} after a place`] = () => list({ ...query, after: { values: [value(last)], id: '7' } })
    }
    calls[`list by ${keys}`] = () => list({ filter: { equal: { ...equal, [last]: value(last) } } })
    calls[`count by ${keys[0]}`] = () => collection.count({ equal: { [keys[0]!]: value(keys[0]!) } })
    calls[`deleteMany by ${keys[0]}`] = () => collection.deleteMany({ equal: { [keys[0]!]: value(keys[0]!) } })
  }
  if (spec.expiry !== undefined) {
    const { expiry } = spec
    calls[`list before ${expiry}`] = () => list({ filter: { before: { [expiry]: '2999-01-03T00:00:00.000Z' } }, sort: [{ key: expiry, direction: 'asc' }] })
  }
  return calls
}
