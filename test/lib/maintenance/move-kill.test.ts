import t from 'tap'
import { createMongoDatabase } from '../../helpers/mongo-database.ts'
import { MONGODB_URL } from '../../helpers/mongodb.ts'
import { killMoves } from '../../long/moves.ts'

t.setTimeout(120_000)

// test/long/moves.ts kills at every write, in every way.

t.test('a move to SQLite that is killed in the middle of a write goes on when it is called again', async (t) => {
  let targets = 0
  const directory = t.testdir()
  const kills = await killMoves(directory, () => `sqlite:${directory}/target-${targets++}.db`, ['during'], 3)
  t.ok(kills >= 3, `${kills} kills`)
})

t.test('a move to MongoDB too', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => {
  const kills = await killMoves(t.testdir(), () => createMongoDatabase(t, MONGODB_URL!), ['during'], 5)
  t.ok(kills >= 2, `${kills} kills`)
})
