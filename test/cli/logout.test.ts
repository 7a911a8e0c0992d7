import { join } from 'node:path'
import t from 'tap'
import { toTimestamp } from '../../lib/clock.ts'
import type { LogoutRecord } from '../../lib/logout/record.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Event } from '../../schemas/event.ts'
import { createCli } from '../helpers/cli.ts'

const HOUR = 60 * 60_000

t.test('logouts that failed are listed and become due again', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  await run('user create --account ann')
  const store = await openStore(`sqlite:${join(dir, 'identity.db')}`, { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  const logouts = store.collection<LogoutRecord>('logouts')
  const now = Date.now()
  const at = (hours: number) => toTimestamp(now + hours * HOUR)
  for (const [id, state] of [['one', 'failed'], ['two', 'failed'], ['three', 'due'], ['four', 'done']] as const) {
    await logouts.insert({
      id, user_id: 'ann', client_id: `client of ${id}`, uids: ['a session'], state, due_at: at(-4), claim: 1, attempts: 7, ends_at: at(-3), created_at: at(-5), expired_at: at(21), ...(state === 'failed' && { failure: 'RESTORED' })
    })
  }
  const list = async (flags = '') => (await run(`logout list ${flags} --json`)).json().data as unknown as Partial<LogoutRecord>[]
  t.match((await run('logout list --failed')).stdout, /^ID +CLIENT +USER +ATTEMPTS +FAILURE +DUE +ENDS\n(one|two) +client of (one|two) +ann +7 +RESTORED /)
  t.strictSame((await list('--failed')).map(({ id }) => id).sort(), ['one', 'two'])
  t.strictSame(Object.keys((await list())[0]!), ['id', 'client_id', 'user_id', 'attempts', 'due_at', 'ends_at'], 'nothing about the session')
  t.match(await run('logout retry'), { code: 2, stderr: /--id: is required, or --all/ })
  t.match(await run('logout retry --id three'), { code: 1, stderr: /--id: no such failed logout/ })
  t.match(await run('logout retry --id one'), { code: 0, stdout: /^retried {2}1\n\nA running service tells them/ })
  t.strictSame((await run('logout retry --all --json')).json(), { retried: 1 })
  t.strictSame((await run('logout retry --all --json')).json(), { retried: 0 })
  t.equal((await run('logout list --failed')).stdout, 'none\n')
  const due = await list()
  t.strictSame(due.map(({ id }) => id).sort(), ['one', 'three', 'two'])
  for (const { id, attempts, ends_at } of due) if (id !== 'three') t.ok(attempts === 0 && ends_at! > at(1), `${id} may take two hours`)
  const events = (await run('event list --type logout.retried --json')).json().data as unknown as Event[]
  t.match(events, [{ target: { kind: 'logout', id: 'two' } }, { target: { kind: 'logout', id: 'one' }, actor: { via: 'cli' }, user_id: 'ann', client_id: 'client of one' }])
})
