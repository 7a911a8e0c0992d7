import { MongoClient } from 'mongodb'
import { RATES, type Case } from '../bench.ts'
import { tokenInfoLoad } from '../loads.ts'
import { fillStore } from '../seed.ts'
import { FILL } from './tokeninfo.ts'

export const BARE = 'bare Fastify route, the same reads by the raw driver'
export const IDENTITY = 'fastify-identity, MongoDB'

/** The URL with a database of this run's own. */
function ownDatabase (url: string): string {
  const own = new URL(url)
  own.pathname = `/bench_${process.pid}`
  return own.href
}

/** Whose token is this, asked of a MongoDB-compatible server on the same machine. */
export default {
  name: 'mongodb',
  title: 'Whose token is this, MongoDB-compatible server: 10,000 tokens in rotation',
  notes: [
    'Each app on one core; the database server on any, so that it is most of what is measured.',
    'The bare routes ask the server for each request by itself; ours asks once for those that come in the same moment.'
  ],
  columns: RATES,
  metric: 'rate',
  baseline: BARE,
  servers: async (bench) => {
    if (bench.settings.mongodbUrl === undefined) return []
    const url = ownDatabase(bench.settings.mongodbUrl)
    bench.atEnd(async () => {
      const client = await new MongoClient(url).connect()
      await client.db().dropDatabase()
      await client.close()
    })
    bench.log('filling the MongoDB database')
    await fillStore(url, FILL)
    return [
      { label: BARE, file: 'mongo-bare.ts', options: { url, reads: 'pipeline' } },
      { label: IDENTITY, file: 'identity.ts', options: { database: url } },
      { label: 'bare Fastify route, a read and then two at once', file: 'mongo-bare.ts', options: { url, reads: 'finds' } }
    ]
  },
  scenario: async (bench, servers) => {
    const subjects = []
    for (const [label, server] of servers) {
      const target = await bench.aim(server, tokenInfoLoad())
      subjects.push({ label, measure: () => bench.measure(target) })
    }
    return subjects
  }
} satisfies Case
