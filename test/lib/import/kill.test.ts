import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { UserRecord } from '../../../lib/records/user.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { startCommand } from '../../helpers/process.ts'

const CHILD = fileURLToPath(new URL('../../fixtures/importing-child.ts', import.meta.url))
const LINES = 2_000

// test/long/imports.ts does this with many more lines and kills.
t.test('a process that imports is killed, and the file is imported again: nobody comes in twice, and nobody is lost', async (t) => {
  const database = `sqlite:${t.testdir()}/store.db`
  const start = (...more: string[]) => startCommand(t, process.execPath, { args: [CHILD, database, String(LINES), ...more], env: {} })
  for (const stop of [300, 900]) {
    const { child, seen, ended } = start(String(stop))
    await seen(/^stopped$/m)
    child.kill('SIGKILL')
    t.equal(await ended, 'SIGKILL', 'it was killed')
  }
  const last = start()
  t.equal(await last.ended, 0)
  const { created, same, refused } = JSON.parse(last.stdout().trim().split('\n').at(-1)!) as { created: number, same: number, refused: number }
  t.ok(same >= 900, `${same} were there`)
  t.strictSame([created + same, refused], [LINES, 0])
  const store = await openStore(database, { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  const ids = new Set<string>()
  for await (const batch of store.collection<UserRecord>('users').stream()) for (const { id } of batch) ids.add(id)
  t.strictSame([ids.size, await store.collection('users').count()], [LINES, LINES])
})
