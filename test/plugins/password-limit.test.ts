import t from 'tap'
import { build } from '../helpers/build.ts'
import { signIn } from '../helpers/people.ts'

t.test('too many password changes: Retry-After is in whole seconds, and other patches are not counted', async (t) => {
  let ttl = 0
  const counted: unknown[] = []
  const kit = await build(t, { rateLimit: 2, counter: { count: async (...args) => ({ current: counted.push(args), ttl }) } })
  const ann = await signIn(kit)
  const change = { data: { password: 'new' } }
  t.match(await ann.patch('/user', { data: { name: 'Ann' } }), { status: 204 })
  t.strictSame(counted, [])
  t.match(await ann.patch('/user', change), { status: 204 })
  const again = await signIn(kit, { user: ann.user_id })
  t.match(await again.patch('/user', change), { status: 204 })
  const last = await signIn(kit, { user: ann.user_id })
  for (const [milliseconds, seconds] of [[60_000, '60'], [1_001, '2'], [1_000, '1'], [0, '1']] as const) {
    ttl = milliseconds
    t.match(await last.patch('/user', change), {
      status: 429,
      headers: { 'retry-after': seconds },
      body: { code: 'ErrLimit', message: `password: too many changes, try again in ${seconds} s` }
    })
  }
  t.strictSame(counted[0], ['password', ann.user_id, 60_000])
})
