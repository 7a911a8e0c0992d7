import t from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Store } from '../../lib/store/port.ts'
import { toWayKey } from '../../lib/way.ts'
import type { GivenUpstream } from '../../schemas/upstream.ts'
import type { StartOptions } from '../../testing/index.ts'
import { importLines } from '../helpers/import.ts'
import { type Harness, createFile, eachStore, startHarness } from '../oidc/harness.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import { startGithub } from './github.ts'

t.setTimeout(180_000)

const CREATED = '2026-01-01T00:00:00.000Z'
const AT_ONCE = '2026-01-01T00:00:02.000Z'
const LATER = '2026-03-01T00:00:00.000Z'

const work: GivenUpstream = { id: 'work', kind: 'oidc', issuer: 'https://work.example', clientId: 'c', clientSecret: 's', emails: 'verified', domains: ['corp.example'], only: true }

/** An account as an earlier layout has it, made by a first sign-in with an upstream. */
function makeEarlier (id: string, upstream: string, fields: Partial<UserRecord> = {}): UserRecord {
  const account = fields.account ?? `${id}@corp.example`
  const key = toWayKey('upstream', upstream, id)
  return {
    id,
    account,
    created_at: CREATED,
    modified_at: CREATED,
    name: '',
    info: {},
    roles: {},
    email: account,
    email_verified_at: AT_ONCE,
    addresses: [account],
    ways: { [`way-${id}`]: { kind: 'upstream', upstream, key, at: AT_ONCE } },
    way_keys: [key],
    upstreams: ` ${upstream} `,
    epoch: 0,
    revision: 0,
    ...fields
  }
}

/** Makes the store look as the release before has left it. */
async function makeFormer (store: Store, records: readonly UserRecord[]): Promise<void> {
  await store.collection<UserRecord>('users').insertMany([...records])
  const found = await store.state.read()
  t.ok(await store.state.change(found, { version: 5, oldestReader: 5, addresses_judged: undefined }))
}

/** Closes a service whose database the next one opens, which makes a user of its own. */
async function end ({ kit, user }: Harness): Promise<void> {
  await kit.app.identity.store.collection('users').delete(user.user_id)
  await kit.close()
}

const RECORDS = [
  makeEarlier('leaver', 'github', { account: 'leaver@home.example' }),
  makeEarlier('gone', 'no-longer-configured'),
  makeEarlier('worker', 'work'),
  makeEarlier('changed', 'github', { email_verified_at: LATER }),
  makeEarlier('moved', 'github', {
    email: 'moved@home.example',
    email_verified_at: LATER,
    addresses: ['moved@corp.example', 'moved@home.example'],
    address_changes: [{ ticket: 't', until: '2999-01-01T00:00:00.000Z', email: 'moved@corp.example', email_verified_at: AT_ONCE }]
  }),
  makeEarlier('linked', 'github', { ways: { 'way-linked': { kind: 'upstream', upstream: 'github', key: 'k', at: LATER } }, way_keys: ['k'] }),
  makeEarlier('imported', 'github', { imported_source: 'old' }),
  makeEarlier('both', 'work', { ways: { 'way-both': { kind: 'upstream', upstream: 'work', key: 'k1', at: AT_ONCE }, 'way-both-2': { kind: 'upstream', upstream: 'github', key: 'k2', at: AT_ONCE } }, way_keys: ['k1', 'k2'] })
]

const EXPECTED: Record<string, Partial<UserRecord>> = {
  leaver: { email: undefined, email_verified_at: undefined, addresses: ['leaver@home.example'], account: 'leaver@home.example' },
  gone: { email: undefined, email_verified_at: undefined },
  worker: { email: 'worker@corp.example', email_verified_at: AT_ONCE, email_verified_by: 'work' },
  changed: { email_verified_at: LATER, email_verified_by: undefined },
  moved: { email: 'moved@home.example', email_verified_at: LATER },
  linked: { email_verified_at: AT_ONCE },
  imported: { email_verified_at: AT_ONCE },
  both: { email: undefined, email_verified_at: undefined }
}

const ENGINES: [string, string | undefined, (t: Tap) => StartOptions][] = [
  ['sqlite', undefined, (t) => ({ database: createFile(t) })],
  ['mongodb', MONGODB_URL === undefined ? 'MONGODB_URL is not set' : undefined, (t) => ({ database: reuseMongoDatabase(t, MONGODB_URL!) })]
]
type Tap = Parameters<Parameters<typeof eachStore>[2]>[0]

for (const [name, skip, place] of ENGINES) {
  t.test(`addresses of a database of the layout before, on ${name}`, skip === undefined ? {} : { skip }, async (t) => {
    const options = { ...place(t), secretKey: Buffer.alloc(32, 7).toString('base64'), signUp: true, storeTimeout: 1_000 }
    const github = await startGithub(t)
    const before = await startHarness(t, options)
    await before.kit.app.identity.store.collection('users').delete(before.user.user_id)
    await makeFormer(before.kit.app.identity.store, RECORDS)
    await before.kit.close()
    const start = async (upstreams: GivenUpstream[]): Promise<Harness> => await startHarness(t, { ...options, ...(upstreams.length > 0 && { upstreams }) })
    const read = async ({ kit }: Harness, id: string) => (await kit.app.identity.store.collection<UserRecord>('users').get(id))!

    const command = await start([])
    t.match(await read(command, 'leaver'), { email_verified_at: AT_ONCE }, 'a start without upstreams does not know them, and judges nothing')
    t.match((await command.kit.app.identity.store.state.read()).state, { version: 7, oldestReader: 6, addresses_judged: undefined })
    await end(command)

    const harness = await start([github.settings, work])
    const { kit, browser } = harness
    for (const [id, expected] of Object.entries(EXPECTED)) {
      const user = await read(harness, id)
      t.match(user, expected, id)
      if (expected.email_verified_at === undefined) t.notOk('email' in user, id)
    }
    t.notOk('email_verified_at' in (await read(harness, 'moved')).address_changes![0]!, 'an undo does not bring the proof back')
    t.equal(kit.app.identity.upstreams!.findOnly(await read(harness, 'worker')), 'work', 'whom an authority has proved stays under only')
    t.equal(kit.app.identity.upstreams!.findOnly(await read(harness, 'gone')), 'work', 'and so does whose address is unproved now, by the name')

    // The present owner of the mailbox proves it, and the former one has no way in any more.
    github.says(1, 'leaver@home.example')
    const users = kit.app.identity.store.collection<UserRecord>('users')
    const { settings: { issuer } } = github
    await users.update('leaver', { set: { ways: { 'way-leaver': { kind: 'upstream', upstream: 'github', key: toWayKey('upstream', issuer!, '1'), at: AT_ONCE } }, way_keys: [toWayKey('upstream', issuer!, '1')] }, increment: { revision: 1 } })
    await kit.app.identity.store.collection('credentials').insert({ id: 'way-leaver', user_id: 'leaver', way: { kind: 'upstream', upstream: 'github', key: toWayKey('upstream', issuer!, '1') }, material: { issuer: issuer!, subject: '1' }, created_at: AT_ONCE, revision: 0 } as never)
    t.match((await github.enter(browser())).title, /Profile/, 'until then the former one has')
    await kit.app.identity.accounts.signUp('leaver@home.example', { ip: '192.0.2.1' })
    const { link, subject } = await kit.mails.next({ to: 'leaver@home.example' })
    t.match(subject, /you already have an account/)
    await (await browser().open(link!)).submit({ password: 'a horse of mine' })
    const hers = await read(harness, 'leaver')
    t.match(hers, { email: 'leaver@home.example', email_verified_by: 'mail', ways: undefined, way_keys: undefined, upstreams: undefined })
    t.equal(await kit.app.identity.store.collection('credentials').get('way-leaver'), null)
    // The service before may have kept its right to publish, which ends by the clock.
    kit.clock.advance(10_000)
    t.strictSame((await kit.events.list({ user: 'leaver' })).map(({ type }) => type).filter((type) => type !== 'sign_in.succeeded' && type !== 'mail.sent').sort(), ['identity.unlinked', 'user.password_reset', 'user.verified'])
    t.match((await kit.mails.all()).map((mail) => mail.subject).sort(), [/a sign-in method was removed/, /your account has a password now/])
    const tab = browser()
    t.match((await github.enter(tab)).text, /An account with your email address already exists/)
    t.match((await tab.open('/account')).title, /Sign in/)

    t.equal((await read(harness, 'worker')).revision, 1)
    await end(harness)
    const again = await start([github.settings, work])
    t.equal((await read(again, 'worker')).revision, 1, 'they are judged once')
  })
}

eachStore(t, 'an export of the layout before', async (t, start) => {
  const github = await startGithub(t)
  const { kit } = await start({ signUp: true, upstreams: [github.settings, work] })
  const users = kit.app.identity.store.collection<UserRecord>('users')
  const toLine = (id: string, upstream: string, at: string) => ({
    format: 'fastify-identity/user/1',
    id,
    account: `${id}@corp.example`,
    email: `${id}@corp.example`,
    email_verified: true,
    created_at: CREATED,
    kept: { modified_at: CREATED, email_verified_at: at, ways: [{ id: `way0${id}`, kind: 'upstream', upstream, key: 'A'.repeat(43), at: AT_ONCE, created_at: AT_ONCE, material: { issuer: upstream, subject: id } }] }
  })
  const { verdicts } = await importLines(kit.app.identity, [toLine('one', 'github', AT_ONCE), toLine('two', 'work', AT_ONCE), toLine('three', 'github', LATER)], { kept: true })
  t.match(verdicts, [{ result: 'created', dropped: ['email_verified'] }, { result: 'created' }, { result: 'created' }])
  const one = (await users.get('one'))!
  t.match(one, { account: 'one@corp.example', addresses: ['one@corp.example'], upstreams: ' github ' })
  t.notOk('email' in one || 'email_verified_at' in one)
  t.match(await users.get('two'), { email: 'two@corp.example', email_verified_by: 'work' })
  t.match(await users.get('three'), { email: 'three@corp.example', email_verified_by: 'import' })
  const bad = toLine('four', 'work', AT_ONCE)
  const { email_verified_at: _at, ...kept } = bad.kept
  const { email_verified: _verified, ...line } = bad
  t.match((await importLines(kit.app.identity, [{ ...line, kept: { ...kept, email_verified_by: 'work' } }], { kept: true })).verdicts, [{ result: 'refused', field: 'kept.email_verified_by' }])
  t.match((await importLines(kit.app.identity, [{ ...bad, account: 'five', id: 'five', email: undefined }].map((one) => JSON.parse(JSON.stringify(one)) as object), { kept: true })).verdicts, [{ result: 'refused', field: 'email' }])
})
