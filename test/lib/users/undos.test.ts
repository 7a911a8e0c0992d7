import t from 'tap'
import { createUserRecord, type UserRecord } from '../../../lib/records/user.ts'
import { createUndos, keepUndos, listProving, listUndos, toUndoFields } from '../../../lib/user-changes/undos.ts'
import type { Ways } from '../../../lib/way.ts'
import { createTestNotices } from '../../helpers/mails.ts'

const HOUR = 60 * 60_000
const NOW = Date.parse('2126-11-24T12:00:00.000Z')
const at = (hours: number) => new Date(NOW + hours * HOUR).toISOString()

const toRecord = (fields: Partial<UserRecord> = {}): UserRecord => (
  { ...createUserRecord(NOW, { id: 'ann', account: 'ann@example.com', roles: {}, name: '', info: {} }), ...fields })

const toWays = (...ids: string[]): Ways => Object.fromEntries(ids.map((id) => [id, { kind: 'totp' as const, at: at(0) }]))

/** The record with what a change of it sets. */
const change = (record: UserRecord, { set, unset }: { set: object, unset: readonly string[] }): UserRecord => (
  { ...Object.fromEntries(Object.entries(record).filter(([field]) => !unset.includes(field))), ...set } as UserRecord)

t.test('both lists of 1158eb3 read as one, in the order of what happened', async (t) => {
  const record = toRecord({
    email: 'third@example.com',
    ways: { ...toWays('before', 'first', 'between', 'last') },
    address_changes: [{ ticket: 'c1', until: at(10), ways: ['before'] }, { ticket: 'c2', until: at(30), ways: ['before', 'first', 'between'], email: 'second@example.com' }],
    first_factors: [{ ticket: 'f1', until: at(20), ways: ['before'], changes: ['c1'] }]
  })
  const list = listUndos(record, NOW)
  t.strictSame(list.map(({ id, kind, added, mailbox }) => [id, kind, added, mailbox]), [
    ['c1', 'address', [], 'ann@example.com'], ['f1', 'factor', ['first', 'between'], 'second@example.com'], ['c2', 'address', ['last'], 'second@example.com']
  ])
  const written = change(record, toUndoFields(record, list))
  t.strictSame([written.address_changes, written.first_factors], [undefined, undefined], 'a write makes entries of them')
  t.strictSame(listUndos(written, NOW), list)
  t.strictSame(listUndos(record, NOW + 15 * HOUR).map(({ id }) => id), ['f1', 'c2'])
  t.strictSame(listUndos(record, NOW + 40 * HOUR), [])
})

t.test('what came after an act that can be undone counts after its own end, and ways that are gone do not', async (t) => {
  const record = toRecord({
    ways: toWays('b', 'c'),
    undos: [
      { id: '1', at: at(-100), until: at(-1), kind: 'identity', added: ['a'], before: {} },
      { id: '2', at: at(-90), until: at(5), kind: 'factor', added: ['b'], before: { email: 'own@example.com' } },
      { id: '3', at: at(-80), until: at(-8), kind: 'identity', added: ['c', 'gone'] }
    ]
  })
  t.strictSame(listUndos(record, NOW).map(({ id, added, mailbox }) => [id, added, mailbox]), [['2', ['b'], 'own@example.com'], ['3', ['c'], 'own@example.com']])
  const list = listUndos(record, NOW)
  t.match(keepUndos(list, ({ id }) => id === '2'), [{ id: '2', added: ['b', 'c'] }], 'what an ended entry had added belongs to the one before')
  t.strictSame(keepUndos(list, () => false), [])
})

t.test('what was proved by a factor goes with it, and with nothing if that is established', async (t) => {
  const undos = createUndos({ notices: createTestNotices(() => NOW, true), now: () => NOW })
  const record = toRecord({ ways: { ...toWays('old', 'new'), codes: { kind: 'recovery', at: at(0) } }, undos: [{ id: '1', at: at(0), until: at(72), kind: 'factor', added: ['new', 'codes'], before: {} }] })
  const follow = (...proving: string[]) => listUndos({ ...change(record, undos.follow(record, ['next'], proving)), ways: { ...record.ways, ...toWays('next') } }, NOW)[0]!.added
  t.strictSame(follow('new'), ['new', 'codes', 'next'])
  t.strictSame(follow('codes'), ['new', 'codes', 'next'])
  t.strictSame(follow('old'), ['new', 'codes'])
  t.strictSame(follow('old', 'new'), ['new', 'codes'])
  const toProof = (kind: 'password' | 'totp' | 'recovery' | 'upstream', way: string) => ({ kind, way, at: at(0) })
  t.strictSame(listProving(record, [toProof('password', 'password'), toProof('totp', 'old'), toProof('totp', 'gone'), toProof('recovery', 'codes before')]), ['old', 'codes'])
  t.strictSame(listProving(record, [toProof('upstream', 'new'), toProof('password', 'old')]), [], 'what a provider says of factors proves none')
})

t.test('the proof of the address before each act is kept, whatever of it differs', async (t) => {
  const proof = { email: 'own@example.com', email_verified_at: at(-9), email_verified_by: 'mail' }
  const befores = [{ email: 'own@example.com' }, proof, { ...proof, email_verified_by: 'operator' }, { ...proof, email_verified_at: at(-8), email_verified_by: 'operator' }, { ...proof, email: 'other@example.com' }, {}]
  const record = toRecord({ undos: befores.map((before, index) => ({ id: String(index), at: at(-1), until: at(5), kind: 'address', before })) })
  const list = listUndos(record, NOW)
  t.strictSame(listUndos(change(record, toUndoFields(record, list)), NOW).map(({ before }) => before), befores)
  const same = toRecord({ undos: [0, 1].map((index) => ({ id: String(index), at: at(-1), until: at(5), kind: 'identity' as const, before: { ...proof } })) })
  t.strictSame((change(same, toUndoFields(same, listUndos(same, NOW))).undos ?? []).map(({ before }) => before), [proof, undefined], 'once where it is the same')
})

t.test('an act without an entry of its own: its mail has no link, and it goes with the last entry', async (t) => {
  const undos = createUndos({ notices: createTestNotices(() => NOW, true), now: () => NOW })
  const act = { kind: 'factor', added: ['new'], mail: 'first-factor-added', plain: 'factor-added', isAsked: false } as const
  const first = { id: '1', at: at(-1), until: at(71), kind: 'identity' as const, before: {} }
  const full = Array.from({ length: 30 }, (_, index) => ({ ...first, id: String(index) }))
  for (const [name, undo, options] of [['an option says so', [first], { hours: 0 }], ['the list is full', full, {}]] as const) {
    const record = toRecord({ ways: toWays('new'), undos: [...undo] })
    const { notices, ...fields } = await undos.write(record, { ...act, ...options })
    t.match(notices, [{ kind: 'factor-added', of: undefined, until: undefined }], name)
    t.strictSame(change(record, fields).undos?.map(({ id, added }) => [id, added]), undo.map(({ id }, index) => [id, index === undo.length - 1 ? ['new'] : undefined]), name)
  }
  const record = toRecord({ ways: toWays('new') })
  t.match(await undos.write(record, { ...act, hours: 0 }), { set: {}, unset: [], notices: [{ kind: 'factor-added' }] }, 'and with none if there is none')
})

t.test('an identity that takes over an account begins the list', async (t) => {
  const undos = createUndos({ notices: createTestNotices(() => NOW, true), now: () => NOW })
  const record = toRecord({ ways: toWays('new'), undos: [{ id: '1', at: at(-1), until: at(71), kind: 'factor', added: ['old'], before: {} }] })
  const write = async (isFirst: boolean) => change(record, await undos.write(record, { kind: 'identity', added: ['new'], mail: 'identity-joined', isAsked: false, isFirst })).undos?.map(({ kind }) => kind)
  t.strictSame(await write(true), ['identity'])
  t.strictSame(await write(false), ['factor', 'identity'])
})

t.test('a full list with the longest addresses and places is under 12 kB', async (t) => {
  const place = { browser: 'Samsung Internet', system: 'ChromeOS', address: '2001:0db8:85a3:0000:0000:8a2e:0370:7334%interface'.padEnd(64, 'x') }
  const undos = createUndos({ notices: { ...createTestNotices(() => NOW, true), findDevice: () => place }, now: () => NOW })
  const ids = Array.from({ length: 24 }, (_, index) => `01M8YM03D4T50NDVQJWFJAA671${String(index).padStart(8, '0')}`)
  let record = toRecord({ ways: toWays(...ids), email: 'x'.repeat(254), email_verified_at: at(0), email_verified_by: 'u'.repeat(32) })
  let count = 0
  const add = async (kind: 'address' | 'identity') => {
    const added = kind === 'identity' ? ids.slice(count, count + 2) : []
    record = change(record, await undos.write(record, { kind, added, mail: 'identity-linked', values: { upstream: 'Corp' }, isAsked: true }))
    count += added.length
    // Each address is another one.
    if (kind === 'address') record = { ...record, email: `${String(record.undos!.length).padStart(3, '0')}${'y'.repeat(251)}`, email_verified_at: at(record.undos!.length) }
  }
  for (let index = 0; index < 10; index++) await add('address')
  await t.rejects(add('address'), { code: 'ErrLimit' })
  for (let index = 0; index < 20; index++) await add('identity')
  for (const kind of ['address', 'identity'] as const) await t.rejects(add(kind), { code: 'ErrLimit' })
  t.equal(record.undos?.length, 30)
  t.equal(record.undos!.every(({ place: text = '' }) => text.length === 60), true)
  const size = Buffer.byteLength(JSON.stringify(record.undos))
  t.ok(size < 12_000, `${size} bytes`)
})
