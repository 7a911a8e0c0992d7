import t from 'tap'
import { openRules } from '../../helpers/services.ts'

const settle = () => new Promise((resolve) => setImmediate(resolve))

t.test('counts and pages of disconnected callers are not read, and callers take turns', async (t) => {
  for (const [kind, method] of [['count', 'count'], ['page', 'next']] as const) {
    let gate = Promise.withResolvers<void>()
    const read: string[] = []
    const { users, clients } = await openRules(t, {
      around: ({ method: called, args }, run) => {
        if (called !== method) return run()
        read.push(JSON.stringify(args))
        return gate.promise.then(run)
      }
    })
    for (const [name, ask] of [
      ['users', (contains: string, user_id: string, signal?: AbortSignal) => users[kind]({ contains }, { user_id, isAdmin: true, ...(signal && { signal }) })],
      ['clients', (user: string, user_id: string, signal?: AbortSignal) => (kind === 'count'
        ? clients.count(user, { user_id, isAdmin: true, ...(signal && { signal }) })
        : clients.page({ user }, { user_id, isAdmin: true, ...(signal && { signal }) }))]
    ] as const) {
      read.length = 0
      gate = Promise.withResolvers()
      const left = new AbortController()
      const greedy = Array.from({ length: 20 }, () => ask('greedy', 'a', left.signal))
      const patient = ask('patient', 'a')
      const stranger = ask('stranger', 'b')
      const settled = Promise.allSettled(greedy)
      await settle()
      t.equal(read.length, 8, `${name}: as many reads at once as keep SQLite busy`)
      left.abort()
      await settle()
      gate.resolve()
      await Promise.all([patient, stranger])
      const results = await settled
      t.equal(results.filter(({ status }) => status === 'rejected').length, 12)
      const order = read.slice(8).map((call) => /greedy|patient|stranger/.exec(call)?.[0])
      t.strictSame([...new Set(order)].sort(), ['patient', 'stranger'], `${name}: nothing that was dropped is read`)
    }
  }
})

t.test('the store gets the caller\'s signal with a long list, which may wait for a cursor', async (t) => {
  const signals: unknown[] = []
  const { users, clients } = await openRules(t, {
    around: ({ method, args }, run) => {
      const [query] = args as [{ signal?: AbortSignal } | undefined]
      if (method === 'next') signals.push(query?.signal)
      return run()
    }
  })
  const { signal } = new AbortController()
  const actor = { user_id: 'a', isAdmin: true, signal }
  for (const { batches } of [await users.page({ limit: 0 }, actor), await clients.page({ limit: 0 }, actor)]) {
    signals.length = 0
    for await (const batch of batches) t.ok(batch)
    t.ok(signals.length > 0 && signals.every((one) => one === signal))
  }
})
