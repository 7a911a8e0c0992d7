import t from 'tap'
import { type UserRecord, createUserRecord } from '../../../lib/records/user.ts'
import type { Acr, Proof } from '../../../lib/proofs.ts'
import { type Outcome, createSignIns } from '../../../lib/sign-in/sign-ins.ts'
import type { Attempt, Step, Verdict } from '../../../lib/sign-in/steps/step.ts'
import { createJudge } from '../../../lib/sign-in/may-sign-in.ts'
import { DEFAULT_POLICY } from '../../../lib/ways/words.ts'
import { forEachStore } from '../../helpers/build.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'

const HOUR = 60 * 60 * 1000

const attempt = (word: string): Attempt => ({ form: new URLSearchParams({ word }), turn: {}, limit: async () => undefined })

/** A step that a word passes, as this user. */
const ask = (kind: Step['kind'], word: string, way: string = kind, user_id = 'ann', user_epoch = 3): Step => ({
  kind,
  page: 'sign-in',
  isOpen: (user) => kind === 'password' || Object.values(user.ways ?? {}).some((one) => one.kind === kind),
  verify: async ({ form }): Promise<Verdict> => (
    form.get('word') === word ? { passed: { user_id, user_epoch, way, account: kind === 'password' ? user_id : '' } } : { refused: { reason: 'wrong-password' } })
})

const PASSWORD = ask('password', 'a')

await forEachStore(t, async (t, build) => {
  const { app } = await build(t)
  const calls: string[] = []
  const store = wrapStore(app.identity.store, ({ collection, method }, run) => {
    calls.push(`${collection}.${method}`)
    return run()
  })
  let time = Date.now()
  const now = () => time
  const users = app.identity.store.collection<UserRecord>('users')
  const { ways } = app.identity
  const maySignIn = createJudge({ store, now, ways })
  const open = (...places: Parameters<typeof createSignIns>[0]['places']) => createSignIns({ store, now, places, maySignIn })
  /** A user with a way of these kinds; the ids of the ways. */
  const put = async (id: string, ...kinds: ('totp' | 'recovery' | 'passkey')[]): Promise<string[]> => {
    await users.put({ ...createUserRecord(time, { id, account: id, roles: {}, password: 'hash', name: '', info: {} }), epoch: 3 })
    const ids = await ways.prepare({ user_id: id, epoch: 3 }, kinds.map((kind) => ({ kind, material: { step: 0 } })))
    if (ids.length > 0) await ways.name({ user_id: id, epoch: 3 }, ids)
    return ids
  }
  const proof = (kind: Proof['kind'], way: string = kind): Proof => ({ kind, way, at: new Date(time).toISOString() })

  await t.test('a factor that replaces another one while the user is judged is demanded', async (t) => {
    const [former = ''] = await put('eve', 'totp')
    let isDone = false
    const slow = createJudge({
      store,
      now,
      ways: {
        async withExisting (user) {
          if (!isDone) {
            isDone = true
            await ways.add({ user_id: 'eve', epoch: 3 }, { kind: 'totp', material: { step: 0 } })
            await ways.remove({ user_id: 'eve', epoch: 3 }, former, { isEnd: false })
          }
          return await ways.withExisting(user)
        }
      }
    })
    t.match(await slow({ user_id: 'eve', epoch: 3, proofs: [proof('password')] }), { may: false, because: 'below', demanded: 'mfa' })
  })

  await t.test('one step signs in and stores nothing', async (t) => {
    await put('ann')
    calls.length = 0
    const only = open([PASSWORD])
    t.match(await only.submit('alone', attempt('b')), { again: { step: { kind: 'password' }, others: [] } })
    t.strictSame([...new Set(calls.splice(0))], ['sign_ins.get'])
    t.match(await only.submit('alone', attempt('a')), {
      done: { user_id: 'ann', user_epoch: 3, account: 'ann', proofs: [{ way: 'password', kind: 'password' }], strength: { amr: ['pwd'], acr: '1' } }
    })
    t.strictSame([...new Set(calls.splice(0))], ['sign_ins.get', 'users.get'], 'the user is read again, and nothing is written')
  })

  await t.test('each step follows the previous one, and proofs are stored for ten minutes', async (t) => {
    const [totp = ''] = await put('ann', 'totp')
    // A step cannot change the epoch of the sign-in.
    const second: Step = { ...ask('totp', 'b', totp, 'ann', 9), verify: async (given, progress) => await ask('totp', progress?.user_id === 'ann' ? 'b' : '', totp, 'ann', 9).verify(given, progress, '') }
    const signIns = open([PASSWORD], [second])
    t.match(await signIns.submit('one', attempt('b')), { again: { step: { kind: 'password' } } }, 'the second answer is not asked for yet')
    t.match(await signIns.submit('one', attempt('a')), { next: { step: { kind: 'totp' } } })
    t.equal((await signIns.find('one')).step.kind, 'totp')
    t.equal((await signIns.find('another')).step.kind, 'password', 'another browser is where it was')
    t.match(await signIns.submit('one', attempt('a')), { again: { step: { kind: 'totp' } } }, 'the first answer does not pass the second step')
    t.match(await signIns.submit('one', attempt('b')), {
      done: { user_id: 'ann', user_epoch: 3, proofs: [{ kind: 'password' }, { kind: 'totp', way: totp }], strength: { amr: ['pwd', 'otp', 'mfa'], acr: 'mfa' } }
    })
    t.equal((await signIns.find('one')).step.kind, 'password', 'it is over')

    const stranger = open([PASSWORD], [ask('totp', 'b', totp, 'eve', 3)])
    await stranger.submit('mixed', attempt('a'))
    t.match(await stranger.submit('mixed', attempt('b')), { again: { step: { kind: 'totp' } }, refused: { reason: 'wrong-password' } }, 'what another user proves counts for nothing')

    await signIns.submit('late', attempt('a'))
    time += 10 * 60 * 1000
    t.match(await signIns.submit('late', attempt('b')), { again: { step: { kind: 'password' } } }, 'ten minutes later it begins again')

    await signIns.submit('left', attempt('a'))
    await signIns.cancel('left')
    t.equal((await signIns.find('left')).step.kind, 'password', 'a cancelled one too')

    await signIns.submit('eased', attempt('a'))
    await ways.remove({ user_id: 'ann', epoch: 3 }, totp, { isEnd: false })
    t.equal((await signIns.find('eased')).step.kind, 'password', 'a step that is not due any more')
    t.match(await signIns.submit('eased', attempt('a')), { done: { strength: { acr: '1' } } })
  })

  await t.test('the person chooses among the alternatives of a place', async (t) => {
    const [totp, recovery] = await put('ann', 'totp', 'recovery')
    const signIns = open([PASSWORD], [ask('totp', 'b', totp), ask('passkey', 'c'), ask('recovery', 'd', recovery)])
    t.match(await signIns.submit('one', attempt('a')), { next: { step: { kind: 'totp' }, others: ['recovery'] } }, 'those that the user has')
    t.match(await signIns.find('one', { choice: 'recovery' }), { step: { kind: 'recovery' }, others: ['totp'] })
    t.match(await signIns.find('one', { choice: 'passkey' }), { step: { kind: 'totp' } })
    t.match(await signIns.submit('one', attempt('d'), { choice: 'totp' }), { again: { step: { kind: 'totp' } } })
    t.match(await signIns.submit('one', attempt('d'), { choice: 'password' }), { next: { step: { kind: 'totp' } } }, 'a form of another place is not verified')
    t.match(await signIns.submit('one', attempt('d'), { choice: 'recovery' }), { done: { proofs: [{}, { kind: 'recovery', way: recovery }], strength: { acr: 'mfa' } } })
  })

  await t.test('what has changed between two steps is judged at the last one', async (t) => {
    const change: Record<string, (totp: string) => Promise<unknown>> = {
      'the user is disabled': () => users.update('ann', { set: { disabled_at: '2020-01-01T00:00:00.000Z' } }),
      'the user has expired': () => users.update('ann', { set: { expired_at: '2020-01-01T00:00:00.000Z' } }),
      'the user is deleted': () => users.delete('ann'),
      'the password was set anew': () => users.update('ann', { increment: { epoch: 1 } }),
      'the password was removed': () => users.update('ann', { unset: ['password'] })
    }
    for (const [name, make] of Object.entries(change)) {
      const [totp = ''] = await put('ann', 'totp')
      const done: string[] = []
      const second: Step = { ...ask('totp', 'b', totp), verify: async (given, progress) => { await make(totp); return await ask('totp', 'b', totp).verify(given, progress, '') } }
      const signIns = createSignIns({ store, now, places: [[PASSWORD], [second]], maySignIn, onDone: async ({ user_id }) => { done.push(user_id) } })
      await signIns.submit(name, attempt('a'))
      const outcome = await signIns.submit(name, attempt('b'))
      t.match(outcome, { again: { step: { kind: 'password' } }, refused: { reason: name === 'the password was removed' ? /ended|missing/ : 'ended' } }, name)
      t.strictSame(done, [])
      t.equal((await signIns.find(name)).step.kind, 'password', 'and it begins again')
    }
    const [totp = ''] = await put('ann', 'totp')
    await ways.add({ user_id: 'ann', epoch: 3 }, { kind: 'totp', material: { step: 0 } })
    const second: Step = { ...ask('totp', 'b', totp), verify: async (given, progress) => { await ways.remove({ user_id: 'ann', epoch: 3 }, totp, { isEnd: false }); return await ask('totp', 'b', totp).verify(given, progress, '') } }
    const signIns = open([PASSWORD], [second])
    await signIns.submit('removed', attempt('a'))
    t.match(await signIns.submit('removed', attempt('b')), { next: { step: { kind: 'totp' } } }, 'a way that was removed proves nothing; the other one is asked for')
  })

  await t.test('a second factor that the role demands, and a user without one', async (t) => {
    const demanding = createJudge({ store, now, ways, policy: { ...DEFAULT_POLICY, factors: { roles: ['ops'] } } })
    await put('ann')
    const signIns = createSignIns({ store, now, places: [[PASSWORD], [ask('totp', 'b')]], maySignIn: demanding })
    t.match(await signIns.submit('one', attempt('a')), { done: {} })
    await users.update('ann', { set: { roles: { ops: true } } })
    t.match(await signIns.submit('two', attempt('a')), { again: { step: { kind: 'password' } }, refused: { reason: 'missing' } })
    const [totp = ''] = await put('ann', 'totp')
    const given = createSignIns({ store, now, places: [[PASSWORD], [ask('totp', 'b', totp)]], maySignIn: demanding })
    await users.update('ann', { set: { roles: { ops: true } } })
    await given.submit('three', attempt('a'))
    t.match(await given.submit('three', attempt('b')), { done: { strength: { acr: 'mfa' } } })
  })

  await t.test('what the request asks for: more than is demanded, or more than the user can prove', async (t) => {
    const [totp = '', key = ''] = await put('ann', 'totp', 'passkey')
    const signIns = open([PASSWORD], [ask('totp', 'b', totp), ask('passkey', 'c', key)])
    const phr = { acr: 'phr' as Acr }
    t.match(await signIns.submit('one', attempt('a'), phr), { next: { step: { kind: 'passkey' }, others: [] } })
    t.match(await signIns.submit('one', attempt('c'), phr), { done: { strength: { acr: 'phr' } } })
    await put('ann')
    t.strictSame(await signIns.submit('two', attempt('a'), { acr: 'mfa' }), { unmet: true })
    t.match(await signIns.submit('two', attempt('a'), { acr: '1' }), { done: {} })
  })

  await t.test('a step-up adds what the session lacks, for its user', async (t) => {
    const [totp = ''] = await put('ann', 'totp')
    const signIns = open([PASSWORD], [ask('totp', 'b', totp)])
    const base = { user_id: 'ann', user_epoch: 3, account: '', proofs: [proof('password')] }
    t.equal((await signIns.find('up', { base })).step.kind, 'totp')
    time += HOUR
    t.match(await signIns.submit('up', attempt('b'), { base }), { done: { account: '', proofs: [base.proofs[0], { kind: 'totp' }], strength: { acr: 'mfa', time: base.proofs[0]!.at } } })
    const crowded = { ...base, proofs: [...base.proofs, ...Array.from({ length: 50 }, (_, number) => proof('totp', `former ${number}`))] }
    const { done } = await signIns.submit('crowded', attempt('b'), { base: crowded }) as Extract<Outcome, { done: unknown }>
    t.strictSame(done.proofs.map(({ way }) => way), ['password', totp], 'proofs by ways that were removed go')
    t.equal((await signIns.find('up', { base: { ...base, user_epoch: 2 } })).step.kind, 'password', 'not of a session that has ended')
    t.equal((await signIns.find('up', { base: { ...base, proofs: [proof('password'), proof('totp', totp)] } })).step.kind, 'password', 'nothing is lacking')
  })

  await t.test('from the second step on, attempts are counted for the user', async (t) => {
    const [totp = ''] = await put('ann', 'totp')
    const counted: string[] = []
    const counting = (step: Step): Step => ({ ...step, verify: async (given, progress) => { await given.limit('typed'); return await step.verify(given, progress, '') } })
    const signIns = open([counting(PASSWORD)], [counting(ask('totp', 'b', totp))])
    const watched = (word: string): Attempt => ({ ...attempt(word), limit: async (account) => { counted.push(account); return undefined } })
    await signIns.submit('one', watched('a'))
    await signIns.submit('one', watched('b'))
    t.strictSame(counted, ['typed', ' user ann'], 'nobody can type it: a typed account is trimmed')
  })

  await t.test('five wrong forms of a later step lead back to the first one, also at once and with a session', async (t) => {
    const [totp = ''] = await put('ann', 'totp')
    let verified = 0
    const second: Step = { ...ask('totp', 'b', totp), verify: async (given, progress) => { verified++; return await ask('totp', 'b', totp).verify(given, progress, '') } }
    const signIns = open([PASSWORD], [second])
    const again = { again: { step: { kind: 'totp' } }, refused: { reason: 'wrong-password' } }
    const back = { again: { step: { kind: 'password' } }, refused: { reason: 'too-many' }, failed: 'totp' }
    await signIns.submit('one', attempt('a'))
    for (let count = 0; count < 4; count++) t.match(await signIns.submit('one', attempt('x')), again)
    t.match(await signIns.submit('one', attempt('x')), back)
    t.equal((await signIns.find('one')).step.kind, 'password')
    t.match(await signIns.submit('one', attempt('b')), { again: { step: { kind: 'password' } } }, 'the right answer is too late')
    t.equal(verified, 5)
    t.match(await signIns.submit('one', attempt('a')), { next: { step: { kind: 'totp' } } }, 'it begins again')
    for (let count = 0; count < 4; count++) await signIns.submit('one', attempt('x'))
    t.match(await signIns.submit('one', attempt('b')), { done: {} }, 'with five new tries')

    verified = 0
    await signIns.submit('many', attempt('a'))
    const many = await Promise.all(Array.from({ length: 20 }, async () => await signIns.submit('many', attempt('x'))))
    t.equal(verified, 5, 'no more are verified')
    t.equal(many.filter((outcome) => 'refused' in outcome && outcome.refused.reason === 'too-many').length, 16)

    const base = { user_id: 'ann', user_epoch: 3, account: '', proofs: [proof('password')] }
    verified = 0
    const up = await Promise.all(Array.from({ length: 20 }, async () => await signIns.submit('up', attempt('x'), { base })))
    t.equal(verified, 5, 'with a session that has proved the first step')
    const last = up.filter((outcome) => 'refused' in outcome && outcome.refused.reason === 'too-many')
    t.equal(last.length, 16)
    t.match(last.at(-1), back)
    t.equal((await signIns.find('up', { base })).step.kind, 'password', 'the session counts no more for this sign-in')
    t.match(await signIns.submit('up', attempt('a'), { base }), { next: { step: { kind: 'totp' } } })
    t.match(await signIns.submit('up', attempt('b'), { base }), { done: { strength: { acr: 'mfa' } } })
    await signIns.submit('later', attempt('x'), { base })
    for (let count = 0; count < 4; count++) await signIns.submit('later', attempt('x'), { base })
    time += 10 * 60 * 1000
    t.match(await signIns.submit('later', attempt('x'), { base }), again, 'until the sign-in expires')
    t.equal((await signIns.find('later')).step.kind, 'password', 'what the session has proved is not stored')

    await signIns.submit('paused', attempt('a'))
    const paused: Attempt = { ...attempt('x'), limit: async () => { throw new Error('paused') } }
    const limited = open([PASSWORD], [{ ...second, verify: async (given, progress) => { await given.limit(''); return await second.verify(given, progress, '') } }])
    for (let count = 0; count < 9; count++) await t.rejects(limited.submit('paused', paused), { message: 'paused' })
    t.equal((await signIns.find('paused')).step.kind, 'totp', 'a form that was not verified is no wrong one')
    t.match(await signIns.submit('paused', attempt('b')), { done: {} })
  })

  await t.test('after a step that a link has proved, the remaining steps follow', async (t) => {
    const [totp = ''] = await put('bob', 'totp')
    await put('ann')
    const done: string[] = []
    const places = [[PASSWORD], [ask('totp', 'b', totp, 'bob')]] as const
    const signIns = createSignIns({ store, now, places, maySignIn, onDone: async ({ user_id }) => { done.push(user_id) } })
    await signIns.submit('linked', attempt('x'))
    const link = { way: 'password', kind: 'password', user_epoch: 3 } as const
    t.match(await signIns.proceed('linked', { ...link, user_id: 'bob' }), { next: { step: { kind: 'totp' } } })
    t.strictSame(done, [], 'the link alone signs nobody in')
    t.match(await signIns.submit('linked', attempt('b')), { done: { user_id: 'bob', account: '', strength: { acr: 'mfa' } } }, 'as the user of the link')
    t.match(await signIns.proceed('alone', { ...link, user_id: 'ann' }), { done: { user_id: 'ann', account: '' } })
    t.match(await signIns.proceed('late', { ...link, user_id: 'ann', user_epoch: 2 }), { again: {}, refused: { reason: 'ended' } })
    t.strictSame(done, ['bob', 'ann'])
  })

  await t.test('the store has no secret of the browser', async (t) => {
    const [totp = ''] = await put('ann', 'totp')
    await open([PASSWORD], [ask('totp', 'b', totp)]).submit('browser-secret', attempt('a'))
    const stored = []
    for await (const batch of store.collection('sign_ins').stream()) stored.push(...batch)
    t.notMatch(JSON.stringify(stored), 'browser-secret')
    t.match(stored, [{ user_id: 'ann', user_epoch: 3, account: 'ann', proofs: [{ kind: 'password' }] }])
  })
})
