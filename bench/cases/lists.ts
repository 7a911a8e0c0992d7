import type { Bench, Case, Server } from '../bench.ts'
import type { Child } from '../child.ts'
import { readRss } from '../machine.ts'
import { admin } from '../loads.ts'
import { ensureFile } from '../seed.ts'
import { findFreePort } from '../../test/helpers/port.ts'
import { readStartFlags } from '../start.ts'
import type { Column, Ready, Sample, Subject } from '../types.ts'

const USERS = 1_000
/** Milliseconds between two readings of a server's memory while it streams. */
const INTERVAL = 20

const sizesOf = (full: boolean) => full ? [10_000, 100_000, 1_000_000] : [10_000, 100_000]
const name = (what: string, rows: number) => `${what}, ${rows.toLocaleString('en')}`
export const bareRow = (rows: number) => name('bare Fastify stream of the NDJSON\'s bytes', rows)
export const csvRow = (rows: number) => name('fast-csv alone, no HTTP', rows)
export const ndjsonRow = (rows: number) => name('NDJSON', rows)
export const jsonRow = (rows: number) => name('JSON', rows)
export const bridgeRow = (rows: number) => name('CSV through the bridge', rows)

const COLUMNS: Column[] = [
  { metric: 'rows', title: 'rows/s', digits: 0 },
  { metric: 'megabytes', title: 'MB/s', digits: 1 },
  { metric: 'firstByte', title: 'first byte ms', digits: 1 },
  { metric: 'cpu', title: 'server CPU us/row', digits: 2 },
  { metric: 'growth', title: 'growth MiB', digits: 1 }
]

interface List { path: string, accept?: string, rows: number, idle: number, bytes?: number }

/** Reads whole lists for the length of a round, at least one. */
async function measureList (bench: Bench, server: Server, { path, accept, rows, idle, bytes }: List): Promise<Sample> {
  const { port } = await server.child.ready
  const { pid } = server.child
  let peak = 0
  const readMemory = () => { peak = Math.max(peak, readRss(pid)) }
  const timer = setInterval(readMemory, INTERVAL)
  const before = await server.usage()
  let lists = 0
  let elapsed = 0
  let total = 0
  let firstByte = 0
  while (lists === 0 || elapsed < bench.settings.seconds * 1000) {
    const result = await bench.driver.call('download', { port, path, headers: { ...admin, ...(accept !== undefined && { accept }) } })
    if (bytes !== undefined && result.bytes !== bytes) throw new Error(`${path}: ${result.bytes} bytes of ${bytes}`)
    lists++
    elapsed += result.elapsed
    total += result.bytes
    firstByte += result.firstByte
  }
  readMemory()
  clearInterval(timer)
  const after = await server.usage()
  return {
    rows: rows * lists / elapsed * 1000,
    megabytes: total / elapsed / 1000,
    firstByte: firstByte / lists,
    cpu: (after.cpu - before.cpu) / lists / rows,
    growth: (peak - idle) / 2 ** 20
  }
}

type FastCsv = Child<{ csv: (params: { rows: number, users: number }) => Promise<{ elapsed: number, bytes: number }> }, Ready>

/** All clients, from the first to the last. */
export default {
  name: 'lists',
  title: 'Whole lists of clients',
  notes: [
    'SQLite; one reader; each server on two cores, the second of which it shares with the driver. Every second client has a secret to decrypt, every fourth an image.',
    'Growth is the peak of resident memory over all rounds so far, read every 20 ms, less its size after the start and one page of 100. The bridge runs in the process of the service that it reads from, so its growth is that of both. All sizes are checked to the byte. Node has the options of npm start.'
  ],
  columns: COLUMNS,
  compared: ['rows'],
  baseline: '',
  servers: async (bench) => {
    const specs = []
    for (const rows of sizesOf(bench.settings.full)) {
      const database = `sqlite:${await ensureFile({ users: USERS, clients: rows, tokens: USERS }, bench.log)}`
      for (const what of [ndjsonRow, jsonRow, bridgeRow]) {
        specs.push({ label: what(rows), file: 'identity.ts', options: { database, bridgePort: await findFreePort() }, cores: 2 as const, flags: readStartFlags() })
      }
    }
    return [
      { label: 'bare', file: 'bare.ts', options: { users: USERS }, cores: 2 },
      { label: 'fast-csv', file: 'fast-csv.ts', cores: 2 },
      ...specs
    ]
  },
  scenario: async (bench, servers) => {
    const subjects: Subject[] = []
    const bare = servers.get('bare')!
    const fastCsv = servers.get('fast-csv')!.child as unknown as FastCsv
    for (const rows of sizesOf(bench.settings.full)) {
      const { port } = await bare.child.ready
      const { bytes } = await bench.driver.call('download', { port, path: `/stream?rows=${rows}`, headers: {} })
      const csv = (await fastCsv.call('csv', { rows, users: USERS })).bytes
      const add = async (label: string, baseline: string, path: string, expected: number, accept?: string) => {
        const server = servers.get(label)!
        const { port } = await server.child.ready
        await bench.driver.call('download', { port, path: '/api/v1/client/list', headers: admin })
        const { rss: idle } = await server.usage()
        subjects.push({
          label, baseline, measure: () => measureList(bench, server, { path, rows, idle, bytes: expected, ...(accept !== undefined && { accept }) })
        })
      }
      const { rss } = await bare.usage()
      subjects.push({ label: bareRow(rows), baseline: bareRow(rows), measure: () => measureList(bench, bare, { path: `/stream?rows=${rows}`, rows, idle: rss, bytes }) })
      await add(ndjsonRow(rows), bareRow(rows), '/api/v1/client/list?limit=0', bytes, 'application/x-ndjson')
      await add(jsonRow(rows), bareRow(rows), '/api/v1/client/list?limit=0', bytes + '{"data":[]}'.length - '\n'.length)
      subjects.push({
        label: csvRow(rows),
        baseline: csvRow(rows),
        measure: async () => {
          const result = await fastCsv.call('csv', { rows, users: USERS })
          return { rows: rows / result.elapsed * 1000, megabytes: result.bytes / result.elapsed / 1000 }
        }
      })
      await add(bridgeRow(rows), csvRow(rows), '/bridge/list?format=csv&limit=0', csv)
    }
    return subjects
  }
} satisfies Case
