import t from 'tap'
import type { Proof } from '../../lib/proofs.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { type CredentialRecord, toWayKey } from '../../lib/way.ts'
import { startIdentity } from '../../testing/kit.ts'
import { forEachStore } from '../helpers/build.ts'
import { proveApp } from '../helpers/factors.ts'
import { createUser, signIn, unique } from '../helpers/people.ts'

const HOUR = 60 * 60_000
const PASSWORD = [{ way: 'password', kind: 'password', at: '2126-01-01T00:00:00.000Z' }] as const
const BOTH = [...PASSWORD, { way: 'x', kind: 'totp', at: '2126-01-01T00:00:00.000Z' }] as const

await forEachStore(t, async (t, build) => {
  const kit = await build(t)
  const { accounts, users, factors, store, ways } = kit.app.identity
  const records = store.collection<UserRecord>('users')
  const admin = await signIn(kit, { roles: ['admin'], ttl: 1_000_000 })

  async function createPerson () {
    const account = `${unique('ann')}@example.com`
    const user_id = await createUser(admin, { account, password: 'the stolen password' })
    const read = async () => (await records.get(user_id))!
    /** With `BOTH`, the factor that was proved is one of the account. */
    const toActor = async (proofs: typeof PASSWORD | typeof BOTH = PASSWORD) => {
      const { epoch, ways = {} } = await read()
      const [factor = 'none'] = Object.keys(ways).filter((id) => ways[id]!.kind === 'totp')
      return { user_id, epoch, proofs: proofs.map((proof): Proof => ({ ...proof, ...(proof.kind === 'totp' && { way: factor }) })) }
    }
    return {
      account,
      user_id,
      read,
      toActor,
      listWays: async () => Object.values((await read()).ways ?? {}).map(({ kind }) => kind).sort(),
      /** Adds an app, and codes with the first one. */
      async add (proofs: typeof PASSWORD | typeof BOTH = PASSWORD): Promise<string> {
        const actor = await toActor(proofs)
        const { id } = await factors.beginTotp(actor, account)
        await proveApp(ways, user_id, id)
        const isFirst = (await read()).ways === undefined
        await factors.addFactor(actor, isFirst ? [id, (await factors.prepareCodes(actor)).id] : [id])
        return id
      }
    }
  }

  await t.test('the mail about a first factor undoes everything that was added since, and the password; further factors have no such link', async (t) => {
    const ann = await createPerson()
    await ann.add()
    const first = await kit.mails.next({ to: ann.account })
    t.match(first.subject, /two-step verification is on/)
    t.match(first.link, /\/undo\?token=/)
    t.match(first.text, /2\d{3} at \d\d:\d\d UTC|UTC/)
    await t.rejects(ann.add(), { code: 'ErrUnknown' }, 'the password alone adds no further factor')
    await ann.add(BOTH)
    const further = await kit.mails.next({ to: ann.account })
    t.equal(further.link, undefined)
    t.strictSame(await ann.listWays(), ['recovery', 'totp', 'totp'])

    await accounts.inspectUndo(first.token!)
    await accounts.undo(first.token!)
    const { password, epoch, ways: left } = await ann.read()
    t.strictSame({ password, epoch, left }, { password: '', epoch: 1, left: undefined })
    t.equal(await store.collection<CredentialRecord>('credentials').count({ equal: { user_id: ann.user_id } }), 1, 'but for the one that was refused')
    t.equal(await users.verify(ann.account, 'the stolen password'), null)
    for (const act of [accounts.undo, accounts.inspectUndo]) await t.rejects(async () => { await act(first.token!) }, { code: 'ErrTicket' }, 'the link works once')
    const again = await kit.mails.next({ to: ann.account })
    await accounts.setPassword(again.token!, 'the new password')
    t.equal((await users.verify(ann.account, 'the new password'))?.user_id, ann.user_id)
  })

  await t.test('the link is good for the hours of the option, and not for another purpose', async (t) => {
    const ann = await createPerson()
    await ann.add()
    const { token } = await kit.mails.next({ to: ann.account })
    await t.rejects(accounts.setPassword(token!, 'of the thief'), { code: 'ErrTicket' })
    await t.rejects(accounts.undo('unknown'), { code: 'ErrTicket' })
    kit.clock.advance(72 * HOUR)
    await t.rejects(accounts.undo(token!), { code: 'ErrTicket' })
    t.strictSame(await ann.listWays(), ['recovery', 'totp'])
  })

  await t.test('a first factor after a removal has a link of its own; the earlier one is spent with it', async (t) => {
    const ann = await createPerson()
    const removed = await ann.add()
    const before = await kit.mails.next({ to: ann.account })
    await factors.removeFactor(await ann.toActor(BOTH), removed, { isEnd: false })
    t.match((await kit.mails.next({ to: ann.account })).subject, /was removed/)
    t.strictSame(await ann.listWays(), [])
    await ann.add()
    const { token } = await kit.mails.next({ to: ann.account })
    await accounts.undo(token!)
    await kit.mails.next({ to: ann.account })
    t.strictSame(await ann.listWays(), [])
    await t.rejects(accounts.inspectUndo(before.token!), { code: 'ErrTicket' })
  })

  await t.test('the undo of a change of the address keeps the factors from before', async (t) => {
    const ann = await createPerson()
    const own = await ann.add()
    await kit.mails.next({ to: ann.account })
    kit.clock.advance(73 * HOUR)
    const thief = `${unique('thief')}@evil.example`
    await accounts.changeAddress(ann.user_id, thief)
    await accounts.verifyAddress((await kit.mails.next({ to: thief })).token!, ann.user_id)
    const added = await ann.add(BOTH)
    const undo = (await kit.mails.all()).find(({ to }) => to === ann.account)
    t.strictSame(Object.keys((await ann.read()).ways ?? {}).includes(added), true)
    await accounts.undo(undo!.token!)
    const { ways: left = {} } = await ann.read()
    t.strictSame(Object.values(left).map(({ kind }) => kind).sort(), ['recovery', 'totp', 'totp'])
    t.ok(left[own] && left[added], 'nor what was added by a proof of these')
    await kit.mails.all()
  })

  await t.test('removals and codes anew are told by mail; what is refused is not', async (t) => {
    const ann = await createPerson()
    const bob = await createPerson()
    const id = await ann.add()
    await bob.add()
    await kit.mails.all()
    await t.rejects(factors.removeFactor(await bob.toActor(BOTH), id), { code: 'ErrNotFound' }, 'the factor of another person')
    await t.rejects(factors.removeFactor(await bob.toActor(BOTH), 'password'), { code: 'ErrNotFound' })
    const codes = Object.entries((await bob.read()).ways ?? {}).find(([, { kind }]) => kind === 'recovery')![0]
    await t.rejects(factors.removeFactor(await bob.toActor(BOTH), codes), { code: 'ErrNotFound' }, 'codes go with the last factor only')
    await t.rejects(factors.removeFactor({ ...await ann.toActor(BOTH), epoch: 7 }, id), { code: 'ErrUnknown' })
    const prepared = await factors.prepareCodes(await ann.toActor())
    await t.rejects(factors.renewCodes(await ann.toActor(), prepared.id), { code: 'ErrUnknown' }, 'the password alone makes no codes')
    await factors.renewCodes(await ann.toActor(BOTH), prepared.id)
    t.match((await kit.mails.next({ to: ann.account })).subject, /new backup codes/)
    await factors.verifyCode(ann.user_id, prepared.codes[0]!)
    t.match(await kit.mails.next({ to: ann.account }), { subject: /backup code was used/, text: /Codes left: 9/ })
    for (let count = 0; count < 100; count++) {
      kit.clock.advance(HOUR)
      await factors.verifyTotp(ann.user_id, '000000')
    }
    const closed = await kit.mails.all()
    t.match(closed.map(({ subject }) => subject), [/is locked/], 'told once')
    const { body: { data } } = await admin.post<{ data: { removed: number } }>(`/user/${ann.user_id}/factors/reset`)
    t.equal(data.removed, 1)
    t.match((await kit.mails.next({ to: ann.account })).subject, /was reset/)
    t.same(await kit.mails.all(), [])
  })

  await t.test('after a change of the address, the link of an undo leads to the mailbox before it', async (t) => {
    const ann = await createPerson()
    const thief = `${unique('thief')}@example.com`
    await ann.add()
    const { token } = await kit.mails.next({ to: ann.account })
    await accounts.changeAddress(ann.user_id, thief)
    await accounts.verifyAddress((await kit.mails.next({ to: thief })).token!, ann.user_id)
    await kit.mails.all()
    await accounts.undo(token!)
    const mails = await kit.mails.all()
    t.strictSame(mails.map(({ to, subject }) => [to, /recent changes were undone|change of email address was undone/.test(subject)]).sort(), [[ann.account, true], [thief, true]].sort())
    const { token: link } = mails.find(({ to }) => to === ann.account)!
    t.equal(mails.find(({ to }) => to === thief)!.link, undefined)
    await accounts.setPassword(link!, 'the new password')
    await t.rejects(accounts.setPassword(link!, 'another password'), { code: 'ErrTicket' }, 'once')
    const { email, account } = await ann.read()
    t.equal(email ?? account, ann.account)
    await kit.mails.all()
    await accounts.forgotPassword(ann.account, { ip: '192.0.2.7' })
    t.strictSame((await kit.mails.all()).map(({ to }) => to), [ann.account], 'whoever has changed the address gets no link for a password any more')
  })

  await t.test('after an administrator has set another address, the former mailbox undoes nothing', async (t) => {
    const ann = await createPerson()
    await ann.add()
    const factor = (await kit.mails.next({ to: ann.account })).token!
    const identity = { kind: 'upstream', upstream: 'corp', key: toWayKey('upstream', 'https://corp.example', ann.user_id), material: { issuer: 'https://corp.example', subject: ann.user_id } } as const
    await accounts.linkIdentity(await ann.toActor(BOTH), identity, 'Corp')
    const link = (await kit.mails.next({ to: ann.account })).token!
    const own = `${unique('own')}@example.com`
    await accounts.changeAddress(ann.user_id, own)
    await accounts.verifyAddress((await kit.mails.next({ to: own })).token!, ann.user_id)
    await Promise.all([accounts.inspectUndo(factor), accounts.inspectUndo(link)])
    t.match(await admin.patch(`/user/${ann.user_id}`, { data: { email: `${unique('safe')}@example.com` } }), { status: 204 })
    const readKept = async () => (({ ways, password, email, epoch }) => ({ ways, password, email, epoch }))(await ann.read())
    const before = await readKept()
    for (const act of [accounts.inspectUndo, accounts.undo]) await t.rejects(async () => { await act(factor) }, { code: 'ErrTicket' }, 'the factor')
    for (const act of [accounts.inspectUndo, accounts.undo]) await t.rejects(async () => { await act(link) }, { code: 'ErrTicket' }, 'the identity')
    t.strictSame(await readKept(), before)
    await kit.mails.all()
  })

  await t.test('a change of the address from before the factor stays, and an earlier link undoes more', async (t) => {
    const ann = await createPerson()
    const [own, thief] = [`${unique('own')}@example.com`, `${unique('thief')}@example.com`]
    const change = async (address: string): Promise<void> => {
      await accounts.changeAddress(ann.user_id, address)
      await accounts.verifyAddress((await kit.mails.next({ to: address })).token!, ann.user_id)
    }
    await change(own)
    await kit.mails.all()
    await ann.add()
    const { token } = await kit.mails.next({ to: own })
    await change(thief)
    await kit.mails.all()
    await accounts.undo(token!)
    const { email, email_verified_at, addresses, undos = [] } = await ann.read()
    t.match({ email, addresses: addresses?.toSorted() }, { email: own, addresses: [ann.account, own].sort() })
    t.type(email_verified_at, 'string')
    t.strictSame(undos.map(({ kind }) => kind), ['address'])
    await kit.mails.all()
  })

  await t.test('where another user has the former address by now, the factor goes all the same, and the account is left without one', async (t) => {
    const ann = await createPerson()
    const [own, thief] = [`${unique('own')}@example.com`, `${unique('thief')}@example.com`]
    await accounts.changeAddress(ann.user_id, own)
    await accounts.verifyAddress((await kit.mails.next({ to: own })).token!, ann.user_id)
    await kit.mails.all()
    await ann.add()
    const { token } = await kit.mails.next({ to: own })
    await accounts.changeAddress(ann.user_id, thief)
    await accounts.verifyAddress((await kit.mails.next({ to: thief })).token!, ann.user_id)
    await users.create({ data: { account: own, password: 'of another person' } })
    await accounts.undo(token!)
    t.strictSame(await ann.listWays(), [])
    t.equal((await ann.read()).email, undefined)
    t.equal(await users.verify(ann.account, 'the stolen password'), null)
    await kit.mails.all()
  })

  await t.test('an enrolment that was begun before a reset is never named', async (t) => {
    const ann = await createPerson()
    const actor = await ann.toActor()
    const [{ id }, codes] = [await factors.beginTotp(actor, ann.account), await factors.prepareCodes(actor)]
    await accounts.forgotPassword(ann.account, { ip: '192.0.2.1' })
    await accounts.setPassword((await kit.mails.next({ to: ann.account })).token!, 'the new password')
    await kit.mails.all()
    await t.rejects(factors.addFactor(actor, [id, codes.id]), { code: 'ErrUnknown' })
    t.strictSame(await ann.listWays(), [])
    await kit.flush()
    t.same(await kit.mails.all(), [], 'and no mail says so')
  })
})

t.test('without the option, and without mail, a first factor has no link', async (t) => {
  const kit = await startIdentity({ undoFactors: 0 })
  t.teardown(() => kit.close())
  const { users, factors } = kit.app.identity
  const { user_id } = await users.create({ data: { account: 'ann@example.com', password: 'a horse' } })
  const actor = { user_id, epoch: 0, proofs: PASSWORD }
  const { id } = await factors.beginTotp(actor, 'ann')
  await t.rejects(factors.addFactor(actor, [id]), { code: 'ErrNotFound', refusal: 'unknown' }, 'before its first right code')
  await proveApp(kit.app.identity.ways, user_id, id)
  await factors.addFactor(actor, [id])
  const mail = await kit.mails.next()
  t.match(mail.subject, /an authenticator app was added/)
  t.equal(mail.link, undefined)
})
