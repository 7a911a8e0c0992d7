import { join } from 'node:path'
import t from 'tap'
import { toTimestamp } from '../../lib/clock.ts'
import type { LogoutRecord } from '../../lib/logout/record.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { FailedEvent } from '../../lib/webhooks/record.ts'
import type { WorkRecord } from '../../lib/work/record.ts'
import type { Event } from '../../schemas/event.ts'
import { createCli } from '../helpers/cli.ts'

const HOUR = 60 * 60_000

t.test('work of all kinds is listed and becomes due again, and a standstill is named', async (t) => {
  const dir = t.testdir()
  const run = createCli(dir)
  const { webhookId: webhook } = (await run('webhook create --name A --url https://hooks.example.com/a --type user.created --json')).json()
  const store = await openStore(`sqlite:${join(dir, 'identity.db')}`, { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  const at = (hours: number) => toTimestamp(Date.now() + hours * HOUR)
  const toRecord = (id: string, state: WorkRecord['state'], fields: Partial<WorkRecord> = {}) => ({
    id, state, due_at: at(1), claim: 1, attempts: 3, ends_at: at(24), created_at: at(-5), expired_at: at(48), ...(state === 'failed' && { failure: '500' }), ...fields
  })
  const logouts = store.collection<LogoutRecord>('logouts')
  const failures = store.collection<FailedEvent>('webhook_failures')
  const logout = { user_id: 'ann', client_id: 'app', uids: ['a session'] }
  await logouts.insert({ ...logout, ...toRecord('one', 'failed') })
  await logouts.insert({ ...logout, ...toRecord('two', 'due') })
  const event = { webhook_id: String(webhook), event_id: '01KAGZ3V5M7Q2W8E9R0T1Y2U3A', type: 'user.created' }
  await failures.insert({ ...event, ...toRecord('three', 'failed') })
  await failures.insert({ ...event, ...toRecord('four', 'failed') })
  const list = async (flags = '') => (await run(`work list ${flags} --json`)).json().data as unknown as Record<string, unknown>[]

  t.match((await run('work list')).stdout, /^KIND +ID +ABOUT +ATTEMPTS +FAILURE +DUE +ENDS\nlogout +two +app +3 +20/)
  const failed = await list('--failed')
  t.strictSame(failed.map(({ kind, id, about, failure }) => [kind, id, about, failure]).sort(), [
    ['logout', 'one', 'app', '500'], ['webhook', 'four', `${webhook} user.created`, '500'], ['webhook', 'three', `${webhook} user.created`, '500']
  ])
  t.strictSame(Object.keys(failed[0]!), ['kind', 'id', 'about', 'attempts', 'failure', 'due_at', 'ends_at'], 'nothing else')
  t.strictSame((await list('--failed --kind webhook')).map(({ id }) => id).sort(), ['four', 'three'])
  t.strictSame((await list('--failed --limit 1')).map(({ kind }) => kind), ['logout', 'webhook'], 'so many of each kind')
  t.equal((await list('--failed --limit 0')).length, 3)
  t.equal((await run('work list --kind event')).stdout, 'none\n')

  t.match(await run('work retry --kind webhook --id two'), { code: 1, stderr: /--id: no such failed event/ })
  t.match(await run('work retry --kind webhook --id three'), { code: 0, stdout: /^retried {2}1\n\nA running service does it/ })
  t.match(await failures.get('three'), { state: 'due', attempts: 0, failure: undefined })
  t.strictSame((await run('work retry --kind webhook --json')).json(), { retried: 1 })
  t.strictSame((await run('work retry --kind logout --json')).json(), { retried: 2 }, 'what waits for another attempt too')
  t.ok((await logouts.get('two'))!.due_at <= at(0))
  t.strictSame((await run('work retry --kind logout --json')).json(), { retried: 0 }, 'both are due')
  t.equal((await run('work list --failed')).stdout, 'none\n')
  const events = (await run('event list --type webhook.replayed --json')).json().data as unknown as Event[]
  t.match(events, [{ target: { id: webhook }, actor: { via: 'cli' } }, { target: { id: webhook } }])

  t.match(await run('work retry'), { code: 2, stderr: /--kind: is required/ })
  t.match(await run('work list --kind post'), { code: 2, stderr: /--kind: must be one of mail, logout, webhook, secret, event/ })
  t.match(await run('work list --kind mail'), { code: 1, stderr: /mail is not configured/ })

  t.notMatch((await run('work list')).stderr, /no service attempts it/)
  for (const id of ['one', 'two']) await logouts.update(id, { set: { due_at: at(-1) } })
  await failures.update('three', { set: { due_at: at(-1) } })
  const { stderr, stdout } = await run('work list --json')
  t.match(stderr, /warning: logout: due since 20\S+, and no service attempts it\n.*warning: webhook: due since 20/)
  t.doesNotThrow(() => JSON.parse(stdout))
  await logouts.update('one', { set: { due_at: toTimestamp(Date.now() + 20_000), attempts: 1 } })
  t.notMatch((await run('work list --kind logout')).stderr, /no service attempts it/, 'an attempt is being made')
})
