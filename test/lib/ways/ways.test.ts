import t, { type Test } from 'tap'
import { type UserRecord, createUserRecord } from '../../../lib/records/user.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import type { Store } from '../../../lib/store/port.ts'
import type { NewWay } from '../../../lib/ways/credentials.ts'
import { type CredentialRecord, toWayKey } from '../../../lib/way.ts'
import { DEFAULT_POLICY, type WayPolicy } from '../../../lib/ways/words.ts'
import { createSilentRecorder } from '../../helpers/events.ts'
import { forEachEngine } from '../../helpers/stores.ts'
import { wrapStore } from '../../helpers/wrap-store.ts'
import { openTestWays } from '../../helpers/user-changes.ts'

const HOUR = 60 * 60_000
const totp: NewWay = { kind: 'totp', material: { sealed: 's', step: 0 } }
const codes: NewWay = { kind: 'recovery', material: { hashes: ['a', 'b'] } }
const passkey = (id: string): NewWay => ({ kind: 'passkey', key: toWayKey('passkey', id), uv: true, rp: 'id.example', material: { counter: 0 } })
const identity = (subject: string): NewWay => ({ kind: 'upstream', key: toWayKey('upstream', 'https://corp.example', subject), upstream: 'corp', material: {} })

function open (t: Test, store: Store, change: Partial<WayPolicy> = {}) {
  let time = Date.parse('2126-11-23T00:00:00.000Z')
  const ended: [string, number | undefined][] = []
  const ways = openTestWays({
    store,
    now: () => time,
    recorder: createSilentRecorder(store),
    tokens: { deleteOfUser: (id, epoch) => { ended.push([id, epoch]) } },
    policy: { ...DEFAULT_POLICY, allowsUpstream: () => true, ...change },
    onError: (error) => { throw error }
  })
  const users = store.collection<UserRecord>('users')
  let count = 0
  const create = async (fields: Partial<UserRecord> = {}) => {
    const id = `${t.name}-${count++}`.replaceAll(/\W/g, '-')
    await users.put({ ...createUserRecord(time, { id, account: id, roles: {}, password: 'hash', name: '', info: {} }), ...fields })
    return { user_id: id, epoch: 0 }
  }
  const read = async ({ user_id }: { user_id: string }) => (await users.get(user_id))!
  const listMaterial = async ({ user_id }: { user_id: string }) => {
    const found: CredentialRecord[] = []
    for await (const batch of store.collection<CredentialRecord>('credentials').stream({ filter: { equal: { user_id } } })) found.push(...batch)
    return found
  }
  return { ways, users, create, read, listMaterial, ended, advance: (milliseconds: number) => { time += milliseconds } }
}

await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
  t.test('a way is added, found by its key, and removed', async (t) => {
    const { ways, create, read, listMaterial, ended } = open(t, store)
    const ann = await create()
    const { id, user } = await ways.add(ann, passkey('a'))
    t.match(user, { ways: { [id]: { kind: 'passkey', uv: true, rp: 'id.example', at: '2126-11-23T00:00:00.000Z' } }, way_keys: [toWayKey('passkey', 'a')], revision: 1, epoch: 0 })
    t.notOk(JSON.stringify(user.ways).includes('counter'), 'the material is apart')
    t.match(await ways.find(toWayKey('passkey', 'a')), { user: { id: ann.user_id }, held: { id, credential: { material: { counter: 0 } } } })
    t.equal(await ways.find(toWayKey('passkey', 'b')), null)
    t.match(await ways.list(user), [{ id, way: { kind: 'passkey' } }])
    t.strictSame(ended, [], 'no session ends by a way that is added')
    const left = await ways.remove(ann, id)
    t.equal(left.epoch, 1)
    t.strictSame(ended, [[ann.user_id, 1]])
    t.notOk('ways' in left || 'way_keys' in left)
    t.strictSame(await listMaterial(ann), [])
    t.equal(await ways.find(toWayKey('passkey', 'a')), null)
    await t.rejects(ways.remove({ ...ann, epoch: 1 }, id), { code: 'ErrNotFound', refusal: 'unknown' })
    t.equal((await read(ann)).epoch, 1)
  })

  t.test('the other sessions go on if the person says so, but not without the password', async (t) => {
    const { ways, create, ended } = open(t, store)
    const ann = await create()
    const { id } = await ways.add(ann, totp)
    t.equal((await ways.remove(ann, id, { isEnd: false })).epoch, 0)
    await ways.add(ann, identity('ann'))
    const left = await ways.remove(ann, 'password', { isEnd: false })
    t.equal(left.epoch, 1)
    t.notOk('password' in left)
    t.strictSame(ended, [[ann.user_id, 1]])
    await t.rejects(ways.remove({ ...ann, epoch: 1 }, 'password'), { code: 'ErrNotFound', refusal: 'unknown' })
  })

  t.test('an identity of another user is in use already, and leaves no material', async (t) => {
    const { ways, create, read, listMaterial } = open(t, store)
    const [ann, bob] = [await create(), await create()]
    await ways.add(ann, identity('shared'))
    await t.rejects(ways.add(bob, identity('shared')), { code: 'ErrParam', refusal: 'in_use', message: 'way: is in use already' })
    t.strictSame(await listMaterial(bob), [])
    t.notOk('ways' in await read(bob))
    t.match(await ways.find(identity('shared').key!), { user: { id: ann.user_id } })
  })

  t.test('a change that was begun in a session fails after the session has ended', async (t) => {
    const { ways, users, create, read, listMaterial } = open(t, store)
    const thief = await create()
    const { id } = await ways.add(thief, identity('thief'))
    const prepared = await ways.prepare(thief, [totp])
    await users.update(thief.user_id, { increment: { epoch: 1, revision: 1 } })
    await t.rejects(ways.name(thief, prepared), { code: 'ErrUnknown' })
    await t.rejects(ways.add(thief, passkey('thief')), { code: 'ErrUnknown' })
    await t.rejects(ways.prepare(thief, [totp]), { code: 'ErrUnknown' })
    await t.rejects(ways.remove(thief, id), { code: 'ErrUnknown' })
    t.strictSame(Object.keys((await read(thief)).ways ?? {}), [id])
    t.same((await listMaterial(thief)).map((one) => one.id).sort(), [id, ...prepared].sort())
    await t.rejects(ways.name({ ...thief, epoch: 1, confirm: () => { throw new Error('signed out') } }, prepared), /signed out/)
  })

  t.test('a change whose session ends between the material and the name leaves nothing', async (t) => {
    let isArmed = true
    const raced = wrapStore(store, ({ collection, method }, run) => {
      if (!isArmed || collection !== 'credentials' || method !== 'insertMany') return run()
      isArmed = false
      return Promise.resolve(run()).then(async () => await users.update(ann.user_id, { increment: { epoch: 1, revision: 1 } }))
    })
    const { ways, users, create, listMaterial } = open(t, raced)
    const ann = await create()
    await t.rejects(ways.add(ann, totp), { code: 'ErrUnknown' })
    t.strictSame(await listMaterial(ann), [])
  })

  t.test('a seed waits without a name, the codes come in the same write, and codes anew replace them', async (t) => {
    const { ways, create, read, listMaterial } = open(t, store)
    const ann = await create()
    const ids = await ways.prepare(ann, [totp, codes])
    t.notOk('ways' in await read(ann), 'until then there is no factor')
    t.strictSame(await ways.list(await read(ann)), [])
    t.match(await ways.findPrepared(ann, ids[0]!), { way: { kind: 'totp' }, material: { sealed: 's' } })
    t.equal(await ways.findPrepared({ user_id: 'bob' }, ids[0]!), null)
    const bob = await create()
    await t.rejects(ways.name(bob, ids), { code: 'ErrNotFound', refusal: 'unknown' }, "another user's")
    const named = await ways.name(ann, ids)
    t.same(Object.values(named.ways!).map(({ kind }) => kind).sort(), ['recovery', 'totp'])
    t.notOk('way_keys' in named)
    await t.rejects(ways.name(ann, ids), { code: 'ErrNotFound', refusal: 'unknown' }, 'once')
    const anew = await ways.prepare(ann, [codes])
    t.same(Object.keys((await ways.name(ann, anew)).ways!).sort(), [ids[0], ...anew].sort())
    t.equal((await listMaterial(ann)).length, 2)
    const left = await ways.remove(ann, ids[0]!)
    t.notOk('ways' in left, 'they go with the last factor')
    t.strictSame(await listMaterial(ann), [])
  })

  t.test('limits of each kind, and of what is never named', async (t) => {
    const { ways, create, listMaterial, advance } = open(t, store)
    const ann = await create()
    for (let number = 0; number < 3; number++) await ways.add(ann, totp)
    await t.rejects(ways.add(ann, totp), { code: 'ErrPerm', refusal: 'most' })
    t.equal((await listMaterial(ann)).length, 3)
    await t.rejects(ways.prepare(ann, Array.from({ length: 21 }, () => codes)), { code: 'ErrLimit' })
    const late = await ways.prepare(ann, Array.from({ length: 20 }, () => codes))
    await t.rejects(ways.prepare(ann, [codes]), { code: 'ErrLimit' })
    t.equal((await listMaterial(ann)).length, 23)
    advance(HOUR / 2)
    await t.rejects(ways.name(ann, [late[0]!]), { code: 'ErrNotFound', refusal: 'unknown' }, 'an enrolment has half an hour')
    advance(HOUR / 2)
    await ways.add(ann, passkey('last'))
    t.equal((await listMaterial(ann)).length, 4, 'what was never named goes at the next change after an hour')
  })

  t.test('the last way in stays, and material that is missing counts as no way', async (t) => {
    const { ways, create, read } = open(t, store)
    const credentials = store.collection<CredentialRecord>('credentials')
    const ann = await create({ password: '' })
    const [{ id: one }, { id: two }] = [await ways.add(ann, identity('one')), await ways.add(ann, identity('two'))]
    await credentials.delete(two)
    t.same((await ways.list(await read(ann))).map(({ id }) => id), [one])
    t.equal(await ways.find(identity('two').key!), null)
    await t.rejects(ways.remove(ann, one), { code: 'ErrPerm', refusal: 'last' })
    await ways.remove(ann, two, { isEnd: false })
    t.same(Object.keys((await read(ann)).ways!), [one], 'what is broken can be removed')
    const material = (await credentials.get(one))!
    await credentials.put({ ...material, user_id: 'bob' })
    t.strictSame(await ways.list(await read(ann)), [], "another user's counts as none too")
  })

  t.test('of two uses of one code, counter or step one wins', async (t) => {
    const { ways, create, read, advance } = open(t, store)
    const ann = await create()
    const { id } = await ways.add(ann, { ...totp, name: 'Phone' })
    const { credential } = (await ways.get(await read(ann), id))!
    const uses = await Promise.all([1, 1].map((step) => ways.update(credential, { material: { sealed: 's', step } })))
    t.equal(uses.filter((used) => used !== null).length, 1)
    const [used] = uses.filter((used) => used !== null)
    await ways.touch(used!)
    const { credential: touched } = (await ways.get(await read(ann), id))!
    t.equal(touched.last_used_at, '2126-11-23T00:00:00.000Z')
    advance(HOUR - 1)
    await ways.touch(touched)
    t.equal((await ways.get(await read(ann), id))!.credential.last_used_at, '2126-11-23T00:00:00.000Z', 'at most once an hour')
    t.equal((await read(ann)).revision, 1, 'the record of the user stays')
  })

  t.test('all material of a deleted user is removed', async (t) => {
    const { ways, create, listMaterial } = open(t, store)
    const [ann, bob] = [await create(), await create()]
    for (const actor of [ann, bob]) await ways.add(actor, totp)
    await ways.removeOf(ann.user_id)
    t.strictSame(await listMaterial(ann), [])
    t.equal((await listMaterial(bob)).length, 1)
  })

  t.test('an identity that two users link at once is linked to one of them, and of two removals of the last two ways one succeeds', async (t) => {
    const { ways, create, read, listMaterial } = open(t, store)
    for (let round = 0; round < 20; round++) {
      const actors = [await create({ password: '' }), await create({ password: '' })]
      const linked = await Promise.allSettled(actors.map((actor) => ways.add(actor, identity(`round ${round}`))))
      t.equal(linked.filter(({ status }) => status === 'fulfilled').length, 1, `round ${round}`)
      t.match(linked.find(({ status }) => status === 'rejected'), { reason: { refusal: 'in_use' } })
      const winner = actors[linked.findIndex(({ status }) => status === 'fulfilled')]!
      await ways.add(winner, identity(`other ${round}`))
      const ids = Object.keys((await read(winner)).ways!)
      const removed = await Promise.allSettled(ids.map((id) => ways.remove(winner, id, { isEnd: false })))
      t.equal(removed.filter(({ status }) => status === 'fulfilled').length, 1, `round ${round}`)
      t.match(removed.find(({ status }) => status === 'rejected'), { reason: { refusal: 'last' } })
      const left = await read(winner)
      t.equal(Object.keys(left.ways!).length, 1)
      t.same((await listMaterial(winner)).map(({ id }) => id), Object.keys(left.ways!))
    }
  })
})
