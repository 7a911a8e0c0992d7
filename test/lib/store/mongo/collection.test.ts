import type { Db } from 'mongodb'
import t from 'tap'
import { Calls } from '../../../../lib/store/mongo/calls.ts'
import { MongoCollection } from '../../../../lib/store/mongo/collection.ts'
import { Turns } from '../../../../lib/store/mongo/turns.ts'

// What a server cannot be made to answer at will: a stand-in for the driver answers it.

/** A collection whose driver answers replaceOne with these, in order. */
function createCollection (answers: (Error | null)[]) {
  const sent: unknown[][] = []
  const native = {
    replaceOne: async (...command: unknown[]) => {
      sent.push(command)
      const answer = answers.shift()
      if (answer) throw answer
    }
  }
  const db = { collection: () => native } as unknown as Db
  const collection = new MongoCollection({
    db,
    reads: db,
    calls: new Calls(1_000),
    turns: new Turns(),
    spec: (name) => ({ name, keys: { account: 'string' }, unique: ['account'] })
  }, 'users')
  return { collection, sent }
}

const clash = (field: string) => Object.assign(new Error('E11000'), { code: 11000, keyPattern: { [field]: 1 } })

t.test('two puts of a new id may both insert: the one that lost puts again', async (t) => {
  const { collection, sent } = createCollection([clash('_id'), clash('_id'), null])
  await collection.put({ id: 'a' })
  t.strictSame(sent, Array(3).fill([{ _id: 'a' }, { _id: 'a' }, { upsert: true }]))
})

t.test('a put that clashes on another key, or again and again, is told so', async (t) => {
  const other = createCollection([clash('account')])
  await t.rejects(other.collection.put({ id: 'a' }), { name: 'DuplicateKeyError', field: 'account' })
  t.equal(other.sent.length, 1)
  const forever = createCollection(Array(100).fill(clash('_id')))
  await t.rejects(forever.collection.put({ id: 'a' }), { name: 'DuplicateKeyError', field: 'id' })
  t.equal(forever.sent.length, 5)
})
