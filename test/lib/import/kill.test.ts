import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { UserRecord } from '../../../lib/records.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'

const CHILD = fileURLToPath(new URL('../../fixtures/importing-child.ts', import.meta.url))
const LINES = 2_000

// test/long/imports.ts does this with many more lines and kills.
t.test('a process that imports is killed, and the file is imported again: nobody comes in twice, and nobody is lost', async (t) => {
  const database = `sqlite:${t.testdir()}/store.db`
  const run = async (killAt: number): Promise<string> => {
    const child = spawn(process.execPath, [CHILD, database, String(LINES)], { stdio: ['ignore', 'pipe', 'inherit'] })
    const closed = once(child, 'close')
    let last = ''
    for await (const line of createInterface(child.stdout)) {
      last = line
      if (Number(line) >= killAt) child.kill('SIGKILL')
    }
    await closed
    return last
  }
  for (const killAt of [300, 900]) t.match(await run(killAt), /^\d+$/, 'it was killed')
  const { created, same, refused } = JSON.parse(await run(Infinity)) as { created: number, same: number, refused: number }
  t.ok(same >= 900, `${same} were there`)
  t.strictSame([created + same, refused], [LINES, 0])
  const store = await openStore(database, { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  const ids = new Set<string>()
  for await (const batch of store.collection<UserRecord>('users').stream()) for (const { id } of batch) ids.add(id)
  t.strictSame([ids.size, await store.collection('users').count()], [LINES, LINES])
})
