import t from 'tap'
import { OPERATOR } from '../../cli/command.ts'
import { type InviteOptions, inviteImported } from '../../lib/import/invite-imported.ts'
import { type UserRecord, createUserRecord } from '../../lib/records/user.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { ImportLine } from '../../schemas/import.ts'
import { type TestKit, startIdentity } from '../../testing/index.ts'
import { forEachStore } from '../helpers/build.ts'
import { BCRYPT, importLines } from '../helpers/import.ts'
import { callAs, signIn, unique } from '../helpers/people.ts'
import { wrapStore } from '../helpers/wrap-store.ts'

/** Mails a minute at which nobody waits. */
const FAST = { perMinute: 6_000_000 }

/** Imports people. @returns their ids by the names of the lines */
async function bringIn (kit: TestKit, source: string, lines: Record<string, Partial<ImportLine>>): Promise<Record<string, string>> {
  const { verdicts } = await importLines(kit.app.identity, Object.values(lines), { source, trustEmails: true, allowRoles: true })
  return Object.fromEntries(Object.keys(lines).map((name, index) => {
    const { user_id, reason } = verdicts[index]!
    if (user_id === undefined) throw new Error(`${name}: ${reason}`)
    return [name, user_id]
  }))
}

async function invite (kit: TestKit, source: string, options: InviteOptions = FAST): Promise<Record<string, string>> {
  const all = await Array.fromAsync(kit.app.identity.imports.inviteImported(source, OPERATOR, options))
  return Object.fromEntries(all.map(({ user_id, result, reason }) => [user_id, reason ?? result]))
}

const address = (name: string) => `${unique(name)}@example.com`

await forEachStore(t, async (t, build) => {
  const kit = await build(t, { upstream: {}, oidc: { issuer: 'https://id.example' } })
  /** To whom mails were sent since the last call. */
  const listMailed = async (): Promise<string[]> => (await kit.mails.all()).map(({ to }) => to).sort()

  t.test('who has no way to sign in is invited, and nobody else', async (t) => {
    const source = unique('source')
    const expired_at = new Date(kit.clock.now() + 1_000).toISOString()
    const [mailed, proved, app, bossy] = ['mailed', 'proved', 'app', 'bossy'].map(address) as [string, string, string, string]
    const name = unique('name')
    const ids = await bringIn(kit, source, {
      mailed: { account: mailed, email_verified: true },
      proved: { account: name, email: proved, email_verified: true },
      unproved: { account: address('unproved') },
      nameless: { account: unique('nameless') },
      password: { account: address('password'), password: { hash: BCRYPT } },
      identity: { account: address('identity'), identities: [{ issuer: kit.upstream.issuer, subject: unique('subject') }] },
      stranger: { account: address('stranger'), identities: [{ issuer: 'https://elsewhere.example', subject: unique('subject') }] },
      app: { account: app, totp: [{ secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' }] },
      disabled: { account: address('disabled'), disabled: true },
      expired: { account: address('expired'), expired_at },
      bossy: { account: bossy, roles: { admin: true } }
    })
    kit.clock.advance(2_000)
    const other = await bringIn(kit, unique('other'), { other: { account: address('other') } })
    const { user_id: own } = await signIn(kit, { user: unique('own') })
    const results = await invite(kit, source)
    const named = Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, results[id]]))
    t.strictSame(named, {
      mailed: 'invited',
      proved: 'invited',
      unproved: 'invited',
      nameless: 'has no address',
      password: 'has a sign-in method',
      identity: 'has a sign-in method',
      stranger: 'invited',
      app: 'invited',
      disabled: 'is disabled or has expired',
      expired: 'is disabled or has expired',
      bossy: 'invited'
    })
    t.equal(Object.keys(results).length, Object.keys(ids).length, 'people of no other source')
    t.notOk(results[other['other']!] ?? results[own])
    const mails = await listMailed()
    t.equal(mails.length, 6)
    for (const to of [mailed, proved, app, bossy]) t.ok(mails.includes(to), to)
    t.strictSame(Object.values(await invite(kit, source)).filter((result) => result === 'invited'), [], 'nobody is invited twice')
    t.strictSame(await listMailed(), [])
  })

  t.test('who has used a link, or got a password, is not invited; the link of an invitation sets a password', async (t) => {
    const source = unique('source')
    const [first, second, third] = ['first', 'second', 'third'].map(address) as [string, string, string]
    const ids = await bringIn(kit, source, { first: { account: first }, second: { account: second }, third: { account: third } })
    const admin = await signIn(kit, { roles: ['admin'] })
    t.equal((await admin.patch(`/user/${ids['second']}`, { data: { password: 'a new password' } })).status, 204)
    t.equal((await callAs(kit).post('/auth/forgot', { data: { account: third } })).status, 204)
    const forgot = await kit.mails.next({ to: third })
    t.equal((await callAs(kit).post('/auth/reset', { data: { token: forgot.token, password: 'a new password' } })).status, 204)
    t.strictSame(await invite(kit, source), { [ids['first']!]: 'invited', [ids['second']!]: 'has a sign-in method', [ids['third']!]: 'has a sign-in method' })
    const { token } = await kit.mails.next({ to: first })
    t.equal((await callAs(kit).post('/auth/reset', { data: { token, password: 'a new password' } })).status, 204)
    t.match(await kit.app.identity.users.verify(first, 'a new password'), { user_id: ids['first'] })
    t.strictSame(new Set(Object.values(await invite(kit, source))), new Set(['has a sign-in method']))
  })

  t.test('a call that ends midway is gone on with: everybody gets one mail', async (t) => {
    const source = unique('source')
    const accounts = Array.from({ length: 6 }, () => address('person'))
    const ids = await bringIn(kit, source, Object.fromEntries(accounts.map((account) => [account, { account }])))
    await listMailed()
    // A process that is killed reads no further.
    let invited = 0
    for await (const { result } of kit.app.identity.imports.inviteImported(source, OPERATOR, FAST)) {
      if (result === 'invited' && ++invited === 2) break
    }
    const ending = new AbortController()
    await t.rejects(async () => {
      for await (const { result } of kit.app.identity.imports.inviteImported(source, OPERATOR, { ...FAST, signal: ending.signal })) if (result === 'invited') ending.abort()
    }, { name: 'AbortError' })
    const rest = await invite(kit, source)
    t.equal(Object.values(rest).filter((result) => result === 'invited').length, 3)
    t.equal(Object.values(rest).filter((result) => result === 'was invited').length, 3)
    t.strictSame(await listMailed(), [...accounts].sort())
    const users = kit.app.identity.store.collection<UserRecord>('users')
    for (const id of Object.values(ids)) t.ok((await users.get(id))!.invited_at)
  })

  t.test('a person who gets a password between the list and the mail is not invited', async (t) => {
    const source = unique('source')
    const [one, two] = [address('one'), address('two')]
    const ids = await bringIn(kit, source, { one: { account: one }, two: { account: two } })
    const admin = await signIn(kit, { roles: ['admin'] })
    const results: Record<string, string> = {}
    for await (const { user_id, result, reason } of kit.app.identity.imports.inviteImported(source, OPERATOR, FAST)) {
      results[user_id] = reason ?? result
      const others = Object.values(ids).filter((id) => results[id] === undefined)
      for (const id of others) await admin.patch(`/user/${id}`, { data: { password: 'a new password' } })
    }
    const [first, second] = Object.values(results)
    t.equal(first, 'invited')
    t.match(second, /without a sign-in method/)
  })
})

t.test('a process that dies while it invites somebody neither forgets them nor mails them twice', async (t) => {
  const inner = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => inner.close())
  let dies: 'before' | 'after' | undefined
  const store = wrapStore(inner, ({ collection, method }, run) => {
    if (dies === undefined || collection !== 'users' || method !== 'update') return run()
    const written = dies === 'after' ? run() as Promise<unknown> : Promise.resolve()
    return written.then(() => { throw new Error('killed') })
  })
  const kit = await startIdentity({ t, store, oidc: { issuer: 'https://id.example' } })
  for (const [when, mails] of [['before', 0], ['after', 1]] as const) {
    const account = address(when)
    await bringIn(kit, when, { person: { account } })
    let sent = 0
    const count = async () => {
      sent += (await kit.mails.all()).filter(({ to }) => to === account).length
      return sent
    }
    dies = when
    await t.rejects(invite(kit, when), { message: 'killed' })
    dies = undefined
    t.equal(await count(), mails, `killed ${when} the write: the mail is part of it`)
    await invite(kit, when)
    kit.clock.advance(61_000)
    await kit.flush()
    t.equal(await count(), 1, `killed ${when} the write: after the next call`)
  }
})

t.test('mails go out at the pace that was asked for', async (t) => {
  const store = await openStore('sqlite::memory:', { collections: COLLECTIONS, now: Date.now })
  t.teardown(() => store.close())
  for (let number = 0; number < 4; number++) {
    await store.collection<UserRecord>('users').insert({ ...createUserRecord(Date.now(), { account: `person${number}`, roles: {}, name: '', info: {} }), imported_source: 'old' })
  }
  const asked: string[] = []
  const invite = async (user_id: string) => {
    asked.push(user_id)
    return asked.length !== 2
  }
  const waits: number[] = []
  const wait = async (time: number) => { waits.push(time) }
  const parts = { store, now: Date.now, invite, hasWayIn: async () => false }
  await Array.fromAsync(inviteImported(parts, 'old', OPERATOR, { wait }))
  t.equal(asked.length, 4)
  t.strictSame(waits, [1_000, 1_000, 1_000], 'sixty a minute by default, and no pause after somebody without a mail')
  waits.length = 0
  await Array.fromAsync(inviteImported(parts, 'old', OPERATOR, { perMinute: 5, wait }))
  t.strictSame(new Set(waits), new Set([12_000]))
})
