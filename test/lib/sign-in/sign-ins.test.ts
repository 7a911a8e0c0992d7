import t from 'tap'
import { createSignIns } from '../../../lib/sign-in/sign-ins.ts'
import type { Attempt, Step } from '../../../lib/sign-in/steps/step.ts'
import { forEachStore } from '../../helpers/build.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'

const ann = { user_id: 'ann', user_epoch: 3 }

const attempt = (word: string): Attempt => ({ form: new URLSearchParams({ word }), turn: {}, limit: async () => {} })

/** A step that a word passes. */
const ask = (amr: string, word: string, more: Partial<Step> = {}): Step => ({
  amr,
  page: 'sign-in',
  verify: async ({ form }) => form.get('word') === word ? { passed: ann } : { refused: { reason: 'wrong-password' } },
  ...more
})

forEachStore(t, async (t, build) => {
  const { app } = await build(t)
  const calls: string[] = []
  const store = wrapStore(app.identity.store, ({ collection, method }, run) => {
    calls.push(`${collection}.${method}`)
    return run()
  })
  let time = Date.now()
  const now = () => time

  await t.test('one step signs in and stores nothing', async (t) => {
    const only = createSignIns({ store, now, steps: [ask('pwd', 'a')] })
    t.match(await only.submit('alone', attempt('b')), { again: { amr: 'pwd' } })
    t.strictSame(await only.submit('alone', attempt('a')), { done: { ...ann, amr: ['pwd'] } })
    t.strictSame([...new Set(calls.splice(0))], ['sign_ins.get'], 'no write, whether the answer was right or wrong')
  })

  await t.test('each step follows the previous one, and proofs are stored for ten minutes', async (t) => {
    let isDue = true
    const others: (string | undefined)[] = []
    const second = ask('otp', 'b', {
      isDue: (progress) => { others.push(progress?.user_id); return progress !== null && isDue },
      // A step cannot change the user of the sign-in.
      verify: async ({ form }, progress) => progress?.user_id === 'ann' && form.get('word') === 'b' ? { passed: { user_id: 'eve', user_epoch: 9 } } : { refused: { reason: 'wrong-password' } }
    })
    const signIns = createSignIns({ store, now, steps: [ask('pwd', 'a'), second] })
    t.match(await signIns.submit('one', attempt('b')), { again: { amr: 'pwd' } }, 'the second answer is not asked for yet')
    t.match(await signIns.submit('one', attempt('a')), { next: { amr: 'otp' } })
    t.equal((await signIns.find('one')).amr, 'otp')
    t.equal((await signIns.find('another')).amr, 'pwd', 'another browser is where it was')
    t.match(await signIns.submit('one', attempt('a')), { again: { amr: 'otp' } }, 'the first answer does not pass the second step')
    t.strictSame(await signIns.submit('one', attempt('b')), { done: { ...ann, amr: ['pwd', 'otp'] } })
    t.equal((await signIns.find('one')).amr, 'pwd', 'it is over')

    await signIns.submit('late', attempt('a'))
    time += 10 * 60 * 1000
    t.match(await signIns.submit('late', attempt('b')), { again: { amr: 'pwd' } }, 'ten minutes later it begins again')

    await signIns.submit('left', attempt('a'))
    await signIns.cancel('left')
    t.equal((await signIns.find('left')).amr, 'pwd', 'a cancelled one too')

    await signIns.submit('eased', attempt('a'))
    isDue = false
    t.equal((await signIns.find('eased')).amr, 'pwd', 'a step that is not due any more')
    t.strictSame(await signIns.submit('eased', attempt('a')), { done: { ...ann, amr: ['pwd'] } })
    t.ok(others.includes('ann'), 'whether a step is due may depend on the user')
  })

  await t.test('after a step that a link has proved, the remaining steps follow', async (t) => {
    const done: string[] = []
    const steps = [ask('pwd', 'a'), ask('otp', 'b')] as const
    const signIns = createSignIns({ store, now, steps, onDone: async (user_id) => { done.push(user_id) } })
    await signIns.submit('linked', attempt('a'))
    t.match(await signIns.proceed('linked', { user_id: 'bob', user_epoch: 5, amr: ['pwd'] }), { next: { amr: 'otp' } })
    t.strictSame(done, [], 'the link alone signs nobody in')
    t.strictSame(await signIns.submit('linked', attempt('b')), { done: { user_id: 'bob', user_epoch: 5, amr: ['pwd', 'otp'] } }, 'as the user of the link')
    t.strictSame(await createSignIns({ store, now, steps: [steps[0]] }).proceed('alone', { ...ann, amr: ['pwd'] }), { done: { ...ann, amr: ['pwd'] } })
    t.strictSame(done, ['bob'])
  })

  await t.test('the store has no secret of the browser', async (t) => {
    await createSignIns({ store, now, steps: [ask('pwd', 'a'), ask('otp', 'b')] }).submit('browser-secret', attempt('a'))
    const stored = []
    for await (const batch of store.collection('sign_ins').stream()) stored.push(...batch)
    t.notMatch(JSON.stringify(stored), 'browser-secret')
    t.match(stored, [{ user_id: 'ann', user_epoch: 3, amr: ['pwd'] }])
  })
})
