import t from 'tap'
import { busyError } from '../../../lib/errors.ts'
import { WINDOW, createAccountLimits, toCounted, toUserName } from '../../../lib/throttling/account-limits.ts'
import { createCounter } from '../../../lib/throttling/counter.ts'

const START = Date.UTC(2030, 0, 1)
const ANN = { names: ['Ann', 'ann@example.org'], user_id: 'u1' }
const at = (milliseconds: number): string => new Date(START + milliseconds).toISOString()

t.test('the limits of an account are those of its names and of its user', async (t) => {
  for (const counted of ['ann', 'ANN@example.org', toUserName('u1')]) {
    const counter = createCounter(() => 0)
    const limits = createAccountLimits({ counter, now: () => START, isAlone: true })
    t.strictSame(await limits.read(ANN), {})
    await counter.count('guess', `here ${counted}`, WINDOW, { account: toCounted(counted), most: 1 })
    t.strictSame(await limits.read(ANN), { until: at(WINDOW) }, counted)
    t.strictSame(await limits.read({ names: ['bob'], user_id: 'u2' }), {})
    t.strictSame(await limits.open(ANN), { until: at(WINDOW) })
    t.strictSame(await limits.read(ANN), {})
  }
})

t.test('where others count, the answer says how long they may refuse', async (t) => {
  const counter = createCounter(() => 0)
  await counter.count('guess', 'here', WINDOW, { account: toCounted('ann'), most: 1 })
  const limits = createAccountLimits({ counter, now: () => START, isAlone: false })
  t.strictSame(await limits.read(ANN), { until: at(WINDOW), elsewhere_until: at(WINDOW) })

  const count = async () => ({ current: 1, ttl: 0 })
  const fail = async () => { throw busyError('attempts to be counted') }
  for (const unreadable of [{ count }, { count, read: fail, open: fail }]) {
    const limits = createAccountLimits({ counter: unreadable, now: () => START, isAlone: true })
    t.strictSame(await limits.read(ANN), { elsewhere_until: at(WINDOW) })
    t.strictSame(await limits.open(ANN), { elsewhere_until: at(WINDOW) })
  }
  const broken = async () => { throw new Error('broken') }
  await t.rejects(createAccountLimits({ counter: { count, read: broken }, now: () => START, isAlone: true }).read(ANN), { message: 'broken' })
})
