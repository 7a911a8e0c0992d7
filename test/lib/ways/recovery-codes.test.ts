import { createHash, createHmac, hash } from 'node:crypto'
import { hashSync } from 'bcryptjs'
import t from 'tap'
import { busyError } from '../../../lib/errors.ts'
import { createSecretBox, generateSecretKey } from '../../../lib/crypto/secrets.ts'
import { createSealing } from '../../../lib/maintenance/reseal.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { createPasswords } from '../../../lib/users/passwords.ts'
import type { CredentialRecord } from '../../../lib/way.ts'
import { toCodesTarget } from '../../../lib/ways/factor-use.ts'
import { countCodes, createCodes, findValue, isCodeSet } from '../../../lib/ways/recovery-codes.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { openFactors } from '../../helpers/factors.ts'
import { race } from '../../helpers/race.ts'
import { Scheduler } from '../../helpers/scheduler.ts'
import { forEachEngine } from '../../helpers/stores.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'

t.setTimeout(180_000)

const HOUR = 60 * 60_000
const SECOND = 1000

/** A code of the right form that is of no set. */
const WRONG = '0000-0000-0000'

/** A set as releases before this one have made it: 120 bits each, and plain hashes. */
const FORMER = ['q6vz-0001-2cdk-w8rm-ehx4-9ptb', 'zzzz-1111-2222-3333-4444-5555']
const toFormerHash = (code: string): string => hash('sha256', code.replaceAll('-', ''), 'base64url')

const findSet = (ways: { [id: string]: { kind: string } } = {}): string => Object.entries(ways).find(([, { kind }]) => kind === 'recovery')![0]

await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
  const credentials = store.collection<CredentialRecord>('credentials')

  t.test('a code is accepted as people type it from paper', async (t) => {
    const { create, addCodes, factors } = openFactors(store)
    await create('ann')
    const codes = await addCodes('ann')
    for (const code of codes) t.match(code, /^[0-9a-hjkmnp-tv-z]{4}(-[0-9a-hjkmnp-tv-z]{4}){2}$/)
    const plain = (code: string) => code.replaceAll('-', '')
    const forms: ((code: string) => string)[] = [
      (code) => code,
      plain,
      (code) => code.toUpperCase(),
      (code) => code.replaceAll('-', ' '),
      (code) => ` ${[...plain(code)].join(' ')} `,
      (code) => plain(code).replaceAll('0', 'O').replaceAll('1', 'l'),
      (code) => code.toUpperCase().replaceAll('0', 'o').replaceAll('1', 'I'),
      (code) => code.replaceAll('-', ' - ')
    ]
    for (const [index, write] of forms.entries()) t.type(await factors.verifyCode('ann', write(codes[index]!)), 'string', write(codes[index]!))
  })

  t.test('one try takes one slow hash, however many codes are left', async (t) => {
    const { create, addCodes, factors, hashed } = openFactors(store)
    await create('bob')
    const codes = await addCodes('bob')
    t.strictSame(hashed.splice(0), [10], 'a set is made in one piece of work')
    await factors.verifyCode('bob', WRONG)
    t.strictSame(hashed.splice(0), [1], 'ten are left')
    for (const code of codes.slice(0, 9)) t.type(await factors.verifyCode('bob', code), 'string')
    t.strictSame(hashed.splice(0), Array(9).fill(1))
    await factors.verifyCode('bob', WRONG)
    t.strictSame(hashed.splice(0), [1], 'one is left')
    const { id } = await factors.prepareCodes({ user_id: 'bob', epoch: 0 })
    hashed.length = 0
    t.type(await factors.verifyCode('bob', codes[9]!), 'string')
    t.strictSame(hashed.splice(0), [1], `beside a set that is not confirmed, ${id}`)
    for (const code of ['', '123456', `${WRONG}0`, FORMER[0]!]) t.equal(await factors.verifyCode('bob', code), null)
    t.strictSame(hashed, [], 'what cannot be a code costs none')
  })

  t.test('codes of earlier releases work until they are replaced', async (t) => {
    const { create, addCodes, factors, ways, actor, hashed, users } = openFactors(store)
    await create('cid')
    const [id = ''] = await ways.prepare(await actor('cid'), [{ kind: 'recovery', material: { hashes: FORMER.map(toFormerHash) } }])
    await ways.name(await actor('cid'), [id])
    t.equal(await factors.verifyCode('cid', WRONG), null)
    t.equal(await factors.verifyCode('cid', FORMER[0]!.toUpperCase().replaceAll('-', ' ').replaceAll('0', 'O')), id)
    t.equal(await factors.verifyCode('cid', FORMER[0]!), null, 'again')
    t.equal(countCodes(await ways.list((await users.get('cid'))!)), 1)
    t.strictSame((await credentials.get(id))!.material, { hashes: [toFormerHash(FORMER[1]!)] })
    t.strictSame(hashed, [])
    const codes = await addCodes('cid')
    t.equal(await factors.verifyCode('cid', FORMER[1]!), null, 'replaced')
    t.type(await factors.verifyCode('cid', codes[0]!), 'string')
  })

  t.test('wrong codes count for the person, over sets, and 100 in a row lock the codes', async (t) => {
    const { create, addApp, addCodes, factors, attempts, users, advance, events, failed, hashed } = openFactors(store)
    await create('dan')
    await create('eve')
    const app = await addApp('dan')
    const others = await addCodes('eve')
    const target = toCodesTarget('dan')
    const countWrong = async (count: number) => {
      for (let index = 0; index < count; index++, advance(HOUR)) t.equal(await factors.verifyCode('dan', WRONG), null)
    }
    const first = await addCodes('dan')
    await countWrong(50)
    t.type(await factors.verifyCode('dan', first[0]!), 'string')
    t.match(await attempts.read(target), { failures: 0 }, 'a right code ends the count')
    await countWrong(50)
    const second = await addCodes('dan')
    t.match(await attempts.read(target), { failures: 50, isClosed: false }, 'a new set does not')
    await users.update('dan', { set: { password: 'other' }, increment: { epoch: 1, revision: 1 } })
    await countWrong(49)
    t.equal((await attempts.read(target)).isClosed, false, 'nor does a new password')
    const [, set] = [events.splice(0), findSet((await users.get('dan'))!.ways)]
    await countWrong(1)
    t.match(await attempts.read(target), { failures: 100, isClosed: true })
    t.match(events.splice(0), [{ type: 'factor.closed', id: 'dan', method: { kind: 'recovery', id: set } }])
    hashed.length = 0
    failed.length = 0
    const locked = { code: 'ErrLimit', reason: 'code_closed' }
    await t.rejects(factors.verifyCode('dan', second[0]!), locked)
    const third = await addCodes('dan')
    hashed.length = 0
    advance(1000 * 24 * HOUR)
    await t.rejects(factors.verifyCode('dan', third[0]!), locked, 'nor another set, years later')
    t.strictSame(hashed, [], 'what is refused is not hashed')
    t.strictSame(failed, ['dan', 'dan'])
    t.type(await factors.verifyCode('eve', others[0]!), 'string', 'other people are not concerned')

    events.length = 0
    t.equal(await factors.verifyTotp('dan', await app.code()), app.id, 'the app is not locked')
    t.match(events.splice(0), [{ type: 'factor.opened', id: 'dan', method: { kind: 'recovery' } }], 'and opens the codes')
    t.type(await factors.verifyCode('dan', third[0]!), 'string')
    await countWrong(100)
    await t.rejects(factors.verifyCode('dan', third[1]!), locked)
    const id = findSet((await users.get('dan'))!.ways)
    t.match(await factors.open((await users.get('dan'))!), [{ part: 'factor', factor_id: app.id }, { part: 'factor', factor_id: id, reason: 'factor_locked' }])
    t.type(await factors.verifyCode('dan', third[1]!), 'string', 'an administrator has opened them')
    t.strictSame(await factors.open((await users.get('dan'))!), [{ part: 'factor', factor_id: app.id }, { part: 'factor', factor_id: id }])
  })

  t.test('the pauses are those of passwords, and a try counts before it is hashed', async (t) => {
    const { create, addCodes, factors, attempts, advance, hashed, stall } = openFactors(store)
    await create('fay')
    const codes = await addCodes('fay')
    for (let count = 0; count < 20; count++) await factors.verifyCode('fay', WRONG)
    hashed.length = 0
    await t.rejects(factors.verifyCode('fay', codes[0]!), { code: 'ErrLimit', reason: 'paused', headers: { 'retry-after': '1' } })
    t.strictSame(hashed, [])
    advance(SECOND)
    stall(async () => { t.match(await attempts.read(toCodesTarget('fay')), { failures: 21 }) })
    t.type(await factors.verifyCode('fay', codes[0]!), 'string')
    t.match(await attempts.read(toCodesTarget('fay')), { failures: 0 })
    stall(async () => { throw busyError('password hashes') })
    await t.rejects(factors.verifyCode('fay', codes[1]!), { code: 'ErrBusy' })
    t.match(await attempts.read(toCodesTarget('fay')), { failures: 0 }, 'what was not compared does not count')
    t.type(await factors.verifyCode('fay', codes[1]!), 'string', 'and the code was not spent')
    const tries = await Promise.all(Array.from({ length: 30 }, async () => await factors.verifyCode('fay', WRONG).catch(({ code }: { code: string }) => code)))
    t.equal(tries.filter((one) => one === null).length, 20, 'no more at once')
  })

  t.test('a rotation of the secret key leaves printed codes alive', async (t) => {
    const former = generateSecretKey()
    const { create, addCodes, factors, users } = openFactors(store, createSecretBox(former))
    await create('gil')
    const codes = await addCodes('gil')
    const id = findSet((await users.get('gil'))!.ways)
    t.type(await factors.verifyCode('gil', codes[0]!), 'string')
    const next = generateSecretKey()
    // Only this record, because the others of this store have other keys.
    const own = await credentials.get(id)
    const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
    t.teardown(() => inner.close())
    await inner.collection<CredentialRecord>('credentials').insert(own!)
    const box = createSecretBox(next, former)
    t.equal(await createSealing({ store: inner, box, recorder: createSilentRecorder(inner) }).reseal(), 1)
    const resealed = (await inner.collection<CredentialRecord>('credentials').get(id))!
    t.not(resealed.sealed, own!.sealed)
    await credentials.put(resealed)
    const { factors: rotated } = openFactors(store, createSecretBox(next))
    t.type(await rotated.verifyCode('gil', codes[1]!), 'string', 'without the former key')
    t.equal(await rotated.verifyCode('gil', codes[0]!), null, 'what was used stays used')
    const { factors: stranger } = openFactors(store, createSecretBox(generateSecretKey()))
    await t.rejects(stranger.verifyCode('gil', codes[2]!), { code: 'ErrInternal' }, 'without any key')
    t.type(await rotated.verifyCode('gil', codes[2]!), 'string')
  })
})

t.test('a stolen database without the secret key checks no code', async (t) => {
  const passwords = createPasswords({ cost: 4 })
  t.teardown(() => passwords.close())
  const { codes, set, key } = await createCodes(passwords)
  t.match(set, { salt: /^[\w-]{22}$/, cost: 4 })
  t.equal(new Set(set.hashes).size, 10)
  const code = codes[0]!.replaceAll('-', '')
  const { value: slow } = { value: (await passwords.stretch([code], { salt: set.salt!, cost: 4 }))[0]! }
  t.equal(hashSync(code, slow.slice(0, 29)), slow, 'the slow hash is bcrypt')
  // Everything that somebody can compute of a code with what is in the database.
  const known = [code, codes[0]!, slow, slow.slice(29)].flatMap((text) => [
    text, ...['hex', 'base64', 'base64url'].map((form) => createHash('sha256').update(text).digest(form as 'hex')), createHmac('sha256', set.salt!).update(text).digest('base64url')
  ])
  t.strictSame(known.filter((one) => set.hashes.includes(one)), [])
  const toValue = (await findValue(set, codes[0]!, passwords))!
  t.ok(set.hashes.includes(toValue(() => key)), 'the right key does')
  t.notOk(set.hashes.includes(toValue(() => Buffer.alloc(32).toString('base64url'))), 'another one does not')
  t.notOk(JSON.stringify(set).includes(key))
  const other = await createCodes(passwords)
  t.not(other.key, key, 'each set has its own key')
  t.not(other.set.salt, set.salt, 'and its own salt')
})

t.test('the cost of codes is lower than that of passwords, and not below the least one that is advised', async (t) => {
  for (const [cost, codeCost] of [[4, 4], [9, 9], [10, 10], [11, 10], [12, 10], [14, 12]] as const) {
    const passwords = createPasswords({ cost })
    t.teardown(() => passwords.close())
    t.equal(passwords.codeCost, codeCost, `${cost}`)
  }
})

t.test('a set of a file is one that can be checked', async (t) => {
  const salt = 'A'.repeat(22)
  for (const set of [{ hashes: [] }, { hashes: ['a'] }, { hashes: ['a'], salt, cost: 4 }, { hashes: ['a'], salt, cost: 14 }]) t.equal(isCodeSet(set), true, JSON.stringify(set))
  for (const set of [
    {}, { hashes: 'a' }, { hashes: [1] }, { hashes: [], cost: 4 }, { hashes: [], salt }, { hashes: [], salt: 'A', cost: 4 }, { hashes: [], salt: 1, cost: 4 },
    { hashes: [], salt, cost: 3 }, { hashes: [], salt, cost: 15 }, { hashes: [], salt, cost: 4.5 }, { hashes: [], salt, cost: '4' }
  ]) t.equal(isCodeSet(set), false, JSON.stringify(set))
})

t.test('codes beside each other, in every order of the store calls', async (t) => {
  const scheduler = new Scheduler()
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS })
  t.teardown(() => inner.close())
  let watched = ''
  scheduler.isShared = ({ collection, method, args: [id] }) => (collection === 'credentials' && id === watched) || collection === 'attempts' ||
    (collection === 'users' && method === 'update')
  scheduler.waitsForAll = true
  const { create, addCodes, factors, users, actor, ways, attempts } = openFactors(wrapStore(inner, scheduler.around))
  await create('gus')
  let codes: string[] = []
  const target = toCodesTarget('gus')
  const renew = async () => {
    await attempts.clear(target)
    codes = await addCodes('gus')
    watched = findSet((await users.get('gus'))!.ways)
  }
  const countLeft = async (id: string) => ((await inner.collection<CredentialRecord>('credentials').get(id))?.material['hashes'] as string[] | undefined)?.length
  /** Resolves for an accepted code. */
  const accept = (code: () => string) => async () => { if (await factors.verifyCode('gus', code()) === null) throw Object.assign(new Error('refused'), { code: 'wrong' }) }

  await t.test('the same code twice: once', async (t) => await race(t, scheduler, { least: 20, outcomes: ['one', 'two'], refusals: ['wrong'] }, async () => {
    await renew()
    return {
      actors: { one: accept(() => codes[0]!), two: accept(() => codes[0]!) },
      check: async () => await countLeft(watched) === 9 ? undefined : 'not one code was spent'
    }
  }))

  await t.test('two wrong codes: both count', async (t) => await race(t, scheduler, { least: 10, outcomes: ['nobody'], refusals: ['wrong'] }, async () => {
    await renew()
    return {
      actors: { one: accept(() => WRONG), two: accept(() => WRONG) },
      check: async () => (await attempts.read(target)).failures === 2 ? undefined : 'a guess was not counted'
    }
  }))

  await t.test('a right and a wrong code: the wrong one refuses no right one', async (t) => await race(t, scheduler, { least: 10, outcomes: ['owner'], refusals: ['wrong'] }, async () => {
    await renew()
    return { actors: { owner: accept(() => codes[0]!), thief: accept(() => WRONG) } }
  }))

  await t.test('a code of a set that is replaced meanwhile', async (t) => await race(t, scheduler, { least: 6, outcomes: ['owner', 'owner, person'], refusals: ['wrong'] }, async () => {
    await renew()
    const code = codes[0]!
    const { id, codes: next } = await factors.prepareCodes(await actor('gus'))
    const owner = await actor('gus')
    return {
      actors: { person: accept(() => code), owner: async () => await ways.name(owner, [id]) },
      async check () {
        await attempts.clear(target)
        if (await countLeft(watched) !== undefined) return 'the replaced set is left'
        if (await countLeft(id) !== 10) return 'the new set has lost a code'
        if (await factors.verifyCode('gus', codes[1]!) !== null) return 'a code of the replaced set is accepted'
        if (await factors.verifyCode('gus', next[0]!) === null) return 'a code of the new set is refused'
      }
    }
  }))
})
