import t from 'tap'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import '../helpers/plain-threads.ts'
import { interleave } from './interleavings.ts'

// 10,000 are in test/long.
const RUNS = 60
const SEED = 2026

t.setTimeout(180_000)

for (const [name, createDatabase, skip] of [
  ['SQLite', () => `sqlite:${t.testdir()}/identity.db`, false],
  ['MongoDB', () => reuseMongoDatabase(t, MONGODB_URL!), MONGODB_URL === undefined && 'MONGODB_URL is not set']
] as const) {
  t.test(`of what races over HTTP for an account one wins, and nothing survives, on ${name}`, { skip }, async (t) => {
    const { orders, problems } = await interleave(t, { database: createDatabase(), runs: RUNS, seed: SEED })
    t.same(problems, [])
    t.ok(orders > RUNS * 0.9, `${orders} different orders`)
  })
}
