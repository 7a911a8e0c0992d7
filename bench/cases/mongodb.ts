import { MongoClient } from 'mongodb'
import { type Bench, BOTH, type Case } from '../bench.ts'
import { tokenInfoLoad } from '../loads.ts'
import { type Fill, fillStore } from '../seed.ts'
import { FILL } from './tokeninfo.ts'

export const BARE = 'bare Fastify route, the same reads by hand in one pipeline'
export const IDENTITY = 'fastify-identity, MongoDB'

/** Fills a database of this run, which is dropped at its end. @returns its URL, or undefined without a server */
export async function fillDatabase (bench: Bench, name: string, fill: Fill): Promise<string | undefined> {
  if (bench.settings.mongodbUrl === undefined) return undefined
  const url = new URL(bench.settings.mongodbUrl)
  url.pathname = `/bench_${process.pid}_${name}`
  bench.atEnd(async () => {
    const client = await new MongoClient(url.href).connect()
    await client.db().dropDatabase()
    await client.close()
  })
  bench.log('filling the MongoDB database')
  await fillStore(url.href, fill)
  return url.href
}

/** tokeninfo on a MongoDB-compatible server of the same machine. */
export default {
  name: 'mongodb',
  title: 'Whose token is this, MongoDB-compatible server: 10,000 tokens in rotation',
  notes: [
    'Each app on one core; the database server on any, and it does most of the work measured here.',
    'The bare routes send a statement for each request; the service sends one for all requests of the same moment.'
  ],
  ...BOTH,
  baseline: BARE,
  servers: async (bench) => {
    const url = await fillDatabase(bench, 'tokeninfo', FILL)
    if (url === undefined) return []
    return [
      { label: BARE, file: 'mongo-bare.ts', options: { url, reads: 'pipeline' } },
      { label: IDENTITY, file: 'identity.ts', options: { database: url } },
      { label: 'bare Fastify route, one read and then three at once', file: 'mongo-bare.ts', options: { url, reads: 'finds' } }
    ]
  },
  scenario: async (bench, servers) => {
    const subjects = []
    for (const [label, server] of servers) {
      const target = await bench.aim(server, tokenInfoLoad())
      subjects.push({ label, measure: () => bench.measureByBoth(target) })
    }
    return subjects
  }
} satisfies Case
