import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { readConfig } from '../../config.ts'
import { openServices } from '../../lib/identity.ts'
import type { Document, Json } from '../../lib/store/port.ts'

/** Concurrent writers: more than share a transaction, so that the disk is never idle. */
const WRITERS = 600
/** Milliseconds of writing before each backup. */
const LEAD = 2_000

const cli = fileURLToPath(new URL('../../cli.ts', import.meta.url))

async function backUp (env: NodeJS.ProcessEnv, file: string): Promise<void> {
  const child = spawn(process.execPath, [cli, 'backup', '--file', file], { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'] })
  const [[code], stderr] = await Promise.all([once(child, 'close'), text(child.stderr)])
  if (code !== 0) throw new Error(`backup: ${stderr}`)
}

/** Checks the integrity of the copy, and which of `expected` it lacks. */
function inspect (file: string, expected: readonly string[]): { integrity: string, users: number, lost: string[] } {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const integrity = String(database.prepare('PRAGMA integrity_check').get()?.integrity_check)
    const users = Number(database.prepare('SELECT count(*) AS count FROM users').get()?.count)
    const find = database.prepare('SELECT 1 FROM users WHERE id = ?')
    return { integrity, users, lost: expected.filter((id) => find.get(id) === undefined) }
  } finally {
    database.close()
  }
}

/** The long test: backups while users are written as fast as the disk allows. Resolves to a line of figures. */
export async function run (rounds = 3, first = 100_000): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'backup-'))
  const env = { DATABASE_URL: `sqlite:${join(directory, 'identity.db')}` }
  const services = await openServices(readConfig(env).services)
  const users = services.store.collection<Document & Record<string, Json>>('users')
  const at = new Date().toISOString()
  const acknowledged: string[] = []
  let stopped = false
  async function write (prefix: string, isDone: () => boolean): Promise<void> {
    for (let number = 0; !isDone(); number++) {
      const id = `${prefix}.${number}`
      await users.insert({ id, account: `${id}@example.com`, addresses: [`${id}@example.com`], created_at: at, modified_at: at, name: id, revision: 0, epoch: 0, roles: {}, info: {}, password: 'x'.repeat(68) })
      acknowledged.push(id)
    }
  }
  const writers = (isDone: () => boolean, label: string) => Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(`${label}${writer}`, isDone)))
  const lines: string[] = []
  try {
    await writers(() => acknowledged.length >= first, 'f')
    const writing = writers(() => stopped, 'w')
    for (let round = 0; round < rounds; round++) {
      const [count, begin] = [acknowledged.length, performance.now()]
      await new Promise((resolve) => setTimeout(resolve, LEAD))
      const quiet = (acknowledged.length - count) / (performance.now() - begin)
      const expected = acknowledged.slice()
      const file = join(directory, `backup-${round}.db`)
      const start = performance.now()
      await backUp(env, file)
      const time = performance.now() - start
      const { integrity, users, lost } = inspect(file, expected)
      if (integrity !== 'ok' || lost.length > 0) throw new Error(`backup: integrity ${integrity}, ${lost.length} of ${expected.length} acknowledged writes are missing (${lost.slice(0, 5).join(', ')})`)
      const [per, mib] = [(value: number) => Math.round(value * 1000), (path: string) => Math.round(statSync(path).size / 2 ** 20)]
      lines.push(`${per(quiet)} writes a second before and ${per((acknowledged.length - expected.length) / time)} during ${Math.round(time)} ms, ${expected.length} acknowledged before, ${users} in the copy of ${mib(file)} MiB, log ${mib(`${join(directory, 'identity.db')}-wal`)} MiB`)
      rmSync(file)
    }
    stopped = true
    await writing
  } finally {
    stopped = true
    await services.close()
    rmSync(directory, { recursive: true, force: true })
  }
  return `backup under writes: integrity ok, nothing missing\n  ${lines.join('\n  ')}`
}

if (import.meta.main) console.log(await run(Number(process.argv[2] ?? 3), Number(process.argv[3] ?? 100_000)))
