import t from 'tap'
import { createCounter } from '../../lib/throttling/counter.ts'
import { openRules } from '../helpers/services.ts'

const ADMIN = { user_id: 'admin', isAdmin: true }

t.test('forgot and sign-up make the same store calls for known, unknown, disabled and expired accounts, in the request and in the sender', async (t) => {
  const calls: string[] = []
  const { users, tokens, openAccounts } = await openRules(t, {
    around: ({ collection, method }, run) => {
      calls.push(`${collection}.${method}`)
      return run()
    }
  })
  const sent: string[] = []
  const accounts = openAccounts({ mail: { send: async ({ to }) => { sent.push(to) } } }, { counter: createCounter() })
  await users.create({ data: { account: 'known@example.com', password: 'p' } })
  const { user_id } = await users.create({ data: { account: 'disabled@example.com', password: 'p' } })
  await users.patch(user_id, { disable: true }, ADMIN)
  await users.create({ data: { account: 'expired@example.com', password: 'p' }, expired_at: '2020-01-01T00:00:00Z' })
  await users.create({ data: { account: 'nameless', password: 'p' } })
  await tokens.settle()
  for (const ask of [accounts.forgotPassword, accounts.signUp]) {
    const watch = async (typed: string) => {
      calls.length = 0
      await ask(typed, { ip: '192.0.2.1' })
      await accounts.outbox!.settle()
      // The number of records is asked for once a second.
      return calls.filter((call) => call !== 'deliveries.count')
    }
    const known = await watch('known@example.com')
    t.same(known, [
      'deliveries.insert', 'deliveries.update', 'users.getBy', 'users.getBy', 'tickets.insert', 'tickets.page', 'tickets.next', 'tickets.next', 'deliveries.update', 'deliveries.delete'
    ])
    for (const typed of ['unknown@example.com', 'disabled@example.com', 'expired@example.com', ...(ask === accounts.forgotPassword ? ['nameless', 'nobody'] : [])]) {
      t.same(await watch(typed), known, typed)
    }
  }
  t.same(sent, ['known@example.com', 'known@example.com', 'unknown@example.com'], 'mail goes to those who may sign in, and to the new one')
  await accounts.outbox!.close()
})
