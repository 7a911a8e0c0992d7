import t from 'tap'
import { READERS } from '../../../../lib/import/formats/index.ts'
import type { ImportItem } from '../../../../schemas/import.ts'
import { readAll, readFixture } from './read.ts'

const MIB = 1024 * 1024
const good = (id: number): object => ({ localId: `id-${id}`, email: `p${id}@example.com` })
const show = (items: ImportItem[]): unknown[] => items.map((item) => 'value' in item ? (item.value as { id: string }).id : `${item.line} ${item.reason}`)

const FILES: Record<string, string> = {
  auth0: 'auth0-users.ndjson', firebase: 'firebase.json', keycloak: 'keycloak-users.json', django: 'django.json', clerk: 'clerk.csv', 'better-auth': 'better-auth.ndjson', supabase: 'supabase.csv', csv: 'own-table.csv'
}

t.test('a file is read the same, however it arrives', async (t) => {
  for (const [format, file] of Object.entries(FILES)) {
    const whole = await readAll(format, readFixture(file))
    for (const size of [1, 7, 100]) t.strictSame(await readAll(format, readFixture(file), {}, size), whole, `${file} in pieces of ${size}`)
  }
})

t.test('a record of an array that is bad is refused by itself', async (t) => {
  const read = async (records: string, size?: number): Promise<unknown[]> => show(await readAll('firebase', `{"kind": "x", "users": [${records}], "more": [{"localId": "no"}]}`, {}, size))
  const [one, two] = [JSON.stringify(good(1)), JSON.stringify(good(2))]
  const long = JSON.stringify({ ...good(3), displayName: 'x'.repeat(MIB) })
  const deep = `{"localId": "a", "x": ${'['.repeat(100)}${']'.repeat(100)}}`
  const deeper = `{"localId": "a", "x": ${'['.repeat(400_000)}${']'.repeat(400_000)}}`
  for (const [bad, reason] of [
    ['{"localId": nope}', 'is not valid JSON'],
    ['{"localId": "\u0000"}', 'is not valid JSON'],
    ['{"a":]}', undefined],
    [long, 'is longer than 1024 KiB'],
    [deep, 'has more than 32 levels of nesting'],
    [deeper, 'has more than 32 levels of nesting'],
    ['{}', 'is required'],
    ['{"localId": 7}', 'must be a text'],
    ['{"localId": "a", "email": "a@example.com", "emailVerified": "perhaps"}', 'must be true or false'],
    ['{"localId": "a", "email": "a@example.com", "createdAt": "yesterday"}', 'must be a time'],
    ['{"localId": "a", "email": "a@example.com", "providerUserInfo": {}}', 'must be a list of objects']
  ] as const) {
    if (reason !== undefined) t.strictSame(await read(`${one}, ${bad}, ${two}`), ['id-1', `2 ${reason}`, 'id-2'], bad.slice(0, 40))
    else t.notOk((await read(`${one}, ${bad}, ${two}`)).includes('id-2x'))
  }
  for (const scalar of ['7', '"text"', '[]', 'null']) {
    t.strictSame(await read(`${one}, ${scalar}, ${two}`, 16), ['id-1', '2 is not an object; nothing after it was read'], scalar)
  }
  t.strictSame(await read('{"localId":"{\\"[\\\\","email":"a@example.com"}', 3), ['{"[\\'], 'brackets and quotes within a text')
})

t.test('a value of a kind that no export has ends no run, and the name of a field is short', async (t) => {
  const odd = '{"toString": 1, "valueOf": 1}'
  const one = '{"user_id": "auth0|a", "email": "a@example.com"}'
  for (const bad of [
    '{"user_id": "b", "email": "b@example.com", "custom_password_hash": {"algorithm": "md5", "hash": {"value": "00"}, "salt": null}}',
    `{"user_id": "b", "email": "b@example.com", "identities": [{"provider": ${odd}}]}`,
    `{"user_id": "b", "email": "b@example.com", "created_at": ${odd}}`
  ]) t.match(show(await readAll('auth0', `${bad}\n${one}\n`)), [/^1 /, 'auth0|a'], bad)
  const toRealm = (type: string) => `{"users": [{"id": "a", "username": "ann", "credentials": [{"type": ${type}}]}, {"id": "b", "username": "bob"}]}`
  t.match(show(await readAll('keycloak', toRealm(odd))), [/^1 /, 'b'])
  const [refused] = await readAll('keycloak', toRealm(JSON.stringify('x'.repeat(MIB / 2))))
  t.equal((refused as { field: string }).field.length, 64)
})

t.test('what is said of an address counts for no user name that looks like one', async (t) => {
  const read = async (format: string, record: object) => (await readAll(format, JSON.stringify(format === 'keycloak' ? { users: [record] } : record)))[0]
  for (const [format, record] of Object.entries({
    keycloak: { id: 'a', username: 'ann@example.com', emailVerified: true },
    auth0: { user_id: 'auth0|a', username: 'ann@example.com', email_verified: true },
    'better-auth': { id: 'a', username: 'ann@example.com', emailVerified: true }
  })) t.match(await read(format, record), { value: { account: 'ann@example.com', email_verified: undefined } }, format)
})

t.test('a file that is cut off, of another format or in another encoding is refused where that shows', async (t) => {
  const users = JSON.stringify({ users: [good(1), good(2)] })
  t.strictSame(show(await readAll('firebase', users.slice(0, -5))), ['id-1', '2 the file ends here: it is not complete'])
  t.strictSame(show(await readAll('firebase', users.slice(0, -1))), ['id-1', 'id-2', '3 the file ends here: it is not complete'])
  t.strictSame(show(await readAll('firebase', '{"accounts": []}')), ['1 the file has no list "users"'])
  t.strictSame(show(await readAll('firebase', '{"users": {}}')), ['1 the file has no list "users"'])
  t.strictSame(show(await readAll('keycloak', JSON.stringify([{ realm: 'a', users: [] }]))), ['1 is a realm: export one with --realm'])
  for (const format of Object.keys(READERS)) {
    t.strictSame(await readAll(format, ''), [], `${format}: an empty file`)
    t.match(show(await readAll(format, Buffer.from('\ufeff[{"id": "a"}]', 'utf16le'))), ['1 the file is UTF-16: save it as UTF-8'], format)
    const refused = await readAll(format, 'hello\n')
    t.ok(refused.every((item) => 'reason' in item), `${format}: text`)
  }
  t.match(await readAll('auth0', `\ufeff${JSON.stringify({ user_id: 'auth0|a', email: 'a@example.com' })}\n`), [{ line: 1, value: { id: 'auth0|a' } }], 'a byte-order mark')
  t.strictSame(show(await readAll('auth0', ' '.repeat(100_000))), ['1 the file is empty'])
  t.strictSame(show(await readAll('auth0', Buffer.from('{"user_id": "auth0|\xff"}', 'latin1'))), ['1 the line is not UTF-8'])
})

t.test('lines and rows that are bad are refused by themselves', async (t) => {
  const line = (id: string): string => JSON.stringify({ user_id: `auth0|${id}`, email: `${id}@example.com` })
  const lines = [line('a'), 'nope', line('b').slice(0, 10), '7', '', `"${'x'.repeat(MIB)}"`, '['.repeat(100) + ']'.repeat(100), `{"x":${'['.repeat(100)}${']'.repeat(100)}}`, line('c')]
  t.strictSame(show(await readAll('auth0', lines.join('\n'))), [
    'auth0|a', '2 the line is not JSON', '3 the line is not JSON', '4 is not an object', '6 the line is longer than 1048576 bytes', '7 is not an object',
    '8 has more than 32 levels of nesting', 'auth0|c'
  ])
  const rows = ['id,account', 'a,ann', 'b', 'c,"x"y', `d,${'x'.repeat(MIB)}`, 'e,"two\nlines"', '', 'f,"a ""quote"""\r', 'g,gil']
  t.strictSame(show(await readAll('csv', rows.join('\n'))), [
    'a', '3 has 1 cells, and the header has 2', '4 has a quote in the middle of a cell', '5 is longer than 1024 KiB', 'e', 'f', 'g'
  ])
  t.match(await readAll('csv', rows.join('\n')), { 5: { line: 7, value: { account: 'a "quote"' } } })
  t.strictSame(show(await readAll('csv', 'id,account\na,ann\nb,"bob\n')), ['a', '3 the file ends here, within quotes: it is not complete'])
  t.strictSame(show(await readAll('csv', 'id,account\na,ann\nb,"bob')), ['a', '3 the file ends here, within quotes: it is not complete'])
  t.strictSame(show(await readAll('csv', 'id,account\na,"')), ['2 the file ends here, within quotes: it is not complete'])
  for (const separator of [';', '\t']) {
    const other = rows.slice(0, 2).join('\n').replaceAll(',', separator)
    for (const size of [1, 100]) t.strictSame(show(await readAll('csv', other, {}, size)), ['1 the header has no comma: separate the cells with commas'])
  }
  t.strictSame(await readAll('csv', 'account\nann\n'), [{ line: 2, value: { account: 'ann' }, dropped: [] }], 'one column is a table')
})

t.test('a column names a member, whatever it is called', async (t) => {
  const [item] = await readAll('csv', 'id,__proto__.polluted,constructor,totp.secret,password.iterations,roles,roles.x\na,yes,c,S,1000,"{""y"": true}",\n') as { value: Record<string, unknown> }[]
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
  t.ok(Object.hasOwn(item!.value, '__proto__'), 'it is a field that the import refuses by name')
  t.match(item!.value, { totp: [{ secret: 'S' }], password: { iterations: 1_000 }, roles: { y: true } })
  t.match(await readAll('csv', 'roles,roles.x\nx,1\n'), [{ field: 'roles', reason: 'is not valid JSON' }])
  t.match(await readAll('csv', 'account,password\nann,secret 123\n'), [{ line: 2, field: 'password', reason: /password\.hash, and plain passwords are not taken/ }])
  t.match(await readAll('csv', 'info,info.x\n7,1\n'), [{ field: 'info.x', reason: /part of a column/ }])
  const names = Array.from({ length: 100 }, (_, index) => `${'x'.repeat(100)}${index}`)
  const [wide] = await readAll('auth0', JSON.stringify({ user_id: 'a', email: 'a@example.com', ...Object.fromEntries(names.map((name) => [name, 1])) }))
  t.ok(wide !== undefined && 'dropped' in wide && wide.dropped!.length <= 50 && wide.dropped!.every((name) => name.length <= 64))
})

t.test('what is refused is not repeated', async (t) => {
  const secret = 'hunter2-secret'
  for (const [format, record] of [
    ['auth0', { user_id: 'a', email: 'a@example.com', custom_password_hash: { algorithm: secret, hash: { value: secret } } }],
    ['keycloak', { users: [{ id: 'a', username: 'a', credentials: [{ type: 'password', value: secret }] }] }],
    ['keycloak', { users: [{ id: 'a', username: 'a', credentials: [{ type: 'password', secretData: secret, credentialData: secret }] }] }],
    ['firebase', { users: [{ localId: 'a', email: 'a@example.com', passwordHash: secret }] }],
    ['supabase', { id: 'a', email: 'a@example.com', mfa_factors: [], raw_user_meta_data: secret }],
    ['better-auth', { id: 'a', email: 'a@example.com', accounts: secret }]
  ] as const) {
    const items = await readAll(format, JSON.stringify(record))
    t.match(items, [{ reason: /./ }], format)
    t.notMatch(JSON.stringify(items), secret)
  }
})

t.test('a file of any size takes little memory', async (t) => {
  const one = (index: number): string => JSON.stringify({ ...good(index), createdAt: '1575657372412', passwordHash: 'x'.repeat(80), salt: 'x', providerUserInfo: [{ providerId: 'password' }] })
  async function * file (): AsyncGenerator<Buffer> {
    yield Buffer.from('{"users":[')
    for (let index = 0; index < 1_000; index++) yield Buffer.from(Array.from({ length: 100 }, (_, at) => `${one(index * 100 + at)},`).join(''))
    yield Buffer.from(`${one(100_000)}]}`)
  }
  const hashConfig = { signer_key: 'x', salt_separator: 'x', rounds: 8, memory_cost: 14 }
  let [count, most, batches] = [0, 0, 0]
  for await (const batch of READERS['firebase']!(file(), { source: 'x', withoutFactors: false, issuers: {}, hashConfig })) {
    count += batch.length
    most = Math.max(most, batch.length)
    batches++
  }
  t.equal(count, 100_001)
  t.ok(most <= 101 && batches > 1_000, 'what a piece completes is passed on with it')
})
