import { RATES, type Case } from '../bench.ts'
import { CLIENTS, range } from '../fixture.ts'
import { tokenInfoLoad } from '../loads.ts'
import { ensureFile } from '../seed.ts'

export const FEW = 5_000
export const FEW_TOKENS = '5,000 tokens, all in rotation'
const IN_ROTATION = 10_000
const WIDE = 100_000

export const manyOf = (full: boolean) => full ? 5_000_000 : 500_000
const spread = (count: number, of: number) => range(count, (index) => Math.floor(index * of / count))

export const manyTokens = (full: boolean) => `${manyOf(full).toLocaleString('en')} tokens, 10,000 in rotation`

/** A look-up should cost the same among millions of tokens. */
export default {
  name: 'tokens',
  title: 'Whose token is this, as tokens grow',
  notes: ['fastify-identity on SQLite, on one core; 5,000 users and 1,000 clients each time. The tokens belong to no grant.'],
  columns: RATES,
  compared: ['rate'],
  baseline: FEW_TOKENS,
  servers: async (bench) => {
    const server = async (label: string, tokens: number) => {
      const database = `sqlite:${await ensureFile({ users: FEW, clients: CLIENTS, tokens }, bench.log)}`
      return { label, file: 'identity.ts', options: { database } }
    }
    return [await server('few', FEW), await server('many', manyOf(bench.settings.full))]
  },
  scenario: async (bench, servers) => {
    const { full } = bench.settings
    const few = await bench.aim(servers.get('few')!, tokenInfoLoad(range(FEW, (index) => index), false))
    const many = await bench.aim(servers.get('many')!, tokenInfoLoad(spread(IN_ROTATION, manyOf(full)), false))
    const wide = await bench.aim(servers.get('many')!, tokenInfoLoad(spread(WIDE, manyOf(full)), false))
    return [
      { label: FEW_TOKENS, measure: () => bench.measure(few) },
      { label: manyTokens(full), measure: () => bench.measure(many) },
      { label: `${manyOf(full).toLocaleString('en')} tokens, 100,000 in rotation`, measure: () => bench.measure(wide) }
    ]
  }
} satisfies Case
