import t from 'tap'
import type { IdentityOptions } from '../../index.ts'
import { findOldestPending } from '../../lib/events/oldest.ts'
import { toExternalKey } from '../../lib/import/keys.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { TestKit } from '../../testing/index.ts'
import { forEachStore } from '../helpers/build.ts'
import { BCRYPT, importLines } from '../helpers/import.ts'
import { callAs, createUser, signIn, unique } from '../helpers/people.ts'
import { waitUntil } from '../helpers/wait.ts'

const RIGHT = 'the former password'

/** A former system in this process: who is there, and what it was asked. */
function createFormer () {
  const people = new Map<string, Record<string, unknown>>()
  const asked: string[] = []
  const migrate = {
    verify (account: string, password: string) {
      asked.push(account)
      const person = people.get(account)
      return password === RIGHT && person !== undefined ? person : false
    },
    find (account: string) {
      asked.push(account)
      return people.get(account) ?? null
    }
  }
  return { people, asked, migrate: migrate as NonNullable<IdentityOptions['migrate']> }
}

const usersOf = ({ app }: TestKit) => app.identity.store.collection<UserRecord>('users')
const find = async (kit: TestKit, account: string) => await usersOf(kit).getBy('account', account)
const verify = async (kit: TestKit, account: string, password = RIGHT) => await kit.app.identity.users.verify(account, password)
async function typesOf (kit: TestKit, user: string): Promise<string[]> {
  // Another kit on the same store may have the right to publish.
  await waitUntil('publication', async () => {
    await kit.app.identity.events.flush()
    return await findOldestPending(kit.app.identity.store) === undefined
  })
  return (await kit.events.list({ user })).map(({ type }) => type)
}

await forEachStore(t, async (t, build) => {
  const { people, asked, migrate } = createFormer()
  const kit = await build(t, { migrate: { ...migrate, create: true, trustEmails: true } })
  const strict = createFormer()
  const careful = await build(t, { migrate: strict.migrate })
  /** Somebody whom an import has marked, in both systems. */
  const mark = async (line: object = {}, person: Record<string, unknown> = {}) => {
    const account = `${unique('ann')}@example.com`
    const { verdicts: [verdict] } = await importLines(kit.app.identity, [{ account, ...line }], { lazy: true, trustEmails: true })
    people.set(account, person)
    return { account, user_id: verdict!.user_id! }
  }
  const wasAsked = (account: string) => asked.filter((one) => one === account).length

  t.test('nobody gets the id of a user whose deletion is not published yet', async (t) => {
    for (let round = 0; round < 5; round++) {
      const [gone, account] = [unique('gone'), `${unique('new')}@example.com`]
      await importLines(kit.app.identity, [{ id: gone, account: gone }])
      people.set(account, { id: gone })
      await kit.app.identity.users.remove(gone, { user_id: '', isAdmin: true })
      t.equal(await verify(kit, account), null)
      t.equal(await find(kit, account), null)
    }
  })

  t.test('a marked person gets the password that they have typed, once', async (t) => {
    const { account, user_id } = await mark()
    const { epoch } = (await usersOf(kit).get(user_id))!
    t.equal(await verify(kit, account, 'wrong'), null)
    t.match(await verify(kit, account), { user_id })
    const record = (await usersOf(kit).get(user_id))!
    t.match(record, { password: /^[0-9A-Za-z]{8}\$2b\$/, imported_lazy: undefined, epoch: epoch + 1, imported_source: 'old' })
    t.equal(wasAsked(account), 2)
    t.match(await verify(kit, account), { user_id })
    t.equal(await verify(kit, account, 'wrong'), null)
    t.equal(wasAsked(account), 2, 'neither a right nor a wrong password is asked about again')
    t.strictSame((await typesOf(kit, user_id)).sort(), ['sign_in.failed', 'sign_in.failed', 'user.created', 'user.migrated'])
  })

  t.test('somebody who is not here is created by what the former system says, and never with a role', async (t) => {
    const account = `${unique('new')}@example.com`
    const id = unique('auth0|1')
    people.set(account, { id, name: 'Ann', email: account, email_verified: true, roles: { admin: true }, disabled: true, info: { a: 1 } })
    t.equal(await verify(kit, account, 'wrong'), null)
    t.equal(await find(kit, account), null, 'a wrong password creates nobody')
    t.match(await verify(kit, account.toUpperCase()), { user_id: id })
    t.match(await find(kit, account), {
      id, name: 'Ann', roles: {}, info: {}, email: account, email_verified_at: String, external: { migrate: id }, external_keys: [toExternalKey('migrate', id)], disabled_at: undefined, imported_source: 'migrate', imported_run: undefined, imported_lazy: undefined
    })
    t.strictSame((await typesOf(kit, id)).sort(), ['user.created', 'user.migrated'])
    await verify(kit, account)
    t.equal(wasAsked(account), 2)
  })

  t.test('an answer never reaches somebody who is here, and an id of another person is refused', async (t) => {
    const { user_id } = await mark()
    const other = unique('other')
    people.set(other, { id: user_id })
    t.equal(await verify(kit, other), null)
    people.set(other, { id: 'count' })
    t.equal(await verify(kit, other), null, 'the name of a route')
    people.set(other, { id: 5 })
    t.equal(await verify(kit, other), null, 'no id')
    t.equal(await find(kit, other), null)
    const { account } = await mark({ id: unique('auth0|2'), external: { old: unique('mine') } }, { id: 'somebody else' })
    t.equal(await verify(kit, account), null, 'the name belongs to somebody else there')
    people.set(account, { id: (await find(kit, account))!.external!['old'] })
    t.ok(await verify(kit, account))
  })

  t.test('somebody who was deleted here does not come back by their former password', async (t) => {
    const [came, imported] = [`${unique('came')}@example.com`, (await mark()).account]
    people.set(came, {})
    for (const account of [came, imported]) {
      t.ok(await verify(kit, account))
      await kit.app.identity.users.remove((await find(kit, account))!.id, { user_id: '', isAdmin: true })
      t.equal(await verify(kit, account), null, account)
      t.equal(await find(kit, account), null)
    }
    const other = `${unique('other')}@example.com`
    people.set(other, {})
    t.ok(await verify(kit, other), 'others come as before')
  })

  t.test('nobody else is asked about', async (t) => {
    const admin = await signIn(kit, { roles: ['admin'] })
    const make = async (line: object, lazy: boolean) => {
      const account = unique('quiet')
      people.set(account, {})
      await importLines(kit.app.identity, [{ account, ...line }], { lazy })
      return account
    }
    const withPassword = unique('here')
    people.set(withPassword, {})
    await createUser(admin, { account: withPassword })
    const unmarked = await make({}, false)
    const imported = await make({ password: { hash: BCRYPT } }, true)
    const identity = await make({ identities: [{ issuer: 'https://login.example', subject: unique('s') }] }, true)
    const disabled = await make({ disabled: true }, true)
    for (const account of [withPassword, unmarked, imported, identity, disabled]) {
      t.equal(await verify(kit, account), null)
      t.equal(wasAsked(account), 0, account)
    }
    strict.people.set('nobody', {})
    t.equal(await verify(careful, 'nobody'), null)
    t.strictSame(strict.asked, [], 'nor about an unknown account without create')
  })

  t.test('whatever proves a person otherwise ends the mark', async (t) => {
    const { ways, factors } = kit.app.identity
    const admin = await signIn(kit, { roles: ['admin'] })
    const ends: Record<string, (person: { account: string, user_id: string }) => Promise<unknown>> = {
      'a link for a password': async ({ account }) => {
        await callAs(kit).post('/auth/forgot', { data: { account } })
        const { token } = await kit.mails.next({ to: account })
        return await callAs(kit).post('/auth/reset', { data: { token, password: 'another password' } })
      },
      'an authenticator app': async ({ user_id, account }) => {
        const actor = { user_id, epoch: (await usersOf(kit).get(user_id))!.epoch }
        const { id, seed } = await factors.beginTotp(actor, account, 'Phone')
        const { TOTP } = await import('otpauth')
        await factors.proveTotp(actor, id, new TOTP({ secret: seed }).generate({ timestamp: kit.clock.now() }))
        await ways.name(actor, [id])
      },
      'a password by an administrator': async ({ user_id }) => await admin.patch(`/user/${user_id}`, { data: { password: 'another password' } }),
      'an address by an administrator': async ({ user_id }) => await admin.patch(`/user/${user_id}`, { data: { email: `${unique('b')}@example.com` } }),
      'the end of the sessions by an administrator': async ({ user_id }) => await admin.delete(`/auth/sessions?user=${user_id}`),
      'the end of the sessions by the command line': async ({ user_id }) => await kit.app.identity.tokenSessions.end(user_id),
      'a change of the ways that ends the sessions': async ({ user_id }) => await kit.app.identity.ways.change(user_id, () => ({ isEnd: true })),
      'a time without access': async ({ user_id }) => {
        await admin.patch(`/user/${user_id}`, { disable: true })
        await admin.patch(`/user/${user_id}`, { disable: false })
      }
    }
    for (const [name, end] of Object.entries(ends)) {
      const person = await mark()
      await end(person)
      t.equal((await usersOf(kit).get(person.user_id))!.imported_lazy, undefined, name)
      t.equal(await verify(kit, person.account), null, name)
      t.equal(wasAsked(person.account), 0, name)
    }
    const person = await mark()
    await admin.patch(`/user/${person.user_id}`, { data: { name: 'Ann' } })
    t.ok(await verify(kit, person.account), 'a name does not')
  })

  t.test('a password that is removed again is no reason to ask', async (t) => {
    const { account, user_id } = await mark()
    await verify(kit, account)
    await usersOf(kit).update(user_id, { unset: ['password'], increment: { revision: 1 } })
    t.equal(await verify(kit, account), null)
    t.equal(wasAsked(account), 1)
  })

  t.test('a person who is disabled or gets a password while the former system answers does not get in', async (t) => {
    const admin = await signIn(kit, { roles: ['admin'] })
    const answering = async (meanwhile: (user_id: string) => Promise<unknown>) => {
      const { account, user_id } = await mark()
      const { promise, resolve } = Promise.withResolvers<Record<string, unknown>>()
      people.set(account, promise as unknown as Record<string, unknown>)
      const found = verify(kit, account)
      await waitUntil('the former system is asked', () => wasAsked(account) > 0)
      await meanwhile(user_id)
      resolve({})
      return { found: await found, record: (await usersOf(kit).get(user_id))! }
    }
    const disabled = await answering(async (user_id) => await admin.patch(`/user/${user_id}`, { disable: true }))
    t.match(disabled, { found: null, record: { password: undefined } })
    const changed = await answering(async (user_id) => await admin.patch(`/user/${user_id}`, { data: { password: 'another password' } }))
    t.equal(changed.found, null)
    t.match(await verify(kit, changed.record.account, 'another password'), { user_id: changed.record.id }, 'the other password stays')
  })

  t.test('first sign-ins at once make one person, and all get in', async (t) => {
    const account = unique('twice')
    people.set(account, {})
    const found = await Promise.all([1, 2, 3].map(async () => await verify(kit, account)))
    t.equal(new Set(found.map((user) => user?.user_id)).size, 1)
    t.ok(found[0])
    t.equal(await usersOf(kit).count({ equal: { account } }), 1)
    const marked = await mark()
    t.strictSame((await Promise.all([1, 2].map(async () => await verify(kit, marked.account)))).map((user) => user?.user_id), [marked.user_id, marked.user_id])
    t.equal((await typesOf(kit, marked.user_id)).filter((type) => type === 'user.migrated').length, 1)
  })

  t.test('guesses at the former system are counted as all others', async (t) => {
    for (const account of [(await mark()).account, unique('unknown')]) {
      const errors: string[] = []
      for (let guess = 0; guess < 100; guess++) await verify(kit, account, `guess ${guess}`).catch(({ code }: { code: string }) => errors.push(code))
      t.equal(wasAsked(account), 20)
      t.equal(errors.length, 80)
      t.strictSame([...new Set(errors)], ['ErrLimit'])
    }
  })

  t.test('somebody who has lost their password is found by the sender of mails, and not by the request', async (t) => {
    const account = `${unique('lost')}@example.com`
    people.set(account, { email: account, email_verified: true })
    t.match(await callAs(kit).post('/auth/forgot', { data: { account } }), { status: 204 })
    const { token } = await kit.mails.next({ to: account })
    t.match(await callAs(kit).post('/auth/reset', { data: { token, password: 'another password' } }), { status: 204 })
    t.ok(await verify(kit, account, 'another password'))
    t.equal(await verify(kit, account), null)
    t.equal(wasAsked(account), 1)
    const unproved = `${unique('lost')}@example.com`
    people.set(unproved, { email: unproved })
    for (const name of [unproved, `${unique('nobody')}@example.com`]) {
      t.match(await callAs(kit).post('/auth/forgot', { data: { account: name } }), { status: 204 })
      t.strictSame((await kit.mails.all()).filter(({ to }) => to === name), [])
      t.equal(wasAsked(name), 1)
      t.equal(await find(kit, name), null)
    }
  })

  t.test('from the date on, nobody is asked about', async (t) => {
    const former = createFormer()
    const kit = await build(t, { migrate: { ...former.migrate, create: true, until: new Date(Date.now() + 3_600_000).toISOString() } })
    former.people.set('ann', {})
    former.people.set('bob', {})
    t.ok(await verify(kit, 'ann'))
    kit.clock.advance(3_700_000)
    t.equal(await verify(kit, 'bob'), null)
    t.ok(await verify(kit, 'ann'), 'who has moved stays')
    t.strictSame(former.asked, ['ann'])
  })
})
