/**
 * Whole lists of 10,000, 100,000 and 1,000,000 clients over a real socket: as JSON, as NDJSON and as the bridge's CSV.
 * The service runs in a process of its own, whose memory is sampled while the list streams.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { openServices } from '../../lib/identity.ts'
import { randomText } from '../../lib/ids.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import { createSecretBox } from '../../lib/crypto/secrets.ts'
import { OptionsSchema } from '../../schemas/options.ts'
import { readOptions } from '../../plugins/identity.ts'

const SIZES = [10_000, 100_000, 1_000_000]
/** Maximum growth of resident memory above its idle size (MiB). */
const CEILING = 64
const KEY = Buffer.alloc(32, 7)
const ROOT = join(import.meta.dirname, '../..')

/** Fills the store up to `size` clients, half of them confidential, and mints a token for an admin. */
async function seed (database: string, from: number, size: number): Promise<string> {
  const services = await openServices({ ...readOptions({ database, bcryptCost: OptionsSchema.properties.bcryptCost.minimum, passwordMin: 1, secretKey: KEY.toString('base64') }) })
  try {
    const box = createSecretBox(KEY)
    const clients = services.store.collection<ClientRecord>('clients')
    const user = await services.users.getByAccount('admin')
    const { user_id, client_id, access_token } = user === null
      ? await services.bootstrap()
      : { user_id: user.user_id, client_id: undefined, access_token: undefined }
    for (let start = from; start < size; start += 500) {
      await Promise.all(Array.from({ length: Math.min(500, size - start) }, async (_, offset) => {
        const number = start + offset
        const id = String(number).padStart(26, '0') + randomText(8)
        const time = new Date(1_790_000_000_000 + number).toISOString()
        await clients.insert({
          id,
          createdAt: time,
          modifiedAt: time,
          ...(number % 2 === 0 && { secret: box.seal(randomText(16), id) }),
          redirectUris: [`https://app-${number}.example/callback`, `https://app-${number}.example/silent`],
          scopes: ['orders:read', 'orders:write'],
          userId: user_id,
          name: `Application ${number}`,
          image: `https://app-${number}.example/icon.png`,
          epoch: 0
        })
      }))
    }
    if (access_token !== undefined) return access_token
    const [batch = []] = await Array.fromAsync(services.clients.list({ limit: 1, sort: 'created:desc' }, { user_id, isAdmin: true }))
    return (await services.tokens.mint({ user_id, client_id: client_id ?? batch[0]?.clientId ?? '' })).access_token
  } finally {
    await services.close()
  }
}

async function startService (database: string): Promise<{ child: ChildProcess, url: string }> {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: { start: string } }
  // As `npm start` runs it, with its flags.
  const args = scripts.start.slice(scripts.start.indexOf('node ') + 'node '.length).split(' ')
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, DATABASE_URL: database, PORT: '0', IDENTITY_SECRET_KEY: KEY.toString('base64'), NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0]
    if (url !== undefined) {
      child.stdout.resume()
      return { child, url }
    }
  }
  throw new Error('the service did not start')
}

/** Resident memory of a process (MiB). */
function readMemory (pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

async function measure (label: string, size: number, url: string, accept: string, token: string, pid: number): Promise<boolean> {
  const idle = readMemory(pid)
  let peak = idle
  const timer = setInterval(() => { peak = Math.max(peak, readMemory(pid)) }, 50)
  const start = performance.now()
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}`, accept } })
  if (response.status !== 200 || response.body === null) throw new Error(`${label}: status ${response.status}`)
  let bytes = 0
  let marks = 0
  // Occurs once per record, in every format.
  const mark = Buffer.from('/icon.png')
  let tail = Buffer.alloc(0)
  for await (const chunk of response.body) {
    bytes += chunk.length
    const text = Buffer.concat([tail, chunk])
    for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + mark.length)) marks++
    // Shorter than the mark, so that none is counted twice.
    tail = text.subarray(-(mark.length - 1))
  }
  const seconds = (performance.now() - start) / 1000
  clearInterval(timer)
  const growth = peak - idle
  const good = marks === size && growth <= CEILING
  console.log(`${good ? 'ok' : 'not ok'} ${label}: ${marks} of ${size} records, ${(bytes / 1e6).toFixed(1)} MB in ${seconds.toFixed(1)} s, ` +
    `${Math.round(size / seconds)} rows/s, resident ${idle.toFixed(0)} MiB idle, +${growth.toFixed(1)} MiB at the peak`)
  return good
}

/** Streams every size in every format; false when a record was missing or memory grew past the ceiling. */
export async function run (sizes: readonly number[] = SIZES): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'fastify-identity-lists-'))
  const database = `sqlite:${join(folder, 'identity.db')}`
  let good = true
  try {
    let filled = 0
    for (const size of sizes) {
      const token = await seed(database, filled, size)
      filled = size
      const { child, url } = await startService(database)
      try {
        const list = `${url}/api/v1/client/list?limit=0&sort=created:asc`
        // The bootstrap client has no icon, so it is not counted. The first, short list warms the process up.
        await (await fetch(`${list.replace('limit=0', 'limit=1000')}`, { headers: { authorization: `Bearer ${token}` } })).arrayBuffer()
        const csv = `${url}/bridge/client/list?limit=0&sort=created:asc&format=csv`
        for (const [label, from, accept] of [['JSON', list, 'application/json'], ['NDJSON', list, 'application/x-ndjson'], ['CSV', csv, 'text/csv']] as const) {
          good = await measure(`${size} clients, ${label}`, size, from, accept, token, child.pid ?? 0) && good
        }
      } finally {
        child.kill('SIGTERM')
        await once(child, 'exit')
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return good
}

if (import.meta.main) {
  const sizes = process.argv.slice(2).map(Number)
  process.exitCode = await run(sizes.length > 0 ? sizes : SIZES) ? 0 : 1
}
