import t from 'tap'
import { hashToken } from '../../lib/crypto/random-token.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { forEachStore } from '../helpers/build.ts'
import { unique } from '../helpers/people.ts'
import { STOLEN, type Victim, createVictim } from '../helpers/undo-people.ts'

const HOUR = 60 * 60_000

/** What a thief does who knows the password, and which of the owner's links the owner then uses: the first one, or the last. */
const SCENES: [name: string, play: (victim: Victim) => Promise<void>, use: 'first' | 'last'][] = [
  ['an identity, and then a first factor; the newest mail is used', async ({ acts, thief }) => { await acts.identity(thief); await acts.factor(thief) }, 'last'],
  ['an identity, and then the address', async ({ acts, thief }) => { await acts.identity(thief); await acts.address(thief) }, 'last'],
  ['an identity; its own mail is used', async ({ acts, thief }) => { await acts.identity(thief) }, 'last'],
  ['two identities; the earlier mail is used', async ({ acts, thief }) => { await acts.identity(thief); await acts.identity(thief) }, 'first'],
  ['two identities; the later mail is used', async ({ acts, thief }) => { await acts.identity(thief); await acts.identity(thief) }, 'last'],
  ['a factor, and others by a proof of it', async ({ acts, thief }) => { await acts.factor(thief); await acts.factor(thief); await acts.passkey(thief) }, 'last'],
  ['a factor, and codes made anew', async ({ acts, thief }) => { await acts.factor(thief); await acts.codes(thief); await acts.factor(thief) }, 'last'],
  ['a passkey, which signs in alone', async ({ acts, thief }) => { await acts.passkey(thief); await acts.identity(thief) }, 'last'],
  ['the address twice', async ({ acts, thief }) => {
    await acts.address(thief)
    thief.mailboxes = new Set([`second-${[...thief.mailboxes][0]!}`, ...thief.mailboxes])
    await acts.address(thief)
    await acts.identity(thief)
  }, 'last'],
  ['the address, a forgotten password at it, and everything else', async ({ acts, thief }) => {
    await acts.address(thief)
    await acts.forgot(thief)
    await acts.identity(thief)
    await acts.factor(thief)
  }, 'last'],
  ['the thief\'s own link is used first', async ({ acts, thief }) => {
    await acts.identity(thief)
    await acts.address(thief)
    await acts.identity(thief)
    await acts.undo(thief)
    await acts.reset(thief)
    await acts.passkey(thief)
  }, 'last'],
  ['thirty acts to fill the list', async ({ acts, thief, read }) => {
    await acts.address(thief)
    for (let count = 0; count < 10; count++) await acts.identity(thief)
    for (let count = 0; count < 10; count++) await acts.passkey(thief)
    for (let count = 0; count < 3; count++) await acts.factor(thief)
    await read()
  }, 'first'],
  ['the owner is locked out by a new password', async ({ acts, thief }) => { await acts.password(thief); await acts.identity(thief) }, 'last']
]

await forEachStore(t, async (t, build) => {
  const kit = await build(t)
  const { accounts, store, users, ways } = kit.app.identity
  const records = store.collection<UserRecord>('users')

  for (const [name, play, use] of SCENES) {
    await t.test(`a thief loses: ${name}`, async (t) => {
      const victim = await createVictim(kit)
      const { owner, acts, read, listWaysOfThief, address, user_id } = victim
      await play(victim)
      t.not((await listWaysOfThief()).length, 0, 'the thief is in')
      t.ok(await acts.undo(owner, owner.undos.at(use === 'first' ? 0 : -1)))
      t.ok(await acts.reset(owner), 'the owner has got a link for a new password')
      t.strictSame(await listWaysOfThief(), [])
      const { email, account, ways: left = {}, undos = [] } = await read()
      t.strictSame({ email: email ?? account, left: Object.keys(left), kinds: undos.map(({ kind }) => kind) }, { email: address, left: [], kinds: [] })
      t.equal(await users.verify(address, STOLEN), null)
      t.equal((await users.verify(address, [...owner.passwords].at(-1)!))?.user_id, user_id)
    })
  }

  await t.test('what there was before stays, with the identities and factors of then; an earlier link is spent with a later one', async (t) => {
    const { owner, thief, acts, read, listWaysOfThief } = await createVictim(kit)
    await acts.identity(owner)
    kit.clock.advance(73 * HOUR)
    await acts.identity(thief)
    await acts.factor(thief)
    const [, first, second] = owner.undos
    t.ok(await acts.undo(owner, second))
    t.notOk(await acts.undo(owner, first))
    t.ok(await acts.reset(owner))
    t.strictSame(Object.keys((await read()).ways ?? {}), [...owner.ways.keys()])
    t.strictSame(await listWaysOfThief(), [])
  })

  await t.test('a mailbox alone never removes an established factor, nor the next one on the days after a new phone', async (t) => {
    const { owner, acts, read } = await createVictim(kit)
    await acts.factor(owner)
    kit.clock.advance(73 * HOUR)
    await acts.factor(owner)
    await acts.codes(owner)
    await acts.identity(owner)
    const [first, identity, ...others] = owner.undos
    t.strictSame(others, [], 'neither the factor nor the codes have a link')
    await t.rejects(accounts.undo(first!), { code: 'ErrTicket' })
    t.match(await accounts.inspectUndo(identity!), { goes: [{ kind: 'upstream' }], stays: { length: 3 } })
    t.ok(await acts.undo(owner, identity))
    t.strictSame(Object.values((await read()).ways ?? {}).map(({ kind }) => kind).sort(), ['recovery', 'totp', 'totp'])
  })

  await t.test('a factor after an administrator\'s reset begins anew: what was added by it goes with it', async (t) => {
    const { owner, thief, acts, read, user_id } = await createVictim(kit)
    await acts.factor(owner)
    kit.clock.advance(73 * HOUR)
    await acts.identity(owner)
    await kit.app.identity.heldFactors.reset(user_id, { user_id: 'admin', isAdmin: true })
    await acts.factor(thief)
    await acts.passkey(thief)
    t.ok(await acts.undo(owner))
    t.strictSame((await read()).ways, undefined)
  })

  await t.test('two links at once: one wins, and the account is the owner\'s', async (t) => {
    const { owner, thief, acts, read, address, listWaysOfThief } = await createVictim(kit)
    await acts.identity(thief)
    await acts.address(thief)
    await acts.passkey(thief)
    const [own, theirs] = [owner.undos.at(-1), thief.undos.at(-1)]
    await Promise.all([acts.undo(owner, own), acts.undo(thief, theirs)])
    await acts.reset(thief)
    if ((await read()).email !== address) await acts.undo(owner, own)
    t.ok(await acts.reset(owner))
    t.strictSame(await listWaysOfThief(), [])
  })

  await t.test('an undo beside the act that it undoes', async (t) => {
    const { owner, thief, acts, read, listWaysOfThief } = await createVictim(kit)
    await acts.identity(thief)
    await Promise.allSettled([acts.undo(owner), acts.identity(thief), acts.passkey(thief)])
    const { ways: left = {} } = await read()
    t.strictSame(Object.keys(left), [])
    t.ok(await acts.reset(owner))
    t.strictSame(await listWaysOfThief(), [])
  })

  await t.test('where another account has the former address, all else happens, and the new link goes to the mailbox of the link', async (t) => {
    const { owner, thief, acts, read, address, user_id } = await createVictim(kit)
    const own = `own-${address}`
    owner.mailboxes = new Set([own])
    await acts.address(owner)
    kit.clock.advance(73 * HOUR)
    await acts.identity(thief)
    await acts.address(thief)
    await users.create({ data: { account: own, password: 'of another person' } })
    t.match(await accounts.inspectUndo(owner.undos.at(-1)!), { taken: own, goes: [{ kind: 'upstream' }] })
    t.ok(await acts.undo(owner))
    const { email, ways: left } = await read()
    t.strictSame({ email, left }, { email: undefined, left: undefined })
    t.ok(await acts.reset(owner))
    t.equal((await users.verify(address, [...owner.passwords].at(-1)!))?.user_id, user_id)
    t.equal((await read()).email, undefined, 'the link has proved nothing')
  })

  await t.test('an administrator who sets an address ends the links of other mailboxes; a release ends those of the released one', async (t) => {
    const admin = { user_id: 'admin', isAdmin: true }
    const { owner, thief, acts, address, user_id, read, collect } = await createVictim(kit)
    await acts.identity(thief)
    await acts.address(thief)
    await acts.identity(thief)
    await users.patch(user_id, { data: { email: address } }, admin)
    await collect()
    t.notOk(await acts.undo(thief), 'the mailbox of the thief')
    t.strictSame((await read()).undos?.map(({ kind }) => kind), ['identity', 'address'])
    await accounts.releaseAddress(user_id, admin)
    t.notOk(await acts.undo(owner))
    t.equal((await read()).undos, undefined)
  })

  await t.test('a full list refuses further acts of a session, and evicts nothing; a change of the address is refused after ten', async (t) => {
    const { owner, thief, acts, user_id, read } = await createVictim(kit)
    await acts.identity(thief)
    const [first] = (await read()).undos!
    for (let count = 0; count < 29; count++) {
      const [id] = Object.keys((await read()).ways!)
      await ways.change(user_id, () => ({ remove: [id!] }))
      await acts.identity(thief)
    }
    t.equal((await read()).undos?.length, 30)
    await ways.change(user_id, (record) => ({ remove: Object.keys(record.ways!) }))
    await t.rejects(acts.identity(thief), { code: 'ErrLimit' })
    await t.rejects(acts.factor(thief), { code: 'ErrLimit' })
    await t.rejects(acts.address(thief), { code: 'ErrLimit' })
    t.equal((await records.get(user_id))?.undos?.[0]?.id, first?.id)
    await accounts.linkIdentity({ user_id, epoch: null }, { kind: 'upstream', upstream: 'corp', key: 'of a provider', material: {} }, 'Corp')
    t.match((await read()).undos, { length: 30, 29: { added: [Object.keys((await read()).ways!)[0]] } }, 'what a provider does joins the last one')
    t.ok(await acts.undo(owner, owner.undos[0]))
    t.equal((await read()).ways, undefined)
  })

  await t.test('a live link of 1158eb3 undoes what a new one does, and a new one what those undo', async (t) => {
    const tickets = store.collection<{ id: string }>('tickets')
    for (const used of ['link', 'factor', 'address'] as const) {
      const { owner, thief, acts, read, address, user_id } = await createVictim(kit)
      await acts.identity(thief)
      await acts.factor(thief)
      await acts.address(thief)
      const { ways: left = {}, undos = [] } = await read()
      const identity = Object.keys(left).find((id) => left[id]!.kind === 'upstream')!
      const [{ at, until } = { at: '', until: '' }] = undos
      const tokens = { link: unique('l'), factor: unique('f'), address: unique('a') }
      // As that release has written it.
      await records.update(user_id, {
        set: {
          address_changes: [{ ticket: hashToken(tokens.address), until, ways: Object.keys(left), email: address }],
          first_factors: [{ ticket: hashToken(tokens.factor), until, ways: [identity], changes: [] }]
        },
        unset: ['undos'],
        increment: { revision: 1 }
      })
      for (const [purpose, token, fields] of [['undo', tokens.address, {}], ['undo-factor', tokens.factor, { address }], ['undo-link', tokens.link, { address, way: identity }]] as const) {
        await tickets.insert({ id: hashToken(token), purpose, holder: `${purpose} ${user_id}`, user_id, mailed: true, created_at: at, expired_at: until, ...fields } as never)
      }
      // A new act, whose mailbox is that of the thief.
      await acts.identity(thief)
      t.match(await accounts.inspectUndo(tokens[used]), { goes: { length: 4 }, stays: [], address }, used)
      t.ok(await acts.undo(owner, tokens[used]))
      t.ok(await acts.reset(owner))
      const { ways: rest, email, undos: others, address_changes: changes, first_factors: factors } = await read()
      t.strictSame([rest, email, others, changes, factors], [undefined, address, undefined, undefined, undefined])
    }
  })

  await t.test('the page after a new password lists the ways that stay, and leads to what its mailbox can undo', async (t) => {
    const { owner, thief, acts, collect, address, user_id, listWaysOfThief } = await createVictim(kit)
    await acts.identity(thief)
    await acts.forgot(owner)
    t.strictSame(await accounts.reviewWays(user_id, 'another@example.com'), { stays: (await accounts.reviewWays(user_id)).stays })
    const { stays, token } = await accounts.reviewWays(user_id, address)
    t.match(stays, [{ kind: 'upstream', upstream: 'corp', at: String }])
    t.ok(await acts.undo(owner, token))
    await collect()
    t.ok(await acts.reset(owner))
    t.strictSame(await listWaysOfThief(), [])
    t.strictSame(await accounts.reviewWays(user_id, address), { stays: [] })
  })
})
