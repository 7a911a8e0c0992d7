import t from 'tap'
import type { ImportVerdict } from '../../schemas/import.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { toExternalKey } from '../../lib/import/keys.ts'
import { forEachStore } from '../helpers/build.ts'
import { BCRYPT, importLines } from '../helpers/import.ts'
import { createClient, signIn, unique } from '../helpers/people.ts'

/** A base32 seed of 160 bits. */
const SEED = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'

const listResults = (verdicts: readonly ImportVerdict[]) => verdicts.map(({ result, field }) => field === undefined ? result : `${result} ${field}`)

await forEachStore(t, async (t, build) => {
  t.test('a person comes in with id, times, password and address, and a second run says that they are here', async (t) => {
    const kit = await build(t)
    const services = kit.app.identity
    const id = unique('auth0|5f7c')
    const account = `${unique('ann')}@example.com`
    const line = {
      id,
      external: { old: id },
      account,
      email_verified: true,
      name: 'Ann',
      info: { language: 'en' },
      roles: { editor: true },
      created_at: '2019-04-05T06:07:08Z',
      password: { hash: BCRYPT }
    }
    const first = await importLines(services, [line], { trustEmails: true, run: 'first' })
    t.strictSame(first.verdicts, [{ line: 1, result: 'created', user_id: id }])
    const record = await services.store.collection<UserRecord>('users').get(id)
    t.match(record, {
      account,
      created_at: '2019-04-05T06:07:08.000Z',
      email: account,
      password: BCRYPT,
      password_scheme: '$2b$05$~53',
      imported_source: 'old',
      imported_run: 'first',
      external: { old: id },
      external_keys: [toExternalKey('old', id)],
      roles: { editor: true }
    })
    t.notOk(record!.info['imported'])
    t.strictSame((await importLines(services, [line], { trustEmails: true })).verdicts, [{ line: 1, result: 'same', user_id: id }])
    t.equal(await services.users.verify(account, 'wrong'), null)
    t.match(await services.users.verify(account, 'first'), { user_id: id })
    const renewed = (await services.store.collection<UserRecord>('users').get(id))!
    t.match(renewed.password, /^[0-9A-Za-z]{8}\$2b\$/, 'the first sign-in renews the hash')
    t.equal(renewed.password_scheme, undefined)
    t.match(await services.users.verify(account, 'first'), { user_id: id })
    t.strictSame(listResults((await importLines(services, [line])).verdicts), ['same'], 'also afterwards')
    await services.events.flush()
    const types = (await Array.fromAsync(services.events.list({ user: id }))).flat().map(({ type }) => type)
    t.strictSame(types.sort(), ['sign_in.failed', 'user.created'])
    const [imported] = (await Array.fromAsync(services.events.list({ type: 'users.imported', sort: 'time:asc' }))).flat().filter(({ target }) => target.id === 'first')
    t.match(imported, { target: { kind: 'import', id: 'first' }, counts: { created: 1, updated: 0, same: 0, refused: 0 } })
  })

  t.test('an export of our own hashes comes in again byte for byte', async (t) => {
    const kit = await build(t)
    const { users, store } = kit.app.identity
    const { user_id } = await users.create({ data: { account: unique('own'), password: 'correct horse' } })
    const { password } = (await store.collection<UserRecord>('users').get(user_id))!
    const account = unique('copy')
    const { verdicts } = await importLines(kit.app.identity, [{ account, password: { hash: password } }])
    const copy = await store.collection<UserRecord>('users').get(verdicts[0]!.user_id!)
    t.equal(copy!.password, password)
    t.equal(copy!.password_scheme, undefined)
    t.match(await users.verify(account, 'correct horse'), { account })
  })

  t.test('an address that is neither trusted nor the account is dropped, and said', async (t) => {
    const kit = await build(t)
    const [one, two] = [unique('one'), unique('two')]
    const email = `${one}@example.com`
    const { verdicts } = await importLines(kit.app.identity, [{ account: one, email, email_verified: true }, { account: `${two}@example.com`, email: `${two}@example.com`, email_verified: true }])
    t.match(verdicts, [{ result: 'created', dropped: ['email', 'email_verified'] }, { result: 'created', dropped: ['email_verified'] }])
    const store = kit.app.identity.store.collection<UserRecord>('users')
    t.equal((await store.getBy('account', one))!.email, undefined)
    t.equal((await store.getBy('account', `${two}@example.com`))!.email_verified_at, undefined)
    t.equal(await store.getBy('addresses', email), null)
    const trusted = await importLines(kit.app.identity, [{ account: unique('three'), email, email_verified: true }, { account: unique('four'), email: `x${email}` }], { trustEmails: true })
    t.strictSame(trusted.verdicts.map(({ dropped }) => dropped), [undefined, ['email']], 'and one that is not said to be verified is dropped as well')
    t.match(await store.getBy('addresses', email), { email })
  })

  t.test('an import is never a way into an existing account', async (t) => {
    const kit = await build(t)
    const services = kit.app.identity
    const { store, users, ways } = services
    const records = store.collection<UserRecord>('users')
    const admin = await signIn(kit, { roles: ['admin'] })
    const victim = unique('victim')
    const email = `${victim}@example.com`
    const { user_id } = await users.create({ data: { account: victim, password: 'the password' } })
    await admin.patch(`/user/${user_id}`, { data: { email, email_verified: true } })
    await ways.add({ user_id, epoch: 0 }, { kind: 'upstream', key: 'victim-key', upstream: 'corp', material: {} })
    await services.events.flush()
    const before = await records.get(user_id)
    const attack = { name: 'Mallory', password: { hash: BCRYPT }, totp: [{ secret: SEED }], identities: [{ issuer: 'https://evil.example', subject: 's' }] }

    for (const onConflict of ['skip', 'update', 'fail'] as const) {
      const options = { trustEmails: true, allowRoles: true, onConflict }
      const { verdicts } = await importLines(services, [
        { ...attack, account: victim },
        { ...attack, account: victim.toUpperCase() },
        { ...attack, id: user_id, account: victim },
        { ...attack, id: user_id, account: unique('other') },
        { ...attack, account: email },
        { ...attack, account: unique('other'), email, email_verified: true },
        { ...attack, account: unique('other'), email: email.toUpperCase(), email_verified: true }
      ], options)
      t.strictSame(listResults(verdicts), [
        'refused account', 'refused account', 'refused id', 'refused id', 'refused account', 'refused email', 'refused email'
      ], `on conflict ${onConflict}: a clash is refused, never merged`)
      t.strictSame(await records.get(user_id), before, 'nothing was written')
    }

    const run = await importLines(services, [
      { id: unique('a'), external: { old: unique('1') }, account: unique('bare') },
      { id: unique('b'), account: unique('held'), password: { hash: BCRYPT } },
      { id: unique('c'), account: unique('boss'), roles: { admin: true } }
    ], { allowRoles: true })
    const [bare, held, boss] = run.verdicts.map(({ user_id }) => user_id!) as [string, string, string]
    const find = async (id: string) => (await records.get(id))!
    const again = async (id: string, change: object, options: Parameters<typeof importLines>[2] = {}) => {
      const { account, external } = await find(id)
      const { verdicts: [verdict] } = await importLines(services, [{ id, account, ...(external && { external }), ...change }], { onConflict: 'update', ...options })
      return verdict!
    }

    // Another source.
    t.match(await again(bare, { name: 'Mallory', password: { hash: BCRYPT } }, { source: 'evil' }), { result: 'refused', field: 'id' })
    const { external } = await find(bare)
    const stolen = await importLines(services, [{ external: { evil: 'x', ...external }, account: unique('other') }], { source: 'evil', onConflict: 'update' })
    t.match(stolen.verdicts[0], { result: 'refused', field: 'external.old' }, 'an id of another source')
    t.match((await importLines(services, [{ id: held, external, account: unique('other') }], { onConflict: 'update' })).verdicts[0], { result: 'refused', field: 'external.old' }, 'two people in one line')
    t.match((await importLines(services, [{ id: unique('z'), external, account: unique('other') }], { onConflict: 'update' })).verdicts[0], { result: 'refused', field: 'id' }, 'another id for somebody who is here')

    // Somebody with a password gets no other one, and no other way.
    const password = (await find(held)).password
    t.match(await again(held, { password: { hash: BCRYPT.replace('05', '06') } }), { result: 'same' })
    t.match(await again(held, { identities: [{ issuer: 'https://evil.example', subject: 'held' }], totp: [{ secret: SEED }] }), { result: 'same' })
    t.strictSame([(await find(held)).password, (await find(held)).ways], [password, undefined])

    // An administrator is never changed.
    t.match(await again(boss, { name: 'Mallory', password: { hash: BCRYPT }, roles: {} }), { result: 'refused', field: 'roles' })
    t.match(await find(boss), { name: '', roles: { admin: true } })
    t.equal((await find(boss)).password, undefined)

    // No more ids in other systems than a line may have.
    const more = (from: number) => ({ external: Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`s${from + index}`, unique('x')])) })
    t.match(await again(held, more(0)), { result: 'updated' })
    t.match(await again(held, more(5)), { result: 'updated' })
    t.match(await again(held, more(10)), { result: 'refused', field: 'external' })
    t.equal(Object.keys((await find(held)).external!).length, 10)

    // Neither roles nor account, address, disabled or the end.
    const fixed = { account: unique('other'), email: `${unique('other')}@example.com`, email_verified: true, roles: { editor: true }, disabled: true, expired_at: '2199-01-01T00:00:00Z' }
    t.match(await again(bare, { ...fixed, name: 'Bare' }, { trustEmails: true }), { result: 'updated', user_id: bare, dropped: ['account', 'email', 'roles', 'disabled', 'expired_at'] })
    const { name, disabled_at, roles, email: stays, expired_at } = await find(bare)
    t.strictSame({ name, disabled_at, roles, stays, expired_at }, { name: 'Bare', disabled_at: undefined, roles: {}, stays: undefined, expired_at: undefined })

    // Who never had any gets a password and factors; once only.
    t.match(await again(bare, { password: { hash: BCRYPT } }), { result: 'updated' })
    t.equal((await find(bare)).password, BCRYPT)
    const { epoch } = await find(bare)
    await ways.remove({ user_id: bare, epoch }, 'password').catch(() => {})
    await records.update(bare, { unset: ['password'], increment: { revision: 1 } })
    t.match(await again(bare, { password: { hash: BCRYPT } }), { result: 'same', user_id: bare }, 'who once had one gets none')
    t.equal((await find(bare)).password, undefined)

    // An identity and a seed of others.
    const identity = { issuer: 'https://idp.example', subject: unique('s') }
    const seed = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
    const owner = await importLines(services, [{ account: unique('owner'), identities: [identity], totp: [{ secret: seed }] }])
    t.match(owner.verdicts, [{ result: 'created' }])
    const taken = await importLines(services, [
      { account: unique('other'), identities: [identity] },
      { account: unique('other'), password: { hash: BCRYPT }, totp: [{ secret: seed.toLowerCase() }] }
    ])
    t.strictSame(listResults(taken.verdicts), ['refused identities', 'refused totp'])
    const without = await importLines(services, [{ account: unique('other'), password: { hash: BCRYPT }, totp: [{ secret: seed }] }], { withoutFactors: true })
    t.match(without.verdicts, [{ result: 'created', dropped: ['totp'] }])
  })

  t.test('an id is of nobody who lives or is remembered, of no client and of no operation', async (t) => {
    const kit = await build(t)
    const services = kit.app.identity
    const admin = await signIn(kit, { roles: ['admin'] })
    const owner = await signIn(kit)
    const clientId = await createClient(owner)
    t.equal((await admin.delete(`/user/${owner.user_id}`)).status, 204)
    const gone = unique('gone')
    await importLines(services, [{ id: gone, account: unique('gone') }])
    t.equal((await admin.delete(`/user/${gone}`)).status, 204)
    await services.events.flush()
    const { verdicts } = await importLines(services, [owner.user_id, gone, clientId, 'list', 'import', admin.user_id].map((id) => ({ id, account: unique('new') })))
    t.strictSame(listResults(verdicts), Array.from({ length: 6 }, () => 'refused id'))
    const odd = ['', '.', '..', 'a/b', '-a', 'a b', 'a\u0000b', 'ä', 'x'.repeat(129)]
    t.strictSame(listResults((await importLines(services, odd.map((id) => ({ id, account: unique('new') })))).verdicts), odd.map(() => 'refused id'))
  })

  t.test('the id of a deleted user is refused before their deletion is published', async (t) => {
    const kit = await build(t)
    const services = kit.app.identity
    for (let round = 0; round < 5; round++) {
      const gone = unique('gone')
      await importLines(services, [{ id: gone, account: gone }])
      await services.users.remove(gone, { user_id: '', isAdmin: true })
      t.strictSame(listResults((await importLines(services, [{ id: gone, account: unique('new') }])).verdicts), ['refused id'])
    }
  })

  t.test('two imports at once bring nobody in twice, and one process runs one', async (t) => {
    const kit = await build(t)
    const services = kit.app.identity
    const lines = Array.from({ length: 40 }, () => ({ external: { old: unique('x') }, account: unique('twice') }))
    const twice = [...lines, ...lines]
    const { verdicts } = await importLines(services, twice)
    t.strictSame(listResults(verdicts), twice.map((_line, index) => index < 40 ? 'created' : 'same'), 'of two lines the first one counts')
    const { imports } = services
    const stuck = await imports.importUsers((async function * () { yield [{ line: 1, value: {} }] })(), { source: 'old' })
    const reading = stuck.verdicts[Symbol.asyncIterator]()
    await reading.next()
    await t.rejects(importLines(services, lines), { code: 'ErrBusy', message: 'another import is running in this process' })
    await reading.return!()
    t.strictSame(listResults((await importLines(services, lines.slice(0, 1))).verdicts), ['same'])
  })

  t.test('a dry run writes nothing, and reports', async (t) => {
    const kit = await build(t)
    const { store } = kit.app.identity
    const count = async () => await store.collection('users').count()
    await importLines(kit.app.identity, [{ account: unique('warm') }])
    const before = await count()
    const { verdicts, report } = await importLines(kit.app.identity, [
      { account: unique('dry'), password: { hash: BCRYPT }, email: 'dry@example.com' },
      { account: unique('dry'), password: { hash: 'pbkdf2_sha256$600000$abcdefghijkl$tQCL+b1vBSRthu98g7ljsPivdZaTFd+1YoCXL8gtI+Q=' } },
      { account: unique('dry'), password: { hash: 'md5$saltsalt12$402481f8cfa551e34fb6b23fd70ca453' } },
      { account: 'no account!' }
    ], { dryRun: true })
    t.strictSame(listResults(verdicts), ['created', 'created', 'refused password', 'refused account'])
    t.match(report, { created: 2, refused: 2, refusals: { password: 1, account: 1 }, dropped: { email: 1 }, schemes: { bcrypt: 1, pbkdf2: 1 } })
    t.equal(Math.round(report.sign_in_ms), 318, 'PBKDF2 of 600,000 rounds, and bcrypt of cost 5')
    t.equal(await count(), before)
  })

  t.test('the report counts the hashes of all who got one: in an import, in one that updates, and in its dry run', async (t) => {
    const services = (await build(t)).app.identity
    const account = unique('later')
    const bring = async (line: object, options: object) => (await importLines(services, [{ account, ...line }], options)).report
    t.strictSame((await bring({}, {})).schemes, {})
    const password = { hash: BCRYPT }
    for (const [dryRun, updated, schemes] of [[true, 1, { bcrypt: 1 }], [false, 1, { bcrypt: 1 }], [false, 0, {}]] as const) {
      t.match(await bring({ password }, { onConflict: 'skip', dryRun: true }), { same: 1, schemes: {}, sign_in_ms: 0 })
      const report = await bring({ password }, { onConflict: 'update', dryRun })
      t.strictSame([report.updated, report.schemes], [updated, schemes])
      t.equal(report.sign_in_ms > 0, updated === 1)
    }
  })

  t.test('a dry run says of each line what the import says of it, also where lines clash with one another', async (t) => {
    const services = (await build(t)).app.identity
    const name = unique('clash')
    const [ann, bob, eve] = ['ann', 'bob', 'eve'].map((one) => `${name}${one}`) as [string, string, string]
    const identity = { issuer: 'https://former.example', subject: name }
    // Another one than in the tests above.
    const seed = SEED.split('').reverse().join('')
    const mail = `${name}@example.com`
    const lines = [
      { id: ann, account: ann },
      { id: ann, account: ann },
      { id: `${ann}2`, account: ann },
      { account: bob, external: { old: bob } },
      { account: `${bob}2`, external: { old: bob } },
      { id: ann, account: ann, external: { old: bob } },
      { id: `${ann}3`, account: `${ann}3`, external: { old: bob } },
      { account: eve, external: { other: eve } },
      { account: eve },
      { account: `${eve}2`, external: { other: eve } },
      { account: `${name}f1`, identities: [identity] },
      { account: `${name}f2`, identities: [identity] },
      { account: `${name}f3`, password: { hash: BCRYPT }, totp: [{ secret: seed }] },
      { account: `${name}f4`, password: { hash: BCRYPT }, totp: [{ secret: seed }] },
      { id: mail, account: mail },
      { id: `${name}m2`, account: `${name}m2`, email: mail, email_verified: true },
      { id: `${name}m3`, account: `${name}m3`, email: `m3${mail}`, email_verified: true },
      { id: `${name}m4`, account: `m3${mail}` },
      { id: '', account: `${name}x` },
      { account: `${name}x` },
      ...Array.from({ length: 120 }, (_, number) => ({ account: `${name}n${number % 110}` }))
    ]
    const dry = await importLines(services, lines, { trustEmails: true, dryRun: true })
    t.strictSame(listResults(dry.verdicts).slice(0, 20), [
      'created', 'same', 'refused account', 'created', 'same', 'refused external.old', 'refused id', 'created', 'same', 'refused external.other',
      'created', 'refused identities', 'created', 'refused totp', 'created', 'refused email', 'created', 'refused account', 'refused id', 'created'
    ])
    const { verdicts, report } = await importLines(services, lines, { trustEmails: true })
    const compared = ({ line, result, field, reason }: ImportVerdict) => ({ line, result, field, reason })
    t.strictSame(dry.verdicts.map(compared), verdicts.map(compared))
    t.match(dry.report, { created: report.created, same: report.same, refused: report.refused, refusals: report.refusals })
    t.match((await importLines(services, lines.slice(0, 1), { dryRun: true })).verdicts, [{ result: 'same' }], 'of the stored ones it knows the rest')
  })

  t.test('a dry run of changes says of each line what the import says of it', async (t) => {
    const services = (await build(t)).app.identity
    const name = unique('change')
    const toPerson = (number: number) => ({ id: `${name}${number}`, account: `${name}${number}` })
    const identity = (number: number) => ({ identities: [{ issuer: 'https://former.example', subject: `${name}${number}` }] })
    await importLines(services, [{ ...toPerson(0), external: { crm: name }, ...identity(0) }, ...[1, 2, 3, 4, 5, 8].map(toPerson)])
    const lines = [
      { ...toPerson(1), external: { crm: name } },
      { ...toPerson(1), ...identity(0) },
      { ...toPerson(1), name: 'One', ...identity(1) },
      { ...toPerson(1), name: 'One', ...identity(1) },
      { ...toPerson(2), external: { shop: name } },
      { ...toPerson(3), external: { shop: name } },
      { ...toPerson(4), ...identity(1) },
      { ...toPerson(6), external: { shop: name } },
      { ...toPerson(5), external: { shop: `${name}5` } },
      { account: `${name}7`, ...identity(1) },
      // Of two clashes, the first one is named on every engine.
      { ...toPerson(8), external: { crm: name }, ...identity(0) },
      { ...toPerson(8), external: { crm: `${name}8` }, ...identity(0) }
    ]
    const dry = await importLines(services, lines, { onConflict: 'update', dryRun: true })
    const { verdicts, report } = await importLines(services, lines, { onConflict: 'update' })
    t.strictSame(listResults(verdicts), [
      'refused external', 'refused identities', 'updated', 'same', 'updated', 'refused external', 'refused identities', 'refused external.shop', 'updated', 'refused identities',
      'refused external', 'refused identities'
    ])
    t.strictSame(dry.verdicts, verdicts)
    const seed = 'MZXW6YTBOJRGC6LOMZXW6YTBOJRGC6LO'
    await importLines(services, [{ account: `${name}seed`, password: { hash: BCRYPT }, totp: [{ secret: seed }] }])
    for (const dryRun of [true, false]) {
      const app = [{ ...toPerson(8), password: { hash: BCRYPT }, totp: [{ secret: seed }] }]
      const options = { onConflict: 'update', dryRun } as const
      t.strictSame(listResults((await importLines(services, app, options)).verdicts), ['refused totp'])
      t.match((await importLines(services, app, { ...options, withoutFactors: true })).verdicts, [{ result: 'updated', dropped: ['totp'] }])
    }
    t.match(dry.report, { created: report.created, updated: report.updated, same: report.same, refused: report.refused, refusals: report.refusals })
  })

  t.test('people of a run who never signed in can be withdrawn, and only they', async (t) => {
    const kit = await build(t)
    const services = kit.app.identity
    const run = unique('run')
    const [ann, bob, eve] = [unique('ann'), unique('bob'), unique('eve')]
    const { verdicts } = await importLines(services, [ann, bob, eve].map((account) => ({ account, password: { hash: BCRYPT } })), { run })
    const kept = await importLines(services, [{ account: unique('other') }])
    await services.users.verify(bob, 'first')
    await kit.mint({ user: eve })
    const withdrawn = (await Array.fromAsync(services.imports.withdraw(run))).flat()
    const results = new Map(withdrawn.map(({ user_id, result }) => [user_id, result]))
    t.strictSame(verdicts.map(({ user_id }) => results.get(user_id!)), ['removed', 'kept', 'kept'])
    t.equal(await services.users.getByAccount(ann), null)
    t.match(await services.users.get(kept.verdicts[0]!.user_id!), {})
  })

  t.test('a run brings in hashes of more forms than are told apart, all at once', async (t) => {
    const { imports, store } = (await build(t)).app.identity
    await store.collection('meta').delete('password_schemes')
    const people = Array.from({ length: 170 }, (_value, index) => {
      const hash = `pbkdf2_sha256$${10_000 + 500 * (index % 17)}$c2FsdA$${'x'.repeat(42)}A=`
      return { account: unique('old'), password: { hash } }
    })
    t.match((await importLines({ imports }, people, { dryRun: true })).report, { created: 170, refused: 0 })
    t.match((await importLines({ imports }, people)).report, { created: 170, refused: 0, refusals: {} })
    t.equal((await store.collection<{ id: string, forms: string[] }>('meta').get('password_schemes'))!.forms.length, 16)
  })

  t.test('somebody who was deleted here does not come back by an old copy, unless that is said', async (t) => {
    const kit = await build(t, { auditDays: 30 })
    const services = kit.app.identity
    const [plain, foreign, own, here] = ['plain', 'foreign', 'own', 'here'].map((name) => unique(name)) as [string, string, string, string]
    const lines = [
      { account: `${plain}@example.com`, password: { hash: BCRYPT } },
      { account: foreign, external: { old: `${foreign}-id` }, password: { hash: BCRYPT } },
      { id: own, account: own, password: { hash: BCRYPT } },
      { account: here }
    ]
    const { verdicts } = await importLines(services, lines)
    for (const { user_id } of verdicts.slice(0, 3)) await services.users.remove(user_id!, { user_id: '', isAdmin: true })
    for (const dryRun of [true, false]) {
      const { verdicts: again } = await importLines(services, lines, { dryRun })
      t.strictSame(listResults(again), ['refused account', 'refused external', 'refused id', 'same'])
      t.match(again[0]!.reason, /somebody who was deleted here; --again \(over HTTP again=true\)/)
    }
    t.match((await importLines(services, [{ account: lines[1]!.account }])).verdicts, [{ result: 'refused', field: 'account' }], 'nor by their name alone')
    t.match((await importLines(services, [{ account: unique('new'), external: { old: `${foreign}-id` } }], { onConflict: 'update' })).verdicts, [{ result: 'refused', field: 'external' }], 'nor by their id under another name')
    t.match((await importLines(services, lines.slice(0, 1), { source: 'other', dryRun: true })).verdicts, [{ result: 'created' }], 'of another source nothing is known')
    const stored = (await Promise.all(['former_imports', 'keys'].map(async (name) => (await Array.fromAsync(services.store.collection(name).stream())).flat()))).flat()
    t.ok(stored.length > 0)
    for (const name of [plain, foreign, own]) t.notMatch(JSON.stringify(stored), name, 'only hashes are stored')

    t.strictSame(listResults((await importLines(services, lines, { again: true, dryRun: true })).verdicts), ['created', 'created', 'created', 'same'])
    const back = await importLines(services, lines, { again: true })
    t.strictSame(listResults(back.verdicts), ['created', 'created', 'created', 'same'])
    t.equal(back.verdicts[2]!.user_id, own, 'with the id that they had')
    t.match(await services.users.verify(own, 'first'), { user_id: own })
    t.strictSame(listResults((await importLines(services, lines)).verdicts), ['same', 'same', 'same', 'same'])

    await services.users.remove(back.verdicts[0]!.user_id!, { user_id: '', isAdmin: true })
    kit.clock.advance(29 * 86_400_000)
    t.strictSame(listResults((await importLines(services, lines.slice(0, 1))).verdicts), ['refused account'])
    kit.clock.advance(2 * 86_400_000)
    t.strictSame(listResults((await importLines(services, lines.slice(0, 1))).verdicts), ['created'], 'when no event tells of them any more')
  })

  t.test('the people of a run that was withdrawn come in again with that option, whatever their ids are', async (t) => {
    const kit = await build(t)
    const services = kit.app.identity
    const run = unique('run')
    const id = unique('id')
    const lines = [{ id, account: id }, { account: unique('ann') }]
    await importLines(services, lines, { run })
    t.strictSame((await Array.fromAsync(services.imports.withdraw(run))).flat().map(({ result }) => result), ['removed', 'removed'])
    t.strictSame(listResults((await importLines(services, lines)).verdicts), ['refused id', 'refused account'])
    t.strictSame(listResults((await importLines(services, lines, { again: true })).verdicts), ['created', 'created'])
    const clientId = await createClient(await signIn(kit, { roles: ['admin'] }))
    t.strictSame(listResults((await importLines(services, [{ id: clientId, account: unique('eve') }], { again: true })).verdicts), ['refused id'], 'but the id of a client stays refused')
  })

  t.test('the withdrawal of a run that never was is an error, and one of many administrators removes them all', async (t) => {
    const kit = await build(t)
    const services = kit.app.identity
    await signIn(kit, { roles: ['admin'] })
    await t.rejects(Array.fromAsync(services.imports.withdraw(unique('none'))), { code: 'ErrParam', message: 'withdraw: is the name of no run' })
    const run = unique('run')
    const admins = Array.from({ length: 30 }, () => ({ account: unique('boss'), roles: { admin: true } }))
    t.match((await importLines(services, admins, { run, allowRoles: true })).report, { created: 30 })
    const results = (await Array.fromAsync(services.imports.withdraw(run))).flat().map(({ result }) => result)
    t.strictSame(results, Array.from({ length: 30 }, () => 'removed'))
    await services.events.flush()
    t.strictSame((await Array.fromAsync(services.imports.withdraw(run))).flat(), [], 'a run whose people are gone is one')
  })

  t.test('a refusal names the option that would bring the person in', async (t) => {
    const kit = await build(t)
    const services = kit.app.identity
    const id = unique('id')
    for (const [line, flag] of [
      [{ account: unique('ann'), roles: { admin: true } }, 'allow-roles'],
      [{ account: unique('ann'), password: { hash: 'md5$salt$0123456789abcdef0123456789abcdef' } }, 'allow-weak'],
      [{ account: unique('ann'), totp: [{ secret: SEED, digits: 8 }] }, 'without-factors']
    ] as const) {
      const { verdicts: [verdict] } = await importLines(services, [line])
      t.match(verdict, { result: 'refused' })
      t.ok(verdict!.reason!.includes(`--${flag} (over HTTP ${flag.replace('-', '_')}=true)`), flag)
    }
    for (const reserved of ['document:abc', `document:${id}`]) t.match((await importLines(services, [{ id: reserved, account: unique('ann') }])).verdicts, [{ result: 'refused', field: 'id', reason: /document:/ }])
    for (const free of [`documents:${id}`, `document-${id}`, `Document:${id}`]) t.match((await importLines(services, [{ id: free, account: unique('ann') }])).verdicts, [{ result: 'created' }], free)
  })

  t.test('a later import of somebody whom others have changed does not let a withdrawal remove them', async (t) => {
    const services = (await build(t)).app.identity
    const run = unique('run')
    const [ann, bob] = [unique('ann'), unique('bob')]
    const toLines = (name: string) => [ann, bob].map((id) => ({ id, account: id, name }))
    await importLines(services, toLines('Old'), { run })
    await services.users.patch(ann, { data: { info: { desk: 7 } } }, { user_id: 'admin', isAdmin: true })
    t.strictSame(listResults((await importLines(services, toLines('New'), { onConflict: 'update' })).verdicts), ['updated', 'updated'])
    const results = (await Array.fromAsync(services.imports.withdraw(run))).flat().map(({ user_id, result }) => [user_id, result])
    t.strictSame(Object.fromEntries(results), { [ann]: 'kept', [bob]: 'removed' })
  })
})
