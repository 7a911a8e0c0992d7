import t, { type Test } from 'tap'
import { createSecretBox, generateSecretKey, parseSecretKeys } from '../../lib/crypto/secrets.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { createSealing } from '../../lib/maintenance/reseal.ts'
import { createFormerImports } from '../../lib/users/former-imports.ts'
import { createFormerNames } from '../../lib/users/former-names.ts'
import { eachStore } from '../oidc/harness.ts'
import { importLines } from '../helpers/import.ts'
import { unique } from '../helpers/people.ts'
import { addUser } from '../pages/visits.ts'
import { through } from './through.ts'

const START = '/api/v1/auth/upstream/test'
const TAKEN = /This username is taken/
const DAY = 24 * 60 * 60_000
const KEY = Buffer.alloc(32, 7).toString('base64')
const OPERATOR = { user_id: 'operator', isAdmin: true }

eachStore(t, 'the name that a stranger chooses', async (t, start) => {
  const harness = await start({ signUp: true, auditDays: 30, secretKey: KEY, upstream: {}, roles: { manager: 'Head-Clerk' }, factors: { roles: ['auditor'] }, managerRoles: ['editor'] })
  const { kit } = harness
  const { store, users: accounts } = kit.app.identity
  const users = store.collection<UserRecord>('users')

  /** Somebody whom the provider knows, and whose address it does not prove, chooses a name. */
  async function choose (account: string) {
    kit.upstream({ sub: unique('stranger') })
    const page = await through(harness.browser(), START)
    return await page.submit({ account })
  }

  async function isRefused (t: Test, account: string) {
    const before = (await users.getBy('account', account.toLowerCase()))?.id
    const page = await choose(account)
    t.equal(page.response.status, 400, account)
    t.match(page.text, TAKEN, 'and reads no reason')
    t.equal((await users.getBy('account', account.toLowerCase()))?.id, before)
  }

  await t.test('is not that of a role, nor a reserved one', async (t) => {
    for (const account of ['admin', 'Admin', 'a-d-m-i-n', 'root', 'postmaster', 'support', 'no-reply', 'no_reply', 'head-clerk', 'headclerk', 'service', 'auditor', 'editor', 'www-data']) await isRefused(t, account)
    await isRefused(t, '01krt2z1x0w9q2v4n6m8p0r2s4abcdefgh')
    t.match((await choose('admins-friend')).title, /Profile/, 'a name that only begins so is free')
  })

  await t.test('is not that of somebody who was deleted, as long as events are kept', async (t) => {
    const [ann, bob, self] = [await addUser(harness, 'annika'), await addUser(harness, 'bob'), await addUser(harness, 'selma')]
    await accounts.remove(ann.user_id, OPERATOR)
    await kit.app.identity.accounts.deleteOwn(self.user_id).catch(async () => await accounts.remove(self.user_id, OPERATOR))
    for (const account of ['annika', 'ANNIKA', 'bob', 'selma']) await isRefused(t, account)
    kit.clock.advance(29 * DAY)
    await isRefused(t, 'annika')
    await accounts.create({ data: { account: 'annika', password: 'x' } })
    t.equal((await users.getBy('account', 'annika'))!.account, 'annika', 'an operator gives it to whom they know')
    await accounts.remove((await users.getBy('account', 'annika'))!.id, OPERATOR)
    kit.clock.advance(2 * DAY)
    await isRefused(t, 'annika')
    t.match((await choose('selma')).title, /Profile/, 'after the events have gone')
    kit.clock.advance(30 * DAY)
    t.match((await choose('annika')).title, /Profile/)
    t.ok(await users.get(bob.user_id))
  })

  await t.test('is not in the database after the deletion', async (t) => {
    const secret = unique('secretive')
    const { user_id } = await addUser(harness, secret)
    await accounts.remove(user_id, OPERATOR)
    const found: string[] = []
    for await (const batch of store.collection('former_names').stream()) found.push(...batch.map((record) => JSON.stringify(record)))
    t.ok(found.length > 0)
    t.notOk(found.some((record) => record.includes(secret)))
  })

  await t.test('stays refused after a rotation of the secret key', async (t) => {
    const { user_id } = await addUser(harness, 'rotated')
    await accounts.remove(user_id, OPERATOR)
    const { verdicts: [brought] } = await importLines(kit.app.identity, [{ account: 'brought' }])
    await accounts.remove(brought!.user_id!, OPERATOR)
    const [former] = parseSecretKeys(KEY)
    const next = generateSecretKey()
    const box = createSecretBox(next, former)
    const meta = store.collection<{ id: string, key_id: string }>('meta')
    await meta.update('secret-key', { set: { key_id: box.keyId, former: [createSecretBox(former).keyId] } })
    await createSealing({ store, box, recorder: { insert: async () => {} } }).reseal()
    const { checkChosen } = createFormerNames({ store, now: kit.clock.now, box: createSecretBox(next), roles: [] })
    await t.rejects(checkChosen('rotated'), { code: 'ErrParam' }, 'with the new key alone')
    await checkChosen('never-here')
    const imports = createFormerImports({ store, now: kit.clock.now, box: createSecretBox(next) })
    t.equal(await imports.has({ account: 'brought' }, 'old'), 'account', 'and so does an old copy of somebody who was imported')
    t.equal(await imports.has({ account: 'never-here' }, 'old'), undefined)
  })
})
