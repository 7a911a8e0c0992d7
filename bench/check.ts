import { Bench, Server, DRIVER, P50, P99, RATE } from './bench.ts'
import { Child } from './child.ts'
import { tokenAt } from './fixture.ts'
import { tokenInfoLoad } from './loads.ts'
import { CORES } from './machine.ts'
import { toTable } from './report.ts'
import { readSettings } from './settings.ts'
import { spread } from './stats.ts'
import type { Sample } from './types.ts'

/** autocannon counts by the second. */
interface Autocannon {
  [name: string]: (params: never) => Promise<unknown>
  run: (params: { port: number, token: string, seconds: number, connections: number }) => Promise<Sample>
}

// Holds the driver against autocannon on one bare route, in turn: `npm run check`.

const settings = readSettings(process.argv.slice(2))
const seconds = Math.max(1, Math.round(settings.seconds))
const bench = new Bench(settings)
const server = new Server({ label: 'bare', file: 'bare.ts' })
const other = new Child<Autocannon>('driver/autocannon.ts', [], CORES.driver)
const { port } = await server.child.ready
const target = await bench.aim(server, tokenInfoLoad(undefined, false))
const samples: Record<string, Sample[]> = { 'this driver': [], autocannon: [] }
for (let round = -settings.warmups; round < settings.rounds; round++) {
  const own = await bench.measure(target, { seconds })
  const theirs = await other.call('run', { port, token: tokenAt(0), seconds, connections: settings.connections })
  if (round < 0) continue
  samples['this driver']!.push(own)
  samples.autocannon!.push(theirs)
}
await Promise.all([bench.close(), server.child.stop(), other.stop()])
const columns = [RATE, P50, P99, DRIVER]
console.log(toTable([
  ['', ...columns.map(({ title }) => title)],
  ...Object.entries(samples).map(([name, rounds]) => (
    [name, ...columns.map(({ metric, digits }) => spread(rounds.map((sample) => sample[metric]!)).median.toFixed(digits))]
  ))
]))
