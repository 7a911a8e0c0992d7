import { TOTP, Secret } from 'otpauth'
import t, { type Test } from 'tap'
import { readHash } from '../../../../lib/hashes/foreign.ts'
import { describedToStored, toStored } from '../../../../lib/hashes/formats.ts'
import type { ImportLine } from '../../../../schemas/import.ts'
import { readAll, readFixture } from './read.ts'

const PASSWORD = 'correct horse Bätterie 7'
const HASH_CONFIG = {
  signer_key: 'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==', salt_separator: 'Bw==', rounds: 8, memory_cost: 14
}

/** The people of a fixture, whose lines must all be read. */
async function readPeople (format: string, file: string, options = {}): Promise<{ person: ImportLine, dropped: string[] }[]> {
  const items = await readAll(format, readFixture(file), options)
  return items.map((item) => {
    if ('reason' in item) throw new Error(`line ${item.line}: ${item.field} ${item.reason}`)
    return { person: item.value as ImportLine, dropped: item.dropped ?? [] }
  })
}

async function verify (person: ImportLine, password: string): Promise<boolean> {
  const given = person.password!
  return await readHash('scheme' in given ? describedToStored(given) : toStored(given.hash)).verify(password)
}

async function checkPasswords (t: Test, people: { person: ImportLine }[], password = PASSWORD): Promise<void> {
  const having = people.filter(({ person }) => person.password !== undefined)
  for (const { person } of having) t.equal(await verify(person, password), true, `the password of ${person.account}`)
  t.equal(await verify(having[0]!.person, `${password}x`), false)
}

t.test('Keycloak: users with argon2, a role, an authenticator app and an identity', async (t) => {
  const items = await readAll('keycloak', readFixture('keycloak-users.json'), { issuers: { google: 'https://accounts.google.com' } })
  t.match(items.pop(), { line: 5, field: 'serviceAccountClientId', reason: /not of a person/ })
  const people = items.map((item) => ('value' in item ? { person: item.value as ImportLine, dropped: item.dropped } : t.fail(JSON.stringify(item)) as never))
  await checkPasswords(t, people)
  const [ann, bob, cara, dan] = people
  t.strictSame(ann!.person, {
    id: ann!.person.id,
    external: { keycloak: ann!.person.id },
    account: 'ann@example.com',
    email: 'ann@example.com',
    email_verified: true,
    name: 'Ann Example',
    disabled: false,
    created_at: ann!.person.created_at,
    password: ann!.person.password,
    identities: []
  })
  t.match(ann!.person, { id: /^[\da-f-]{36}$/, created_at: /^2026-/, password: { scheme: 'argon2id', memory: 7_168, passes: 5 } })
  t.strictSame(ann!.dropped, ['realmRoles', 'attributes'])
  t.match(bob!.person, { account: 'bob', email: 'bob@example.com', disabled: true, email_verified: false })
  t.strictSame(cara!.person.identities, [{ issuer: 'https://accounts.google.com', subject: '118202938419028340000' }])
  t.equal(cara!.person.password, undefined)
  t.strictSame(dan!.person.totp, [{ secret: 'NBSECRRVKNEEKZ2LJRVU6R3VLFSHSNKY', algorithm: 'SHA1', digits: 6, period: 30 }])
  t.equal(Secret.fromBase32(dan!.person.totp![0]!.secret).utf8, 'hdAF5SHEgKLkOGuYdy5X', 'the key is the characters of the secret')
  t.equal(new TOTP({ secret: Secret.fromBase32(dan!.person.totp![0]!.secret) }).generate({ timestamp: 0 }), new TOTP({ secret: Secret.fromUTF8('hdAF5SHEgKLkOGuYdy5X') }).generate({ timestamp: 0 }))
  const [, , unnamed] = await readPeople('keycloak', 'keycloak-users.json').catch(async () => (await readAll('keycloak', readFixture('keycloak-users.json'))) as never[])
  t.strictSame((unnamed as { dropped: string[] }).dropped, ['identities.google'], 'what Keycloak calls google is known only if the operator says so')
})

t.test('Keycloak: a realm file with PBKDF2 and a base32 secret; joined files', async (t) => {
  const people = await readPeople('keycloak', 'keycloak-realm.json')
  await checkPasswords(t, people)
  t.match(people[0]!.person, { account: 'fay', password: { scheme: 'pbkdf2', digest: 'sha512', iterations: 1_000 } })
  t.match(people[1]!.person, { account: 'gus@example.com', totp: [{ secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' }] })
  t.strictSame(people[1]!.dropped, ['username'], 'a user name with a dot is no account')
  const joined = Buffer.concat([readFixture('keycloak-realm.json'), readFixture('keycloak-users.json')])
  t.strictSame((await readAll('keycloak', joined)).map(({ line }) => line), [1, 2, 3, 4, 5, 6, 7])
})

t.test('Django: an array and lines, all hashers', async (t) => {
  const people = await readPeople('django', 'django.json')
  t.strictSame(people, (await readPeople('django', 'django.jsonl')).map((one) => one))
  await checkPasswords(t, people)
  t.strictSame(people.map(({ person }) => person.id), ['1', '2', '3', '4', '5', '6', '7', '8'], 'a group is no person')
  t.match(people[0], { person: { account: 'ann', email: 'ann@example.com', name: 'Ann Example', disabled: false, external: { django: '1' } }, dropped: ['groups'] })
  t.match(people[5], { person: { account: 'flo@example.com', disabled: true }, dropped: ['username'] })
  t.equal(people[6]!.person.password, undefined, 'an unusable password is none')
  t.strictSame(people[7]!.dropped.sort(), ['is_staff', 'is_superuser'])
  t.ok(people.every(({ person }) => person.email_verified === undefined), 'Django verifies no address')
})

t.test('better-auth: passwords, identities, and a second factor that stays behind', async (t) => {
  const items = await readAll('better-auth', readFixture('better-auth.ndjson'))
  t.match(items[3], { line: 4, field: 'twoFactorEnabled', reason: /2FA method/ })
  const people = await readPeople('better-auth', 'better-auth.ndjson', { withoutFactors: true })
  await checkPasswords(t, people)
  t.match(people[0]!.person, { id: 'cmVSeMpJEXFYYybempg0oMNqMIw0efmP', account: 'ann@example.com', email_verified: false, name: 'Ann Example', created_at: '2026-11-23T04:32:14.033Z' })
  t.strictSame(people.map(({ dropped }) => dropped), [[], ['username'], [], ['twoFactorEnabled'], []])
  t.match(people[2]!.person, { email_verified: true, identities: [{ issuer: 'https://accounts.google.com', subject: '118202938419028340000' }] })
  t.equal(people[4]!.person.password, undefined)
})

t.test('a table of one\'s own, with hashes of many programs', async (t) => {
  const people = await readPeople('csv', 'own-table.csv')
  t.equal(people.length, 7)
  await checkPasswords(t, people)
  t.strictSame(people[1]!.person, {
    id: 'person-2',
    account: 'person2@example.com',
    email: 'person2@example.com',
    email_verified: false,
    name: 'Person 2',
    roles: { editor: true },
    created_at: '2026-01-02T10:00:00Z',
    external: { shop: '1002' },
    info: { made_by: 'slappasswd 2.5' },
    password: people[1]!.person.password
  })
  t.match(people[0]!.person, { name: 'Person "1", of htpasswd 2.4', email_verified: true, roles: undefined })
})

t.test('Auth0: users, hashes, and what its own import takes', async (t) => {
  const users = await readAll('auth0', readFixture('auth0-users.ndjson'))
  t.strictSame(users[0], {
    line: 1,
    value: {
      id: 'auth0|5dea9f9c82dd7c0e76e4ec93',
      external: { auth0: 'auth0|5dea9f9c82dd7c0e76e4ec93' },
      account: 'ann@example.com',
      email: 'ann@example.com',
      email_verified: true,
      name: 'Ann Example',
      info: { language: 'de' },
      created_at: '2019-12-06T18:36:12.412Z',
      identities: []
    },
    dropped: ['picture', 'last_login', 'logins_count', 'app_metadata']
  })
  t.match(users[1], { value: { identities: [{ issuer: 'https://accounts.google.com', subject: '118202938419028340000' }] }, dropped: ['identities.github'] })
  t.match(users[2], { line: 3, field: 'multifactor', reason: /2FA method.*--without-factors/ })
  const hashes = await readPeople('auth0', 'auth0-hashes.ndjson')
  await checkPasswords(t, hashes)
  t.match(hashes.map(({ person }) => person), [
    { id: 'auth0|5dea9f9c82dd7c0e76e4ec93', account: 'ann@example.com', email_verified: true },
    { id: 'auth0|euclid', account: 'bob@example.com', email_verified: false }
  ])
  const [hmac, phone, ...others] = (await readAll('auth0', readFixture('auth0-import.json'))).sort((one, other) => Number('value' in one) - Number('value' in other))
  t.match([hmac, phone], [{ line: 6, field: 'custom_password_hash', reason: /algorithm/ }, { line: 8, field: 'mfa_factors' }])
  const people = others.map((item) => ({ person: (item as { value: ImportLine }).value }))
  await checkPasswords(t, people)
  t.strictSame(people.at(-1)!.person.totp, [{ secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' }])
  const bare = await readAll('auth0', JSON.stringify([{ user_id: 'euclid', email: 'bob@example.com' }]))
  t.match(bare, [{ value: { id: 'auth0|euclid', external: { auth0: 'auth0|euclid' }, identities: [] }, dropped: [] }], 'Auth0 puts the prefix before the id of a file')
})

t.test('Firebase: hashes with the parameters of the project, redacted hashes, identities', async (t) => {
  const [ann, cara, phone] = await readAll('firebase', readFixture('firebase.json'), { hashConfig: HASH_CONFIG })
  t.match(ann, { value: { id: '8qI3Vd2cWkXy0aZbCdEfGhIjKlM2', account: 'ann@example.com', email_verified: true, created_at: '2019-12-06T18:36:12.412Z' }, dropped: ['customAttributes'] })
  await checkPasswords(t, [{ person: (ann as { value: ImportLine }).value }], 'user1password')
  t.match(cara, { value: { disabled: true, identities: [{ subject: '118202938419028340000' }] }, dropped: ['identities.facebook.com', 'photoUrl'] })
  t.match(phone, { line: 3, field: 'account', reason: /neither an email address nor a user name/ })
  t.match((await readAll('firebase', readFixture('firebase.json')))[0], { line: 1, field: 'passwordHash', reason: /hash parameters.*--hash-config/ })
  const user = { localId: 'a1', email: 'a@example.com' }
  const read = async (more: object): Promise<unknown> => (await readAll('firebase', JSON.stringify({ users: [{ ...user, ...more }] }), { hashConfig: HASH_CONFIG }))[0]
  t.match(await read({ passwordHash: 'UkVEQUNURUQ=' }), { field: 'passwordHash', reason: /hidden/ })
  t.match(await read({ passwordHash: Buffer.from('$2y$05$ZtI9GJGvyScfBttlNkTdq.ljNASWii4/ymByiSf4xb5IvsGcyMzYq').toString('base64') }), { value: { password: { hash: /^\$2y/ } } })
  t.match(await read({ passwordHash: 'AAAA' }), { field: 'salt' })
  t.match(await read({ mfaInfo: [{ phoneInfo: '+15555550100' }] }), { field: 'mfaInfo', reason: /2FA method/ })
})

t.test('Clerk: hashers, an authenticator app, several addresses', async (t) => {
  const [ann, bob, cara] = await readAll('clerk', readFixture('clerk.csv'))
  t.match(ann, {
    value: { id: 'user_2gRua7G8WRYBglzXE5sxRbIRkfJ', account: 'ann@example.com', email_verified: true, totp: [{ secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' }] },
    dropped: ['verified_email_addresses', 'username']
  })
  t.match(bob, { value: { name: 'Bob, the second', email_verified: false }, dropped: ['primary_phone_number', 'verified_phone_numbers'] })
  t.match(cara, { line: 4, field: 'password_hasher' })
  await checkPasswords(t, [{ person: (ann as { value: ImportLine }).value }])
  await checkPasswords(t, [{ person: (bob as { value: ImportLine }).value }], 'user1password')
})

t.test('Supabase: lines with identities and factors, and a plain CSV', async (t) => {
  const people = await readPeople('supabase', 'supabase.ndjson')
  await checkPasswords(t, people.filter(({ person }) => person.account !== 'fay@example.com'))
  await checkPasswords(t, people.filter(({ person }) => person.account === 'fay@example.com'), 'user1password')
  const [ann, bob, dan] = people
  t.match(ann, {
    person: {
      account: 'ann@example.com',
      email_verified: true,
      name: 'Ann Example',
      created_at: /^2026-11-23T05:19:23/,
      identities: [{ issuer: 'https://accounts.google.com', subject: '118202938419028340000' }]
    },
    dropped: []
  })
  t.strictSame(ann!.person.info, { language: 'de', full_name: 'Ann Example' }, 'claims of Supabase are no words of the person')
  t.match(bob, { person: { disabled: true, email_verified: false }, dropped: ['raw_app_meta_data'] })
  t.strictSame(dan!.person.totp, [{ secret: 'B3EXVU3SEMSK73GFYZJESWFK5THSLLMR' }])

  t.match((await readAll('supabase', readFixture('supabase.csv')))[2], { line: 4, field: 'mfa_factors', reason: /^is missing, .*--without-factors/ }, 'the table of users does not tell')
  const rows = await readPeople('supabase', 'supabase.csv', { withoutFactors: true })
  const plain = people.map(({ person: { totp: _totp, identities: _identities, ...person } }) => person)
  t.strictSame(rows.map(({ person: { totp: _totp, identities: _identities, ...person } }) => person), plain, 'a CSV says the same as JSON')
})
