import t from 'tap'
import { hashToken } from '../../lib/crypto/random-token.ts'
import { type UserChange, type UserRecord, createUserRecord } from '../../lib/records/user.ts'
import { toWayKey } from '../../lib/way.ts'
import type { KeptLine } from '../../schemas/export.ts'
import { forEachStore } from '../helpers/build.ts'
import { createSilentRecorder } from '../helpers/events.ts'
import { proveApp } from '../helpers/factors.ts'
import { importLines } from '../helpers/import.ts'
import { unique } from '../helpers/people.ts'
import { openRules } from '../helpers/services.ts'
import { openTestStored } from '../helpers/user-changes.ts'

const OPERATOR = { user_id: 'operator', isAdmin: true }
const PASSWORD = { way: 'password', kind: 'password', at: '2126-01-01T00:00:00.000Z' } as const
const TIME = '2019-04-05T06:07:08.000Z'

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { signUp: true, upstream: {}, migrate: { verify: (account) => ({ email: account, email_verified: true }), create: true, trustEmails: true } })
  const { accounts, users, store, upstreams, userLines } = kit.app.identity
  const records = store.collection<UserRecord>('users')
  const toAddress = (name = 'ann') => `${unique(name)}@example.com`
  const mailTo = async (to: string): Promise<string> => (await kit.mails.next({ to })).token!
  const find = async (account: string) => (await records.getBy('account', account))!
  const identity = (subject: string) => ({ kind: 'upstream' as const, upstream: 'test', key: toWayKey('upstream', 'i', subject), material: { issuer: 'i', subject } })
  const accept = async (token: string) => await accounts.acceptByIdentity(hashToken(token), identity(unique('s')), 'Test', { displayName: '', decide: () => {} })

  async function create (account = toAddress()): Promise<{ account: string, user_id: string }> {
    return { account, ...await users.create({ data: { account, password: 'a long password' } }) }
  }

  async function invite (): Promise<{ account: string, user_id: string, token: string }> {
    const account = toAddress()
    const { user_id } = await accounts.inviteUser({ account }, OPERATOR)
    return { account, user_id, token: await mailTo(account) }
  }

  async function change (user_id: string, address = toAddress('new')): Promise<string> {
    await accounts.changeAddress(user_id, address)
    await accounts.verifyAddress(await mailTo(address), user_id)
    return address
  }

  async function signUp (finish: (token: string) => Promise<unknown>): Promise<UserRecord> {
    const account = toAddress()
    await accounts.signUp(account, { ip: '192.0.2.1' })
    await finish(await mailTo(account))
    return await find(account)
  }

  /** Every road to a proof: who has proved the address, and the record afterwards. */
  const ROADS: Record<string, [by: string, walk: () => Promise<UserRecord | null>]> = {
    'a sign-up by our mail, with a password': ['mail', async () => await signUp(async (token) => await accounts.setPassword(token, 'a long password'))],
    'a sign-up by our mail, with an identity': ['mail', async () => await signUp(accept)],
    'an invitation by our mail, with a password': ['mail', async () => {
      const { account, token } = await invite()
      await accounts.setPassword(token, 'a long password')
      return await find(account)
    }],
    'an invitation by our mail, with an identity': ['mail', async () => {
      const { account, token } = await invite()
      await accept(token)
      return await find(account)
    }],
    'a link that verifies': ['mail', async () => {
      const { account, user_id } = await create()
      await accounts.sendVerification(user_id)
      await accounts.verifyAddress(await mailTo(account))
      return await records.get(user_id)
    }],
    'a link for a forgotten password': ['mail', async () => {
      const { account, user_id } = await create()
      await accounts.forgotPassword(account, { ip: '192.0.2.2' })
      await accounts.setPassword(await mailTo(account), 'a long password too')
      return await records.get(user_id)
    }],
    'a recovery by an administrator': ['mail', async () => {
      const { account, user_id } = await create()
      await accounts.recoverUser(user_id, OPERATOR)
      await accounts.setPassword(await mailTo(account), 'a long password too')
      return await records.get(user_id)
    }],
    'a change of the address': ['mail', async () => {
      const { user_id } = await create()
      await change(user_id)
      return await records.get(user_id)
    }],
    'the link to an address that a provider has seen': ['mail', async () => {
      const { user_id } = await create(unique('seen'))
      const address = toAddress('seen')
      await accounts.suggestAddress((await records.get(user_id))!, address, 'Test')
      await accounts.verifyAddress(await mailTo(address), user_id)
      return await records.get(user_id)
    }],
    'the word of an administrator': ['operator', async () => {
      const { user_id } = await create()
      await users.patch(user_id, { data: { email_verified: true } }, OPERATOR)
      return await records.get(user_id)
    }],
    'the word of an administrator about another address': ['operator', async () => {
      const { user_id } = await create()
      await change(user_id)
      await users.patch(user_id, { data: { email: toAddress('third'), email_verified: true } }, OPERATOR)
      return await records.get(user_id)
    }],
    'an import that trusts addresses': ['import', async () => {
      const account = toAddress()
      await importLines(kit.app.identity, [{ account, email_verified: true }], { trustEmails: true })
      return await find(account)
    }],
    'a line of an export': ['test', async () => {
      const account = toAddress()
      const line = { format: 'fastify-identity/user/1', id: unique('kept'), account, email: account, email_verified: true, created_at: TIME, kept: { modified_at: TIME, email_verified_at: TIME, email_verified_by: 'test' } }
      t.match((await importLines(kit.app.identity, [line], { kept: true })).verdicts, [{ result: 'created', dropped: undefined }])
      const user = await find(account)
      t.equal((JSON.parse(await userLines.describe(user)) as KeptLine).kept.email_verified_by, 'test')
      return user
    }],
    'a line of an export of an earlier layout': ['import', async () => {
      const account = toAddress()
      const line = { format: 'fastify-identity/user/1', id: unique('kept'), account, email: account, email_verified: true, created_at: TIME, kept: { modified_at: TIME, email_verified_at: TIME } }
      t.match((await importLines(kit.app.identity, [line], { kept: true })).verdicts, [{ result: 'created', dropped: undefined }])
      return await find(account)
    }],
    'the former system': ['import', async () => {
      const account = toAddress()
      t.match(await users.verify(account, 'a long password'), { account })
      return await find(account)
    }],
    'the word of an authority': ['test', async () => {
      const address = toAddress()
      await upstreams!.identities.create({ upstream: upstreams!.require('test'), claimed: { issuer: 'i', subject: unique('s'), address, name: '', both: false } }, address)
      return await find(address)
    }],
    'an undo of a change': ['operator', async () => {
      const { user_id, account } = await create()
      await users.patch(user_id, { data: { email_verified: true } }, OPERATOR)
      await kit.mails.all()
      await change(user_id)
      await accounts.undo(await mailTo(account))
      return await records.get(user_id)
    }],
    'an undo of a first factor': ['operator', async () => {
      const { user_id, account } = await create()
      await users.patch(user_id, { data: { email_verified: true } }, OPERATOR)
      await kit.mails.all()
      const { ways, factors } = kit.app.identity
      const toActor = async () => ({ user_id, epoch: (await records.get(user_id))!.epoch, proofs: [PASSWORD] })
      const actor = await toActor()
      const { id } = await factors.beginTotp(actor, account)
      await proveApp(ways, user_id, id)
      await factors.addFactor(actor, [id, (await factors.prepareCodes(actor)).id])
      const undo = await mailTo(account)
      await change(user_id)
      t.equal((await records.get(user_id))!.email_verified_by, 'mail')
      await accounts.undo(undo)
      return await records.get(user_id)
    }]
  }

  for (const [road, [by, walk]] of Object.entries(ROADS)) {
    await t.test(`${road} says who has proved the address, and when`, async (t) => {
      const user = (await walk())!
      t.type(user.email, 'string')
      t.match(user.email_verified_at, /^\d{4}-/)
      t.equal(user.email_verified_by, by)
      t.match(await users.get(user.id), { email: user.email, email_verified_at: user.email_verified_at, email_verified_by: by }, 'and so does the API')
      await kit.mails.all()
    })
  }

  await t.test('an address that nobody has proved takes over no proof', async (t) => {
    const { user_id, account } = await create()
    const own = toAddress('set')
    await users.patch(user_id, { data: { email: own } }, OPERATOR)
    await kit.mails.all()
    await change(user_id)
    await accounts.undo(await mailTo(own))
    t.match(await records.get(user_id), { account, email: own, email_verified_at: undefined, email_verified_by: undefined }, 'an undo brings it back as it was')
    await change(user_id)
    await users.patch(user_id, { data: { email: toAddress('fourth') } }, OPERATOR)
    t.match(await records.get(user_id), { email_verified_at: undefined, email_verified_by: undefined }, 'nor does one that an administrator sets')
    await kit.mails.all()
    await importLines(kit.app.identity, [{ account: toAddress(), email_verified: true }])
  })

  await t.test('no record has half a proof', async (t) => {
    for (const user of (await Array.fromAsync(records.stream())).flat()) {
      const { email, email_verified_at: at, email_verified_by: by } = user
      t.equal(at === undefined, by === undefined, JSON.stringify(user))
      if (at !== undefined) t.type(email, 'string')
    }
  })
})

t.test('a write that proves an address without a prover is refused, whatever road it comes by', async (t) => {
  const { store, now, tokens, records } = await openRules(t)
  const stored = openTestStored({ store, now, role: 'admin', recorder: createSilentRecorder(store), tokens, onRemove: async () => {}, onError: (error) => { t.fail(String(error)) } })
  const make = (fields: Partial<UserRecord>) => ({ ...createUserRecord(now(), { id: 'ann', account: 'ann@example.com', roles: {}, name: '', info: {} }), ...fields })
  const insert = async (fields: Partial<UserRecord>) => { await stored.insertUser(make(fields), { type: 'user.created', id: 'ann', granted: [] }, () => new Error('exists')) }
  const [email, email_verified_at, email_verified_by] = ['ann@example.com', TIME, 'mail']
  for (const fields of [{ email, email_verified_at }, { email, email_verified_by }, { email_verified_at, email_verified_by }]) {
    await t.rejects(insert(fields), /does not say who has proved the address/, Object.keys(fields).join())
  }
  await insert({ email, email_verified_at, email_verified_by })
  for (const [change, message] of [
    [{ set: { email, email_verified_at } }, /does not say who has proved the address/],
    [{ set: { email: 'other@example.com' } }, /gives the proof of an address to another one/],
    [{ unset: ['email'] }, /gives the proof of an address to another one/]
  ] as [UserChange, RegExp][]) await t.rejects(stored.changeUser('ann', () => change), message)
  await stored.changeUser('ann', () => ({ unset: ['email_verified_at'] }))
  const left = (await records.users.get('ann'))!
  for (const field of ['email_verified_at', 'email_verified_by']) t.notOk(field in left, 'the prover goes with the proof')
})
