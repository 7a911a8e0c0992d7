import t from 'tap'
import type { UserRecord } from '../../../lib/records/user.ts'
import { DEFAULT_ROLE_NAMES as roles } from '../../../lib/roles.ts'
import { HeldCounter } from '../../../lib/status/held.ts'
import type { Store } from '../../../lib/store/port.ts'
import type { Upstream } from '../../../schemas/upstream.ts'

const CORP: Upstream = { id: 'corp', kind: 'oidc', issuer: 'https://corp.example', domains: ['corp.example'], only: true, clientId: 'c', clientSecret: 's', create: false, link: 'confirm', sync: 'first' }
const USER = { id: 'ann', account: 'ann@corp.example', roles: {} } as unknown as UserRecord

/** A store whose lists of users wait for the gate, and how many were begun. */
function open (gates: Promise<void>[], upstreams: readonly Upstream[] = [CORP]) {
  const state = { time: 0, lists: 0 }
  async function * page (): AsyncGenerator<UserRecord[]> {
    await gates[state.lists++]
    yield [USER]
  }
  const store = { collection: () => ({ page }) } as unknown as Store
  return { state, counter: new HeldCounter({ store, upstreams, roles, now: () => state.time }) }
}

t.test('those who ask at once share a count, which stands for five minutes', async (t) => {
  const { state, counter } = open([])
  const counts = await Promise.all([counter.count(), counter.count()])
  t.match(counts, [{ unproved: 1 }, { unproved: 1 }])
  t.equal(state.lists, 1)
  state.time += 5 * 60_000 - 1
  await counter.count()
  t.equal(state.lists, 1)
  state.time += 1
  await counter.count()
  t.equal(state.lists, 2)
})

t.test('a count that failed is made again', async (t) => {
  const failed = Promise.reject(new Error('the store is gone'))
  failed.catch(() => {})
  const { counter } = open([failed])
  await t.rejects(counter.count(), { message: 'the store is gone' })
  t.match(await counter.count(), { unproved: 1 })
})

t.test('the end of the service ends a count', async (t) => {
  const gate = Promise.withResolvers<void>()
  const { counter } = open([gate.promise])
  const counting = counter.count()
  const closing = counter.close()
  gate.resolve()
  await t.rejects(counting, { code: 'ErrDb', message: 'the service is shutting down' })
  await closing
})

t.test('without an upstream that has only, nobody is read', async (t) => {
  const { state, counter } = open([], [{ ...CORP, only: false }])
  t.equal(await counter.count(), undefined)
  t.equal(state.lists, 0)
  await counter.close()
})
