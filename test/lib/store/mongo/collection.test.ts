import type { Collection as Native } from 'mongodb'
import t from 'tap'
import { BoundedCalls } from '../../../../lib/store/mongo/bounded-calls.ts'
import { MongoCollection } from '../../../../lib/store/mongo/collection.ts'
import type { Stored } from '../../../../lib/store/mongo/documents.ts'
import { KeyedMutex } from '../../../../lib/store/mongo/keyed-mutex.ts'

// A stand-in for the driver gives answers that no server gives on request.

/** A collection whose driver answers replaceOne with `answers`, in order, each after `before`. */
function createCollection (answers: (Error | null)[], before: () => Promise<void> = async () => {}) {
  const sent: unknown[][] = []
  const native = {
    replaceOne: async (...command: unknown[]) => {
      sent.push(command)
      await before()
      const answer = answers.shift()
      if (answer) throw answer
    }
  } as unknown as Native<Stored>
  const collection = new MongoCollection({
    calls: new BoundedCalls(60_000),
    mutex: new KeyedMutex(),
    admit: async () => {},
    handle: () => ({ reads: native, writes: native }),
    spec: (name) => ({ name, keys: { account: 'string' }, unique: ['account'] })
  }, 'users')
  return { collection, sent }
}

const clash = (field: string) => Object.assign(new Error('E11000'), { code: 11000, keyPattern: { [field]: 1 } })

t.test('two puts of a new id may both insert: the loser puts again', async (t) => {
  const { collection, sent } = createCollection([clash('_id'), clash('_id'), null])
  await collection.put({ id: 'a' })
  t.strictSame(sent, Array(3).fill([{ _id: 'a' }, { _id: 'a' }, { upsert: true }]))
})

t.test('a put that clashes on another key, or repeatedly, rejects', async (t) => {
  const other = createCollection([clash('account')])
  await t.rejects(other.collection.put({ id: 'a' }), { name: 'DuplicateKeyError', field: 'account' })
  t.equal(other.sent.length, 1)
  const forever = createCollection(Array(100).fill(clash('_id')))
  await t.rejects(forever.collection.put({ id: 'a' }), { name: 'DuplicateKeyError', field: 'id' })
  t.equal(forever.sent.length, 5)
})

t.test('writes that share a unique value are sent one after another', async (t) => {
  let inFlight = 0
  const most: Record<string, number> = { same: 0, other: 0 }
  for (const kind of ['same', 'other']) {
    const { collection } = createCollection([], async () => {
      most[kind] = Math.max(most[kind]!, ++inFlight)
      await new Promise(setImmediate)
      inFlight--
    })
    await Promise.all([1, 2, 3].map((number) => collection.put({ id: `u${number}`, account: kind === 'same' ? 'x' : `x${number}` } as { id: string })))
  }
  t.strictSame(most, { same: 1, other: 3 })
})
