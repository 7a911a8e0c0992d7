import { COST, DRIVER, MAIN_COST, RATE, type Bench, type Case, type Server } from '../bench.ts'
import { patchLoad, tokenInfoLoad } from '../loads.ts'
import { copyDatabase } from '../seed.ts'
import { FILL } from './tokeninfo.ts'

export const REST = 'at rest'
const CHANGES = 100
export const BESIDE = `beside ${CHANGES} changes a second of another process`

/** Runs load on one process while another one changes users. */
async function beside<T> (bench: Bench, writer: Server, work: () => Promise<T>): Promise<T> {
  const stop = await bench.disturb(writer, patchLoad(), CHANGES)
  try {
    return await work()
  } finally {
    await stop()
  }
}

/** Two processes with one file. */
export default {
  name: 'fleet',
  title: 'Whose token is this, while another process of the same file changes users',
  notes: ['Both processes share a core. The users who are changed are in rotation, as are the tokens.'],
  columns: [RATE, COST, MAIN_COST, DRIVER],
  compared: ['cpu'],
  baseline: REST,
  servers: async (bench) => {
    const options = { database: `sqlite:${await copyDatabase(FILL, bench.directory, bench.log)}` }
    return [{ label: 'reader', file: 'identity.ts', options }, { label: 'writer', file: 'identity.ts', options }]
  },
  scenario: async (bench, servers) => {
    const [reader, writer] = [servers.get('reader')!, servers.get('writer')!]
    // An answer has the name of the user, which changes.
    const target = await bench.aim(reader, { ...tokenInfoLoad(undefined, false), volatile: true }, false)
    return [
      { label: REST, measure: () => bench.measure(target) },
      { label: BESIDE, measure: () => beside(bench, writer, () => bench.measure(target)) }
    ]
  }
} satisfies Case
