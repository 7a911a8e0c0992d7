import t, { type Test } from 'tap'
import { deriveKey } from '../../../lib/crypto/derive-key.ts'
import { createSecretBox, generateSecretKey } from '../../../lib/crypto/secrets.ts'
import { busyError } from '../../../lib/errors.ts'
import type { EventRecord, Happening } from '../../../lib/events/types.ts'
import { createImport } from '../../../lib/import/import-users.ts'
import { createRemembered } from '../../../lib/import/remembered.ts'
import type { UserRecord } from '../../../lib/records/user.ts'
import { DEFAULT_ROLE_NAMES as roles } from '../../../lib/roles.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import { DatabaseSync } from '../../../lib/store/sqlite/node-sqlite.ts'
import type { Services } from '../../../lib/services.ts'
import { createFormerImports } from '../../../lib/users/former-imports.ts'
import { TIMERS } from '../../../lib/timers.ts'
import type { StoredUsers } from '../../../lib/users/stored-users.ts'
import { createWatchedRecorder } from '../../helpers/events.ts'
import { BCRYPT, importLines } from '../../helpers/import.ts'
import { createBase } from '../../helpers/base.ts'
import { openTestStored } from '../../helpers/user-changes.ts'

/** An import whose writes of users a test can replace. */
async function open (t: Test, replace: (stored: StoredUsers) => Partial<StoredUsers>) {
  const onError = (error: unknown) => { throw error }
  const now = () => Date.parse('2126-11-23T00:00:00.000Z')
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now, onError })
  t.teardown(() => store.close())
  const happened: Happening[] = []
  const recorder = createWatchedRecorder(store, (happening) => { happened.push(happening) })
  const box = createSecretBox(generateSecretKey())
  const formerImports = createFormerImports({ store, now, box })
  const stored = openTestStored({ store, now, role: roles.admin, recorder, tokens: { deleteOfUser: () => {} }, onLeave: formerImports.remember, onRemove: async () => {}, onError })
  const register = { failures: 0 }
  const services = {
    ...createBase({ store, now, box, recorder, roles, onError }),
    seedKey: deriveKey(box.key, 'imported seeds'),
    cost: 4,
    canAddFactors: true,
    countRest: () => Infinity,
    formerImports,
    decoys: {
      async register (form: string) {
        if (register.failures-- > 0) throw busyError('forms', 1_000)
        return form
      }
    },
    // Nobody waits between two attempts.
    timers: { ...TIMERS, set: (run: () => void) => TIMERS.set(run, 0) },
    invite: async () => false,
    hasWayIn: async () => false
  }
  const toImports = (own: StoredUsers) => {
    const importUsers = createImport({ ...services, stored: own })
    return { imports: { importUsers: async (...given: Parameters<typeof importUsers>) => importUsers(...given) } as never }
  }
  return { before: toImports(stored), imports: toImports({ ...stored, ...replace(stored) }), users: store.collection<UserRecord>('users'), happened, register }
}

const ANN = { id: 'ann', account: 'ann' }
const BOB = { id: 'bob', account: 'bob' }

t.test('the line of a user who is deleted meanwhile is judged by the deletion, and the others go on', async (t) => {
  const { before, imports, users } = await open(t, (stored) => ({
    async changeUser (id, ...rest) {
      if (id === 'ann') await stored.removeUser(id)
      return await stored.changeUser(id, ...rest)
    }
  }))
  await importLines(before, [ANN, BOB])
  const { verdicts } = await importLines(imports, [{ ...ANN, name: 'Ann' }, { ...BOB, name: 'Bob' }], { onConflict: 'update' })
  t.match(verdicts, [{ result: 'refused', field: 'id', reason: /was deleted here/ }, { result: 'updated' }])
  t.equal(await users.get('ann'), null)
  t.match(await users.get('bob'), { name: 'Bob' })
})

t.test('what others hold up is tried again, and is no verdict about a person', async (t) => {
  let failures = 0
  const { before, imports, users, register } = await open(t, (stored) => ({
    async changeUser (id, ...rest) {
      if (id === 'ann' && failures++ < 20) throw busyError('changes', 1_000)
      return await stored.changeUser(id, ...rest)
    },
    async insertUser (record, ...rest) {
      if (record.id === 'cleo' && failures++ < 40) throw busyError('changes', 1_000)
      await stored.insertUser(record, ...rest)
    }
  }))
  await importLines(before, [ANN, BOB])
  const lines = [{ ...ANN, name: 'Ann' }, { ...BOB, name: 'Bob' }]
  t.match((await importLines(imports, lines, { onConflict: 'update' })).verdicts, [{ result: 'updated' }, { result: 'updated' }])
  t.match(await users.get('ann'), { name: 'Ann' })
  t.match((await importLines(imports, [{ id: 'cleo', account: 'cleo' }])).verdicts, [{ result: 'created' }])
  register.failures = 10
  const hashed = ['dan', 'eve', 'fay'].map((id) => ({ id, account: id, password: { hash: BCRYPT } }))
  t.match((await importLines(imports, hashed)).verdicts, [{ result: 'created' }, { result: 'created' }, { result: 'created' }], 'a form that could not be registered at once')
})

t.test('what stays held up ends the run, and the next run goes on', async (t) => {
  let isHeld = true
  const { imports, users, register } = await open(t, (stored) => ({
    async insertUser (record, ...rest) {
      if (record.id === 'bob' && isHeld) throw busyError('changes', 1_000)
      await stored.insertUser(record, ...rest)
    }
  }))
  await t.rejects(importLines(imports, [ANN, BOB]), { code: 'ErrBusy' })
  t.equal(await users.count(), 1)
  isHeld = false
  t.match((await importLines(imports, [ANN, BOB])).verdicts, [{ result: 'same' }, { result: 'created' }])
  register.failures = Infinity
  const eve = { id: 'eve', account: 'eve', password: { hash: BCRYPT } }
  await t.rejects(importLines(imports, [eve]), { code: 'ErrBusy' })
  t.match((await importLines(imports, [{ ...eve, password: undefined }].map(({ password: _password, ...line }) => line))).verdicts, [{ result: 'created' }], 'who has no hash needs no form')
})

t.test('a failure of the store ends the run, whose event counts everybody who was written', async (t) => {
  const { imports, users, happened } = await open(t, (stored) => ({
    async insertUser (record, ...rest) {
      if (record.id === 'ann') throw new Error('the disk is full')
      await new Promise((resolve) => setTimeout(resolve, 20))
      await stored.insertUser(record, ...rest)
    }
  }))
  await t.rejects(importLines(imports, [ANN, BOB, { id: 'eve', account: 'eve' }]), { message: 'the disk is full' })
  t.equal(await users.count(), 2)
  t.match(happened.filter(({ type }) => type === 'users.imported'), [{ counts: { created: 2, updated: 0, same: 0, refused: 0 } }])
})

t.test('of two imports that were made before either began, one runs', async (t) => {
  const { before: { imports } } = await open(t, () => ({}))
  const begin = async (id: string) => await (imports as Pick<Services, 'imports'>['imports']).importUsers((async function * () { yield [{ line: 1, value: { id, account: id } }] })(), { source: 'old' })
  const [first, second] = [await begin('ann'), await begin('bob')]
  const reading = first.verdicts[Symbol.asyncIterator]()
  t.match(await reading.next(), { value: [{ result: 'created' }] })
  await t.rejects(Array.fromAsync(second.verdicts), { code: 'ErrBusy', message: 'another import is running in this process' })
  t.match(await reading.next(), { done: true })
  t.match(await Array.fromAsync((await begin('bob')).verdicts), [[{ result: 'created' }]], 'afterwards another one does')
})

t.test('a dry run gives the file of its earlier lines back, however it ends', async (t) => {
  const { before: { imports } } = await open(t, () => ({}))
  const { close } = DatabaseSync.prototype
  let closed = 0
  t.intercept(DatabaseSync.prototype, 'close', {
    value (this: InstanceType<typeof DatabaseSync>) {
      closed++
      close.call(this)
    }
  })
  async function * read (isCut: boolean) {
    yield [{ line: 1, value: ANN }]
    if (isCut) throw new Error('cut')
    yield [{ line: 2, value: BOB }]
  }
  const run = async (isCut: boolean) => (await (imports as Pick<Services, 'imports'>['imports']).importUsers(read(isCut), { source: 'old', dryRun: true })).verdicts
  t.equal((await Array.fromAsync(await run(false))).length, 2)
  t.equal(closed, 1, 'it was read to its end')
  await t.rejects(Array.fromAsync(await run(true)), /^cut$/)
  t.equal(closed, 2, 'its lines were cut off')
  const reading = (await run(false))[Symbol.asyncIterator]()
  await reading.next()
  await reading.return?.()
  t.equal(closed, 3, 'its reader left')
})

t.test('an id is remembered of somebody whose deletion was published while the import ran, at the next batch', async (t) => {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  const remembered = createRemembered(store)
  const publish = async (number: number, user: string, type = 'user.deleted') => await store.collection<EventRecord>('events').insert({
    id: String(number).padStart(16, '0'), key: String(number).padStart(26, '0'), type, user, expired_at: '2226-01-01T00:00:00.000Z'
  } as EventRecord)
  const read = async () => {
    await remembered.refresh()
    const found: boolean[] = []
    for (const id of ['first', 'second', 'third', 'here']) found.push(await remembered.has(id))
    return found
  }
  await publish(1, 'first')
  t.strictSame(await read(), [true, false, false, false])
  await publish(2, 'second')
  t.strictSame(await read(), [true, true, false, false])
  await publish(3, 'here', 'user.updated')
  t.strictSame(await read(), [true, true, false, false])
  await publish(4, 'third')
  t.strictSame(await read(), [true, true, true, false])
})
