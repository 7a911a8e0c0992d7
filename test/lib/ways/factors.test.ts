import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import type { CredentialRecord } from '../../../lib/way.ts'
import { countCodes } from '../../../lib/ways/recovery-codes.ts'
import { findCodeStep, generateCode } from '../../../lib/ways/totp.ts'
import { openFactors } from '../../helpers/factors.ts'
import { race } from '../../helpers/race.ts'
import { Scheduler, createRandom } from '../../helpers/scheduler.ts'
import { forEachEngine } from '../../helpers/stores.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'

t.setTimeout(180_000)

const STEP = 30_000
const HOUR = 60 * 60_000

/** A code that is none of those near the present. */
const differ = (code: string): string => String((Number(code) + 500_000) % 1_000_000).padStart(6, '0')

t.test('the codes are those of RFC 6238, with six digits', async (t) => {
  const seed = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
  // RFC 6238, appendix B, the last six digits.
  const vectors: [seconds: number, code: string][] = [[59, '287082'], [1111111109, '081804'], [1111111111, '050471'], [1234567890, '005924'], [2000000000, '279037'], [20000000000, '353130']]
  for (const [seconds, code] of vectors) {
    t.equal(await generateCode(seed, seconds * 1000), code)
    const step = Math.floor(seconds / 30)
    for (const [moved, found] of [[-2, null], [-1, step], [0, step], [1, step], [2, null]] as const) {
      t.equal(await findCodeStep(seed, code, seconds * 1000 + moved * STEP), found, `${moved} steps later`)
    }
  }
  for (const code of ['', '28708', '2870820', ' 287082', '28708x', '２８７０８２']) t.equal(await findCodeStep(seed, code, 59_000), null, code)
})

await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
  t.test('an app: its first code proves it, and its seed is stored sealed', async (t) => {
    const { create, factors, ways, actor, users } = openFactors(store)
    await create('new')
    const { id, seed, uri } = await factors.beginTotp(await actor('new'), 'new@example.com', 'Phone')
    t.equal(uri, `otpauth://totp/Northwind%20ID:new%40example.com?issuer=Northwind%20ID&secret=${seed}&algorithm=SHA1&digits=6&period=30`)
    t.match(seed, /^[A-Z2-7]{32}$/, '160 bits')
    const code = await generateCode(seed, Date.parse('2126-11-23T00:00:15.000Z'))
    t.equal(await factors.verifyTotp('new', code), null, 'it counts for nothing before it is named')
    t.equal(await factors.proveTotp(await actor('new'), id, differ(code)), false)
    t.match(await factors.findBegun(await actor('new'), id, 'new'), { id, seed, proved: false })
    t.equal(await factors.proveTotp(await actor('new'), id, code), true)
    t.match(await factors.findBegun(await actor('new'), id, 'new'), { proved: true })
    await create('other')
    await t.rejects(factors.proveTotp(await actor('other'), id, code), { code: 'ErrNotFound', refusal: 'unknown' }, 'it is nobody else\'s')
    t.equal(await factors.findBegun(await actor('other'), id, 'other'), null)
    await ways.name(await actor('new'), [id])
    t.equal(await factors.verifyTotp('new', code), null, 'the code that proved it is no code for a sign-in')
    const stored = await store.collection<CredentialRecord>('credentials').get(id)
    t.notMatch(JSON.stringify(stored), seed)
    t.match(stored, { user_id: 'new', way: { kind: 'totp' }, name: 'Phone' })
    t.notMatch(JSON.stringify(await users.get('new')), seed)
    await t.rejects(factors.beginTotp({ user_id: 'new', epoch: 9 }, 'new'), { code: 'ErrUnknown' }, 'in a session that has ended')
  })

  t.test('a code is good once, one step either side', async (t) => {
    const { create, addApp, factors, advance, failed } = openFactors(store)
    await create('ann')
    const app = await addApp('ann')
    for (const steps of [-2, 2]) t.equal(await factors.verifyTotp('ann', await app.code(steps)), null, `${steps} steps`)
    t.equal(await factors.verifyTotp('ann', await app.code(-1)), app.id)
    t.equal(await factors.verifyTotp('ann', await app.code(-1)), null, 'again')
    t.equal(await factors.verifyTotp('ann', await app.code(1)), app.id)
    for (const steps of [-1, 0, 1]) t.equal(await factors.verifyTotp('ann', await app.code(steps)), null, 'no step before one that was used')
    advance(2 * STEP)
    t.equal(await factors.verifyTotp('ann', await app.code()), app.id)
    t.equal(failed.length, 6)
    const at = Array.from({ length: 4 }, async () => await factors.verifyTotp('ann', await app.code(1)))
    t.equal((await Promise.all(at)).filter((id) => id !== null).length, 1, 'at the same moment')
  })

  t.test('a code of an app and one for recovery, each sent twice at random times: each is accepted once', async (t) => {
    const { create, addApp, addCodes, factors, advance } = openFactors(store)
    await create('hal')
    const app = await addApp('hal')
    const rounds = t.fullname.includes('MongoDB') ? 200 : 20
    const wrong: string[] = []
    let codes: string[] = []
    const pick = createRandom(7)
    for (let round = 0; round < rounds; round++) {
      advance(2 * STEP)
      if (codes.length === 0) codes = await addCodes('hal')
      const [code, spare] = [await app.code(), codes.pop()!]
      const count = async (verify: () => Promise<string | null>) => {
        const found = await Promise.all([0, 1].map(async () => {
          await sleep(pick(4))
          return await verify()
        }))
        return found.filter((id) => id !== null).length
      }
      const accepted = await Promise.all([count(() => factors.verifyTotp('hal', code)), count(() => factors.verifyCode('hal', spare))])
      if (accepted.join() !== '1,1') wrong.push(`round ${round}: ${accepted.join()}`)
    }
    t.strictSame(wrong, [])
  })

  t.test('a code of an app that was removed or renamed, and of another user', async (t) => {
    const { create, addApp, factors, ways, actor, advance } = openFactors(store)
    await create('bob')
    await create('eve')
    const [app, second, other] = [await addApp('bob'), await addApp('bob'), await addApp('eve')]
    t.equal(await factors.verifyTotp('bob', await other.code()), null, 'of another user')
    t.equal(await factors.verifyTotp('nobody', await other.code()), null)
    const renamed = await store.collection<CredentialRecord>('credentials').get(app.id)
    await ways.update(renamed!, { name: 'Phone' })
    t.equal(await factors.verifyTotp('bob', await app.code()), app.id, 'renamed')
    t.equal(await factors.verifyTotp('bob', await second.code()), second.id, 'each app has its own steps')
    await ways.remove(await actor('bob'), app.id)
    advance(STEP)
    t.equal(await factors.verifyTotp('bob', await app.code()), null, 'removed')
    t.equal(await factors.verifyTotp('bob', await second.code()), second.id)
  })

  t.test('a recovery code is good once, and a new set ends the former one', async (t) => {
    const { create, addApp, addCodes, factors, ways, users, events } = openFactors(store)
    await create('cid')
    await addApp('cid')
    const codes = await addCodes('cid')
    t.equal(new Set(codes).size, 10)
    for (const code of codes) t.match(code, /^([0-9a-hjkmnp-tv-z]{4}-){2}[0-9a-hjkmnp-tv-z]{4}$/, '60 bits')
    const stored = JSON.stringify((await Array.fromAsync(store.collection('credentials').stream())).flat())
    for (const code of codes) t.notOk(stored.includes(code) || stored.includes(code.replaceAll('-', '')), 'hashed')
    t.type(await factors.verifyCode('cid', codes[0]!), 'string')
    t.equal(await factors.verifyCode('cid', codes[0]!), null, 'again')
    t.type(await factors.verifyCode('cid', ` ${codes[1]!.toUpperCase().replaceAll('-', ' ').replaceAll('0', 'O').replaceAll('1', 'l')}`), 'string', 'as people type it')
    for (const code of ['', '-', codes[2]!.slice(0, -1), `${codes[2]}0`]) t.equal(await factors.verifyCode('cid', code), null)
    t.equal(countCodes(await ways.list((await users.get('cid'))!)), 8)
    t.strictSame(events.filter(({ type }) => type === 'recovery.used').map(({ id, count }) => [id, count]), [['cid', 9], ['cid', 8]])
    const twice = await Promise.all([codes[2]!, codes[2]!, codes[3]!].map(async (code) => await factors.verifyCode('cid', code)))
    t.equal(twice.filter((id) => id !== null).length, 2, 'one at the same moment, and another one beside it')
    const anew = await addCodes('cid')
    t.equal(await factors.verifyCode('cid', codes[4]!), null, 'of the former set')
    t.type(await factors.verifyCode('cid', anew[0]!), 'string')
    await create('dan')
    t.equal(await factors.verifyCode('dan', anew[1]!), null, 'of another user')
    t.equal(await factors.verifyCode('nobody', anew[1]!), null)
  })

  t.test('100 wrong codes in a row close a factor, whatever the password; another way opens it', async (t) => {
    const { create, addApp, addCodes, factors, users, advance, events, failed } = openFactors(store)
    await create('fay')
    const app = await addApp('fay')
    const codes = await addCodes('fay')
    const close = async () => {
      for (let count = 0; count < 100; count++) {
        t.equal(await factors.verifyTotp('fay', differ(await app.code())), null)
        advance(HOUR)
      }
    }
    for (let count = 0; count < 20; count++) await factors.verifyTotp('fay', differ(await app.code()))
    await t.rejects(factors.verifyTotp('fay', await app.code()), { code: 'ErrLimit', reason: 'paused', headers: { 'retry-after': '1' } }, 'a pause, as at a password')
    advance(STEP)
    t.equal(await factors.verifyTotp('fay', await app.code()), app.id, 'a success ends the count')
    failed.length = 0
    await close()
    t.equal(failed.length, 100)
    t.strictSame(events.splice(0).filter(({ type }) => type.startsWith('factor.')).map(({ type, id }) => [type, id]), [['factor.closed', 'fay']], 'once')
    await t.rejects(factors.verifyTotp('fay', await app.code()), { code: 'ErrLimit', reason: 'code_closed', message: 'code: is closed after too many wrong attempts; use another way, or ask an administrator to open it', headers: {} })
    await users.update('fay', { set: { password: 'other' }, increment: { epoch: 1, revision: 1 } })
    advance(1000 * 24 * HOUR)
    await t.rejects(factors.verifyTotp('fay', await app.code()), { code: 'ErrLimit', reason: 'code_closed' }, 'after a new password, and years later')
    t.equal(await factors.verifyCode('fay', differ(await app.code())), null)
    await t.rejects(factors.verifyTotp('fay', await app.code()), { code: 'ErrLimit', reason: 'code_closed' })
    t.type(await factors.verifyCode('fay', codes[0]!), 'string', 'recovery codes are not closed')
    t.equal(await factors.verifyTotp('fay', await app.code()), app.id, 'a recovery code opens it')
    t.strictSame(events.splice(0).map(({ type, id }) => [type, id]), [['recovery.used', 'fay'], ['factor.opened', 'fay']])

    advance(STEP)
    await close()
    const second = await addApp('fay')
    events.length = 0
    t.equal(await factors.verifyTotp('fay', differ(await second.code())), null, 'a wrong code of another factor is wrong, and not refused')
    t.equal(await factors.verifyTotp('fay', await second.code()), second.id, 'another factor is not closed')
    t.strictSame(events.splice(0).map(({ type }) => type), ['factor.opened'])
    t.equal(await factors.verifyTotp('fay', await app.code()), app.id, 'and opens it')

    advance(STEP)
    await close()
    for (let count = 0; count < 100; count++, advance(HOUR)) await factors.verifyTotp('fay', differ(await app.code())).catch(() => {})
    await t.rejects(factors.verifyTotp('fay', await second.code()), { code: 'ErrLimit', reason: 'code_closed' }, 'all of them')
    await factors.open((await users.get('fay'))!)
    t.equal(await factors.verifyTotp('fay', await second.code()), second.id, 'an administrator opens all')
    advance(STEP)
    t.equal(await factors.verifyTotp('fay', await app.code()), app.id)
  })
})

t.test('one code at the same moment: once, in every order of the store calls', async (t) => {
  const scheduler = new Scheduler()
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  t.teardown(() => inner.close())
  // The calls of other credentials are reads.
  let watched = ''
  scheduler.isShared = ({ collection, args: [id] }) => collection === 'credentials' && id === watched
  scheduler.waitsForAll = true
  const { create, addApp, addCodes, factors, advance, ways, users } = openFactors(wrapStore(inner, scheduler.around))
  await create('gus')
  const app = await addApp('gus')
  watched = app.id
  let codes: string[] = []
  /** A new set of codes, which is watched. */
  const renew = async () => {
    codes = await addCodes('gus')
    watched = Object.entries((await users.get('gus'))!.ways!).find(([, { kind }]) => kind === 'recovery')![0]
  }
  const credentials = inner.collection<CredentialRecord>('credentials')
  /** Resolves for an accepted code. */
  const accept = (verify: () => Promise<string | null>) => async () => { if (await verify() === null) throw new Error('refused') }

  await race(t, scheduler, { least: 4, outcomes: ['one', 'two'] }, async () => {
    advance(2 * STEP)
    const code = await app.code()
    return { actors: { one: accept(() => factors.verifyTotp('gus', code)), two: accept(() => factors.verifyTotp('gus', code)) } }
  })

  await race(t, scheduler, { least: 4, outcomes: ['one', 'two'] }, async () => {
    await renew()
    return { actors: { one: accept(() => factors.verifyCode('gus', codes[0]!)), two: accept(() => factors.verifyCode('gus', codes[0]!)) } }
  })

  // A right code is not refused beside another one.
  await race(t, scheduler, { least: 4, outcomes: ['one, two'] }, async () => {
    await renew()
    return { actors: { one: accept(() => factors.verifyCode('gus', codes[0]!)), two: accept(() => factors.verifyCode('gus', codes[1]!)) } }
  })

  // A name that is changed meanwhile refuses no right code.
  watched = app.id
  await race(t, scheduler, { least: 3, outcomes: ['owner, person'] }, async () => {
    advance(2 * STEP)
    const code = await app.code()
    return {
      actors: {
        person: accept(() => factors.verifyTotp('gus', code)),
        owner: async () => await ways.update((await credentials.get(app.id))!, { name: 'Phone' })
      }
    }
  })
})
