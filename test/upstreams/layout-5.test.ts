import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Document } from '../../lib/store/port.ts'
import { createMongoDatabase } from '../helpers/mongo-database.ts'
import { IS_ELSEWHERE, MONGODB_URL } from '../helpers/mongodb.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Claimed } from '../../lib/upstreams/claims.ts'
import type { GivenUpstream } from '../../schemas/upstream.ts'
import { type Harness, createFile, startHarness } from '../oidc/harness.ts'
import { enter } from '../pages/visits.ts'
import { readError } from './through.ts'

t.setTimeout(180_000)

const OTTO = { account: 'otto@corp.example', password: 'a long password' }
const UPSTREAMS: GivenUpstream[] = [
  { id: 'corp', kind: 'oidc', issuer: 'https://login.corp.example', clientId: 'c', clientSecret: 's', emails: 'verified', domains: ['corp.example'], only: true },
  { id: 'hub', kind: 'github', clientId: 'c', clientSecret: 's' }
]

/** A copy of the file. */
function copyFile (t: Test): string {
  const database = createFile(t)
  const file = new DatabaseSync(database.replace('sqlite:', ''))
  file.exec(readFileSync(new URL('../fixtures/store-layout-5.sql', import.meta.url), 'utf8'))
  file.close()
  return database
}

/** The documents of the file in a database of the same layout, which MongoDB stores in the same form since layout 2. */
async function copyToMongo (t: Test): Promise<string> {
  const database = createMongoDatabase(t, MONGODB_URL!)
  const store = await openStore(database, { collections: COLLECTIONS, layout: { version: 5, oldestReader: 5 } })
  const file = new DatabaseSync(copyFile(t).replace('sqlite:', ''), { readOnly: true })
  for (const name of ['users', 'credentials', 'meta']) {
    const documents = file.prepare(`SELECT doc FROM "${name}"`).all().map(({ doc }) => JSON.parse(String(doc)) as Document)
    await store.collection(name).insertMany(documents)
  }
  file.close()
  await store.close()
  return database
}

const ENGINES: [name: string, copy: (t: Test) => Promise<string> | string, skip: string | false][] = [
  ['sqlite', copyFile, IS_ELSEWHERE && 'another run has these'],
  ['mongodb', copyToMongo, MONGODB_URL === undefined && 'MONGODB_URL is not set']
]

/** The copy, opened a day after its last change. */
async function open (t: Test, database: string, upstreams: GivenUpstream[]): Promise<Harness & { read: (account: string) => Promise<UserRecord> }> {
  const time = '2026-11-26T08:00:00.000Z'
  // No process of that release is waited for.
  const store = await openStore(database, { collections: COLLECTIONS, now: () => Date.parse(time), timeout: 1_000 })
  t.teardown(() => store.close())
  const harness = await startHarness(t, { store, time, ...(upstreams.length > 0 && { upstreams }) })
  const users = harness.kit.app.identity.store.collection<UserRecord>('users')
  return { ...harness, read: async (account) => (await users.getBy('account', account))! }
}

for (const [name, copy, skip] of ENGINES) {
  t.test(`a database of layout 5, as its release wrote it, opens with its identities, and trusts no address that was only seen, on ${name}`, { skip }, async (t) => {
    const harness = await open(t, await copy(t), UPSTREAMS)
    const { kit, read } = harness
    t.match((await kit.app.identity.store.state.read()).state, { version: 7, oldestReader: 6 })
    const { identities, require, findOnly } = kit.app.identity.upstreams!
    const settle = async (id: string, subject: string, address: Pick<Claimed, 'address' | 'seen'>) => {
      const issuer = id === 'corp' ? 'https://login.corp.example' : 'https://github.com'
      return await identities.settle({ upstream: require(id), claimed: { issuer, subject, name: '', both: false, ...address } })
    }

    await t.test('whose identity it was, signs in by it', async (t) => {
      for (const [account, id, subject, address] of [
        ['olga@corp.example', 'corp', 'olga', { address: 'olga@corp.example' }],
        ['sales@shop.example', 'hub', '1001', { seen: 'sales@shop.example' }],
        ['ann@shop.example', 'hub', '1002', { seen: 'ann@shop.example' }]
      ] as const) t.match(await settle(id, subject, address), { proved: { user_id: (await read(account)).id, kind: 'upstream' } }, account)
    })

    await t.test('an address keeps the proof of who decides about it, or of a mail, and loses that of who has seen it', async (t) => {
      t.match(await read('olga@corp.example'), { email: 'olga@corp.example', email_verified_at: String, email_verified_by: 'corp' })
      t.match(await read('ann@shop.example'), { email: 'ann@shop.example', email_verified_at: String, email_verified_by: undefined })
      const sales = await read('sales@shop.example')
      for (const field of ['email', 'email_verified_at', 'email_verified_by']) t.notOk(field in sales, field)
      t.strictSame(sales.addresses, ['sales@shop.example'])
    })

    await t.test('the next owner of an address gets no account by it', async (t) => {
      await t.rejects(settle('corp', 'olga the second', { address: 'olga@corp.example' }), { message: 'sign-in with an upstream: taken' })
      for (const account of ['sales@shop.example', 'ann@shop.example']) {
        t.match(await settle('hub', '1003', { seen: account }), { confirm: { user_id: (await read(account)).id, isOther: true } }, account)
      }
    })

    await t.test('who has the domain in their name only, is held by the provider of the domain', async (t) => {
      const otto = await read(OTTO.account)
      t.equal(findOnly(otto), 'corp')
      t.match(await settle('corp', 'otto', { seen: OTTO.account }), { confirm: { user_id: otto.id } }, 'never by an address that was only seen')
      t.match(readError(await (await harness.browser().open('/account')).submit({ account: OTTO.account, password: OTTO.password, direct: 'yes' })), /with login\.corp\.example only/)
      t.match(await settle('corp', 'otto', { address: OTTO.account }), { proved: { user_id: otto.id } })
      const joined = await read(OTTO.account)
      t.match(joined, { email: OTTO.account, email_verified_by: 'corp', upstreams: ' corp ' })
      t.notOk(joined.password, 'the password of the operator is gone')
    })
  })

  t.test(`without the provider that holds them, the same password signs in, on ${name}`, { skip }, async (t) => {
    const harness = await open(t, await copy(t), [])
    t.match((await enter(harness, '/account', harness.browser(), OTTO)).title, /Profile/)
  })
}
