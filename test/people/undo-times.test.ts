import t from 'tap'
import { hashToken } from '../../lib/crypto/random-token.ts'
import { type UserRecord, createUserRecord } from '../../lib/records/user.ts'
import { build, forEachStore } from '../helpers/build.ts'
import { unique } from '../helpers/people.ts'
import { openRules } from '../helpers/services.ts'
import { type Victim, createVictim } from '../helpers/undo-people.ts'

const HOUR = 60 * 60_000
const MINUTE = 60_000
const ADMIN = { user_id: 'admin', isAdmin: true }

const kindsOf = (ways: readonly { kind: string }[]): string[] => ways.map(({ kind }) => kind).sort()

await forEachStore(t, async (t, build, engine) => {
  const kit = await build(t)
  const { accounts, factors, store, users, ways } = kit.app.identity
  const records = store.collection<UserRecord>('users')

  /** The owner has the account, and the thief nothing. */
  async function checkOwned ({ owner, read, address, listWaysOfThief, prove }: Victim): Promise<void> {
    t.strictSame(await listWaysOfThief(), [])
    const { email, account } = await read()
    t.equal(email ?? account, address)
    t.ok(await prove(owner))
  }

  await t.test('another account has the former address, and another one since the mail: the link for a password ends', async (t) => {
    const { owner, thief, acts, address, read, user_id } = await createVictim(kit)
    const own = `own-${address}`
    owner.mailboxes = new Set([own])
    await acts.address(owner)
    kit.clock.advance(73 * HOUR)
    await acts.address(thief)
    const link = owner.undos.at(-1)!
    t.match(await accounts.inspectUndo(link), { address: own, taken: undefined })
    // Of an earlier release: no index names its address.
    const other = await users.create({ data: { account: own, password: 'of another person' } })
    await records.update(other.user_id, { unset: ['addresses'], increment: { revision: 1 } })
    t.match(await accounts.inspectUndo(link), { address: undefined, taken: own })
    t.ok(await acts.undo(owner, link), 'between the page and its button')
    t.equal((await read()).email, undefined, 'the page and the write agree')
    await users.patch(user_id, { data: { email: `${unique('set')}@example.com` } }, ADMIN)
    t.notOk(await acts.reset(owner))
  })

  await t.test('what was begun before an undo ends with it: a session, a prepared way, a change of the address, a forgotten password', async (t) => {
    const victim = await createVictim(kit)
    const { owner, thief, acts, read, prove, collect, user_id, address } = victim
    await acts.identity(thief)
    const { epoch } = await read()
    const actor = { user_id, epoch, proofs: (await prove(thief))! }
    const [prepared] = await ways.prepare(actor, [{ kind: 'passkey', uv: true, key: unique('key'), material: { credential_id: 'x' } }])
    const [mailbox = ''] = thief.mailboxes
    await accounts.changeAddress(user_id, mailbox)
    const sent = await kit.mails.next({ to: mailbox })
    await accounts.forgotPassword(address, { ip: '192.0.2.7' })
    const { token: forgotten = '' } = await kit.mails.next({ to: address })
    // Its mail may come before the undo or after it.
    await accounts.changeAddress(user_id, `late-${mailbox}`)
    t.equal((await read()).epoch, epoch, 'nothing else has ended them')
    await accounts.undo(owner.undos[0]!)
    const late = (await kit.mails.all()).filter(({ to }) => to.startsWith('late-')).map(({ token }) => token!)
    for (const token of [sent.token!, ...late]) await t.rejects(accounts.verifyAddress(token, user_id), { code: 'ErrTicket' })
    await t.rejects(accounts.setPassword(forgotten, 'of the thief'), { code: 'ErrTicket' })
    await t.rejects(factors.addFactor(actor, [prepared!]), { code: 'ErrUnknown' })
    await t.rejects(accounts.linkIdentity(actor, { kind: 'upstream', upstream: 'corp', key: unique('key'), material: {} }, 'Corp'), { code: 'ErrUnknown' })
    await accounts.forgotPassword(address, { ip: '192.0.2.7' })
    await collect()
    t.ok(await acts.reset(owner))
    await checkOwned(victim)
  })

  // What follows is the same on every store.
  if (engine === 'MongoDB') return

  await t.test('a thief who waits for 72 hours keeps what nobody has undone, and the page says so', async (t) => {
    const { owner, thief, acts, read } = await createVictim(kit)
    await acts.identity(thief)
    kit.clock.advance(71 * HOUR)
    await acts.factor(thief)
    const [first, last] = owner.undos
    kit.clock.advance(HOUR)
    await t.rejects(accounts.inspectUndo(first!), { code: 'ErrTicket' })
    await t.rejects(accounts.undo(first!), { code: 'ErrTicket' })
    t.match(await accounts.inspectUndo(last!), { goes: [{ kind: 'totp' }, { kind: 'recovery' }], stays: [{ kind: 'upstream', upstream: 'corp' }] })
    t.ok(await acts.undo(owner, last))
    t.strictSame(kindsOf(Object.values((await read()).ways!)), ['upstream'])
    t.ok(await acts.reset(owner))
    t.match((await accounts.reviewWays((await read()).id)).stays, [{ kind: 'upstream' }], 'as does the page of the new password')
  })

  await t.test('an entry that ends while the person reads the page: the answer says what stays', async (t) => {
    const { owner, thief, acts } = await createVictim(kit)
    await acts.identity(thief)
    kit.clock.advance(HOUR)
    await acts.passkey(thief)
    kit.clock.advance(71 * HOUR - MINUTE)
    const link = owner.undos.at(-1)!
    t.strictSame(kindsOf((await accounts.inspectUndo(link)).goes), ['passkey', 'upstream'])
    kit.clock.advance(2 * MINUTE)
    t.match(await accounts.undo(link), { stays: [{ kind: 'upstream' }] })
  })

  await t.test('a link of another mailbox, and one of 1158eb3 for an identity that is gone, are not good', async (t) => {
    const { owner, thief, acts, read, user_id, address } = await createVictim(kit)
    const tickets = store.collection<{ id: string }>('tickets')
    await acts.identity(thief)
    const [entry] = (await read()).undos!
    const [way] = Object.keys((await read()).ways!)
    const write = async (token: string, purpose: string, fields: object) => (
      await tickets.insert({ id: hashToken(token), purpose, holder: `${purpose} ${user_id}`, user_id, mailed: true, created_at: entry!.at, expired_at: entry!.until, ...fields } as never))
    await write('of another mailbox', 'undo', { of: entry!.id, address: 'another@example.com' })
    await write('of the identity', 'undo-link', { way, address })
    await t.rejects(accounts.undo('of another mailbox'), { code: 'ErrTicket' })
    t.ok(await accounts.inspectUndo('of the identity'))
    await ways.change(user_id, () => ({ remove: [way!] }))
    await t.rejects(accounts.undo('of the identity'), { code: 'ErrTicket' })
    t.ok(await acts.undo(owner), 'the link of this release goes on: it ends the password')
  })

  await t.test('a link works once, also that of a later mailbox; no identity that it took joins by itself', async (t) => {
    const { owner, thief, acts, read, user_id } = await createVictim(kit)
    await acts.address(thief)
    await acts.identity(thief)
    const [link] = thief.undos
    await records.update(user_id, { set: { enrol_ticket: 'mailed to the thief' }, increment: { revision: 1 } })
    t.ok(await acts.undo(thief, link))
    t.match(await read(), { link_undone: true, enrol_ticket: undefined, undos: { length: 1, 0: { kind: 'address' } } })
    t.notOk(await acts.undo(thief, link))
    t.ok(await acts.undo(owner))
  })

  await t.test('the first password of somebody who was invited has a link; it opens no way, so no other page leads to it', async (t) => {
    const { owner, acts, read, collect, user_id, address } = await createVictim(kit)
    await records.update(user_id, { set: { password: '' }, increment: { revision: 1 } })
    await users.patchOwn(user_id, { data: { password: 'of the thief' } })
    await collect()
    t.strictSame((await read()).undos?.map(({ kind }) => kind), ['password'])
    t.strictSame(await accounts.reviewWays(user_id, address), { stays: [] })
    t.ok(await acts.undo(owner))
    t.equal(await users.verify(address, 'of the thief'), null)
  })

  await t.test('a link is good until its last millisecond', async (t) => {
    const { owner, thief, acts } = await createVictim(kit)
    await acts.identity(thief)
    kit.clock.advance(72 * HOUR - 1)
    t.ok(await accounts.inspectUndo(owner.undos[0]!))
    kit.clock.advance(1)
    t.notOk(await acts.undo(owner))
  })

  await t.test('what a thief does between the page and its button goes too', async (t) => {
    const victim = await createVictim(kit)
    const { owner, thief, acts } = victim
    await acts.identity(thief)
    const link = owner.undos[0]!
    t.strictSame(kindsOf((await accounts.inspectUndo(link)).goes), ['upstream'])
    await acts.passkey(thief)
    await acts.address(thief)
    await acts.identity(thief)
    t.ok(await acts.undo(owner, link))
    t.ok(await acts.reset(owner))
    await checkOwned(victim)
  })

  for (const [name, act] of [
    ['releases the address', async ({ user_id }) => { await accounts.releaseAddress(user_id, ADMIN) }],
    ['sets another address', async ({ user_id }) => { await users.patch(user_id, { data: { email: `${unique('new')}@example.com` } }, ADMIN) }]
  ] as [string, (victim: Victim) => Promise<void>][]) {
    await t.test(`an administrator ${name} between the page and its button: the mailbox has nothing to undo any more`, async (t) => {
      const victim = await createVictim(kit)
      const { owner, thief, acts, read } = victim
      await acts.identity(thief)
      await acts.passkey(thief)
      const [first, last] = owner.undos
      t.ok(await accounts.inspectUndo(last!))
      await act(victim)
      const { epoch } = await read()
      for (const link of [last!, first!]) await t.rejects(accounts.undo(link), { code: 'ErrTicket' })
      t.match(await read(), { epoch, undos: undefined })
    })

    // The mailbox may be in the wrong hands: that is why the administrator does it.
    await t.test(`an administrator ${name} while the mail after an undo waits: it is not sent`, async (t) => {
      const victim = await createVictim(kit)
      const { owner, thief, acts, collect, read } = victim
      await acts.identity(thief)
      await accounts.undo(owner.undos[0]!)
      await act(victim)
      await collect()
      t.strictSame(owner.resets, [])
      t.equal((await read()).password, '')
    })
  }

  await t.test('the mail about an act that is sent after its undo has no link', async (t) => {
    const { owner, thief, acts, user_id, read, prove } = await createVictim(kit)
    await acts.identity(thief)
    const actor = { user_id, epoch: (await read()).epoch, proofs: (await prove(thief))! }
    const key = unique('key')
    await accounts.linkIdentity(actor, { kind: 'upstream', upstream: 'corp', key, material: { issuer: 'https://corp.example', subject: key } }, 'Corp')
    await accounts.undo(owner.undos[0]!)
    const mails = (await kit.mails.all()).filter(({ to }) => owner.mailboxes.has(to))
    t.strictSame(mails.map(({ link }) => link?.includes('/undo?')), [undefined, false])
    t.match(mails[0]?.subject, /Corp was connected/)
  })
})

t.test('with the option undoFactors, of another length than the other links', async (t) => {
  const kit = await build(t, { undoFactors: 200 })
  const { accounts } = kit.app.identity

  await t.test('a link that lasts longer takes what came after it, also where the link of that has ended', async (t) => {
    const { owner, thief, acts, read } = await createVictim(kit)
    await acts.factor(thief)
    await acts.identity(thief)
    const [factor, identity] = owner.undos
    kit.clock.advance(100 * HOUR)
    t.notOk(await acts.undo(owner, identity))
    t.strictSame(kindsOf((await accounts.inspectUndo(factor!)).goes), ['recovery', 'totp', 'upstream'])
    t.ok(await acts.undo(owner, factor))
    t.equal((await read()).ways, undefined)
  })

  await t.test('the end of the first link makes the next one that works the earliest', async (t) => {
    const { owner, thief, acts, read } = await createVictim(kit)
    await acts.identity(thief)
    await acts.factor(thief)
    kit.clock.advance(100 * HOUR)
    const [, factor] = owner.undos
    t.match(await accounts.inspectUndo(factor!), { stays: [{ kind: 'upstream' }] })
    t.ok(await acts.undo(owner, factor))
    t.strictSame(kindsOf(Object.values((await read()).ways!)), ['upstream'])
  })
})

t.test('with undoFactors: 0, a factor goes with the act before it', async (t) => {
  const kit = await build(t, { undoFactors: 0 })
  const { owner, thief, acts, read } = await createVictim(kit)
  await acts.factor(thief)
  t.strictSame([owner.undos, (await read()).undos], [[], undefined], 'and with none if there is none')
  const victim = await createVictim(kit)
  await victim.acts.identity(victim.thief)
  await victim.acts.factor(victim.thief)
  t.equal(victim.owner.undos.length, 1)
  t.ok(await victim.acts.undo(victim.owner))
  t.equal((await victim.read()).ways, undefined)
})

t.test('another account takes the former address while the undo is written: all else happens, and the mailbox of the link gets the next one', async (t) => {
  const taken: (() => Promise<unknown>)[] = []
  const { records, tickets, openAccounts, now } = await openRules(t, {
    around: ({ collection, method }, run) => collection === 'users' && method === 'update' && taken.length > 0 ? taken.pop()!().then(run) : run()
  })
  const [own, stolen] = ['ann@corp.example', 'thief@corp.example']
  const [time, until] = [now(), now() + HOUR].map((at) => new Date(at).toISOString()) as [string, string]
  const common = { roles: {}, password: 'strong stolen', operator_password: false, name: '', info: {} }
  await records.users.insert({
    ...createUserRecord(now(), { ...common, id: 'ann', account: 'ann', email: stolen, email_verified_at: time }),
    undos: [{ id: 'moved', at: time, until, kind: 'address', before: { email: own, email_verified_at: time, email_verified_by: 'mail' } }]
  })
  const token = await tickets.issue({ purpose: 'undo', user_id: 'ann', of: 'moved', address: own, mailed: true }, until)
  taken.push(async () => await records.users.insert(createUserRecord(now(), { ...common, id: 'other', account: own })))
  await openAccounts({ mail: { local: true, send: async () => {} } }).undo(token)
  const written = await records.users.get('ann')
  t.match(written, { password: '', epoch: 1, email: undefined, undos: undefined })
  t.match(Object.entries(written!).find(([field]) => field.startsWith('event_notice:'))?.[1], [{ kind: 'undone', to: own, former: '' }, { kind: 'address-taken-back', to: stolen }])
})
