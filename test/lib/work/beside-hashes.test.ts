import { Piscina } from 'piscina'
import t from 'tap'
import type { UserRecord } from '../../../lib/records/user.ts'
import { MAX_WAIT, type PasswordJob } from '../../../lib/users/passwords.ts'
import { build } from '../../helpers/build.ts'
import { parseOpenMetrics } from '../../helpers/openmetrics.ts'
import { callAs, signIn } from '../../helpers/people.ts'
import { holdTimers } from '../../helpers/timers.ts'
import { PROMPT, waitUntil, within } from '../../helpers/wait.ts'

const FLOOD = '198.51.100.7'
const STRANGER = '203.0.113.9'

t.test('while the sign-ins of one address keep all hash threads busy and its queue full, everything else goes on, and a sign-in from elsewhere is soon next', async (t) => {
  const { run } = Piscina.prototype
  holdTimers(t, MAX_WAIT)
  t.teardown(() => { Piscina.prototype.run = run })
  // Of cost 12, so that the wait is too long after some dozen attempts on each thread.
  const kit = await build(t, { bcryptCost: 12, rateLimit: 10_000, signUp: true, health: true, metrics: '127.0.0.1:0' })
  const { users, store } = kit.app.identity
  const ann = await users.create({ data: { account: 'ann@example.com', password: 'the first password' } })
  const stored = (await store.collection<UserRecord>('users').get(ann.user_id))!.password!
  const bob = await signIn(kit)

  async function openForm (remoteAddress: string) {
    const { body, headers } = await kit.inject({ url: '/account/sign-in', remoteAddress })
    const cookie = String(headers['set-cookie']).split(';')[0]
    const xsrf = /name="xsrf" value="([^"]*)"/.exec(body)?.[1] ?? ''
    return async (account: string, password: string) => await kit.inject({
      method: 'POST',
      url: '/account/sign-in',
      remoteAddress,
      payload: new URLSearchParams({ xsrf, account, password }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', cookie }
    })
  }
  const [flood, stranger] = [await openForm(FLOOD), await openForm(STRANGER)]

  const opened = Promise.withResolvers<void>()
  const order: ('flood' | 'stranger')[] = []
  Piscina.prototype.run = async function (job: PasswordJob) {
    const isOfStranger = 'hash' in job && stored.endsWith(job.hash!)
    order.push(isOfStranger ? 'stranger' : 'flood')
    await opened.promise
    // A hash of the flood takes no time from here on.
    return isOfStranger
  }
  const attempts: Promise<number>[] = []
  let refused = 0
  for (let index = 0; refused === 0; index++) {
    if (index > 5_000) throw new Error('no attempt is refused')
    attempts.push(flood(`nobody-${index}`, 'a guess').then(({ statusCode }) => {
      if (statusCode === 503) refused++
      return statusCode
    }))
    // They come at the pace at which the service takes them.
    if (index % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const running = order.length
  t.ok(running > 0 && attempts.length > 10 * running, `${running} of ${attempts.length} attempts run`)

  for (const [name, act, status] of [
    ['a token look-up', async () => await bob.get('/auth/tokeninfo'), 200],
    ['a health check', async () => ({ status: (await kit.inject('/health/ready')).statusCode }), 200],
    ['a change of a user', async () => await bob.patch('/user', { data: { name: 'Bob' } }), 204],
    ['a request of a link', async () => await callAs(kit).post('/auth/forgot', { data: { account: 'ann@example.com' } }), 204]
  ] as const) {
    t.equal((await within(name, act(), PROMPT)).status, status, name)
  }
  t.match(await kit.mails.next({ to: 'ann@example.com' }), { link: /token=/ }, 'a mail is sent')
  t.equal((await kit.events.list({ type: 'user.updated' })).length, 1, 'events are published')

  const waiting = async () => {
    const families = parseOpenMetrics(await (await fetch(kit.app.identity.metrics?.url ?? '')).text())
    return families.get('identity_hash_queue')?.samples[0]?.value ?? 0
  }
  const before = await waiting()
  const answer = stranger('ann@example.com', 'the first password')
  await waitUntil('the sign-in waits for its hash', async () => await waiting() > before)
  opened.resolve()
  t.equal((await answer).statusCode, 303)
  t.ok(order.indexOf('stranger') - running <= 1, `${order.indexOf('stranger') - running} guesses came first`)
  await Promise.all(attempts)
})
