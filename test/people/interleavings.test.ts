import t, { type Test } from 'tap'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import '../helpers/plain-threads.ts'
import { interleave } from './interleavings.ts'

// 10,000 are in test/long.
const SEED = 2026

/** How many races follow each other, and how many of them differ. The first few tell soon whether the calls are scheduled. */
const ROUNDS = [{ seed: SEED, runs: 10, least: 8 }, { seed: SEED + 10, runs: 50, least: 40 }]

t.setTimeout(600_000)

for (const [name, createDatabase, skip] of [
  ['SQLite', (t: Test) => `sqlite:${t.testdir()}/identity.db`, false],
  ['MongoDB', (t: Test) => reuseMongoDatabase(t, MONGODB_URL!), MONGODB_URL === undefined && 'MONGODB_URL is not set']
] as const) {
  for (const { seed, runs, least } of ROUNDS) {
    t.test(`of what races over HTTP for an account one wins, and nothing survives, on ${name}, from seed ${seed}`, { skip }, async (t) => {
      const { orders, problems } = await interleave(t, { database: createDatabase(t), runs, seed })
      t.same(problems, [])
      t.ok(orders >= least, `${orders} orders tried, and at least ${least} expected`)
    })
  }
}
