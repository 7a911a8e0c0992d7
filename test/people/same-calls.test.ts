import t from 'tap'
import { createCounter } from '../../lib/throttling/counter.ts'
import { openRules } from '../helpers/services.ts'

const KNOWN = 'known@example.com'
const EVENT = 'event_inbox.insert'
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
  await users.create({ data: { account: KNOWN, password: 'p' } })
  const { user_id } = await users.create({ data: { account: 'disabled@example.com', password: 'p' } })
  await users.patch(user_id, { disable: true }, ADMIN)
  await users.create({ data: { account: 'expired@example.com', password: 'p' }, expired_at: '2020-01-01T00:00:00Z' })
  await users.create({ data: { account: 'nameless', password: 'p' } })
  await tokens.settle()
  for (const ask of [accounts.forgotPassword, accounts.signUp]) {
    const watch = async (typed: string) => {
      calls.length = 0
      const before = sent.length
      await ask(typed, { ip: '192.0.2.1' })
      const asked = calls.length
      await accounts.outbox!.settle()
      // The number of records is asked for once a second.
      const all = calls.filter((call) => call !== 'deliveries.count')
      // The one call that differs: the sender writes the event of a mail to an account once the mail server has taken it. That is after the
      // answer, and after an exchange with the mail server that takes far longer. Nobody waits for it: the slot is one of several.
      const events = all.filter((call) => call === EVENT).length
      t.equal(events, sent.slice(before).filter((to) => to === KNOWN).length, `${typed}: an event only with a mail to an account`)
      t.notOk(calls.slice(0, asked).includes(EVENT), `${typed}: none before the answer`)
      if (events > 0) t.same(all.slice(-2), [EVENT, 'deliveries.delete'], `${typed}: the last thing that is written`)
      return all.filter((call) => call !== EVENT)
    }
    const known = await watch(KNOWN)
    t.same(known, [
      'deliveries.insert', 'deliveries.update', 'users.getBy', 'users.getBy', 'tickets.insert', 'tickets.page', 'tickets.next', 'tickets.next', 'deliveries.update', 'deliveries.delete'
    ])
    for (const typed of ['unknown@example.com', 'disabled@example.com', 'expired@example.com', ...(ask === accounts.forgotPassword ? ['nameless', 'nobody'] : [])]) {
      t.same(await watch(typed), known, typed)
    }
  }
  t.same(sent, [KNOWN, KNOWN, 'unknown@example.com'], 'mail goes to those who may sign in, and to the new one')
  await accounts.outbox!.close()
})
