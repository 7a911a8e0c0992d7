import { DatabaseSync } from 'node:sqlite'
import { writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import { DEFAULT_ROLE_NAMES as roles } from '../../lib/roles.ts'
import type { Json } from '../../lib/store/port.ts'
import { readAside } from '../../lib/store/read-aside.ts'
import { LAYOUT } from '../../lib/store/state.ts'
import { countHeld } from '../../lib/upstreams/count-held.ts'
import type { Upstream } from '../../schemas/upstream.ts'
import { startIdentity } from '../../testing/index.ts'
import { createCli } from '../helpers/cli.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'

const CORP: Upstream = { id: 'corp', kind: 'oidc', issuer: 'https://corp.example', emails: 'verified', domains: ['corp.example'], only: true, clientId: 'c', clientSecret: 's', create: false, link: 'confirm', sync: 'first' }
const TIME = '2026-01-01T00:00:00.000Z'

/** The account, what else the record has, and where it counts. */
const PEOPLE: [account: string, fields: Record<string, Json>, counts: (keyof Awaited<ReturnType<typeof countHeld>>)[]][] = [
  ['proved@corp.example', { email: 'proved@corp.example', email_verified_at: TIME }, []],
  ['name@corp.example', {}, ['unproved']],
  ['unproved', { email: 'unproved@corp.example' }, ['unproved']],
  ['seen@corp.example', { created_at: TIME, email: 'seen@corp.example', email_verified_at: TIME, ways: { y: { kind: 'upstream', upstream: 'hub', at: TIME } } }, ['unproved']],
  ['other@corp.example', { email: 'other@private.example', email_verified_at: TIME }, ['unproved', 'unreachable']],
  ['linked@corp.example', { email: 'linked@private.example', email_verified_at: TIME, ways: { x: { kind: 'upstream', upstream: 'corp', at: TIME } } }, ['unproved']],
  ['released', { held_by: 'corp' }, ['unproved', 'unreachable']],
  ['undone@corp.example', { email: 'undone@corp.example', email_verified_at: TIME, link_undone: true }, ['undone']],
  ['known@corp.example', { email: 'known@corp.example', email_verified_at: TIME, link_undone: true, lost_identities: [{ upstream: 'corp', key: 'x', undone: true }] }, []],
  ['admin@corp.example', { roles: { admin: true } }, []],
  ['service@corp.example', { roles: { service: true } }, []],
  ['elsewhere@private.example', {}, []]
]

async function checkCount (t: Test, database: string): Promise<void> {
  const kit = await startIdentity({ t, database })
  const users = kit.app.identity.store.collection<UserRecord>('users')
  t.strictSame(await countHeld(readAside(database, 'users'), [CORP], roles), { unproved: 0, unreachable: 0, undone: 0 })
  for (const [account, fields] of PEOPLE) {
    const { user_id } = await kit.app.identity.users.create({ data: { account, password: 'a horse too' } })
    await users.update(user_id, { set: fields })
  }
  const count = (name: string) => PEOPLE.filter(([, , counts]) => (counts as string[]).includes(name)).length
  t.strictSame(await countHeld(readAside(database, 'users'), [CORP], roles), { unproved: count('unproved'), unreachable: count('unreachable'), undone: count('undone') }, 'beside the service')
  t.strictSame(await countHeld(readAside(database, 'users'), [{ ...CORP, only: false }], roles), { unproved: 0, unreachable: 0, undone: 0 })
}

t.test('on SQLite', async (t) => { await checkCount(t, `sqlite:${t.testdir()}/identity.db`) })
t.test('on MongoDB', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => { await checkCount(t, reuseMongoDatabase(t, MONGODB_URL!)) })

t.test('config check counts, and leaves the database of an earlier release to its service', async (t) => {
  const dir = t.testdir()
  writeFileSync(`${dir}/secret`, 's', { mode: 0o600 })
  const { clientSecret: _secret, ...upstream } = CORP
  writeFileSync(`${dir}/upstreams.json`, JSON.stringify([{ ...upstream, clientSecretFile: `${dir}/secret` }]))
  const [before, cli] = [createCli(dir), createCli(dir, { IDENTITY_UPSTREAMS_FILE: `${dir}/upstreams.json` })]
  t.match((await cli('config check --json')).json(), { only: { unproved: 0 }, made_by_first_start: ['database', 'secret key'] }, 'where there is no database')
  await before('user create --account otto@corp.example')
  const { stderr, json } = await cli('config check --json')
  t.match(json(), { only: { unproved: 1, unreachable: 0, undone: 0 } })
  t.match(json(), { migrated_by_first_start: { from: LAYOUT.version, to: LAYOUT.version, reads: ['users'] } }, 'the first start that knows an upstream judges the addresses')
  t.match(stderr, /warning: only: people without a proved address in its domains, who sign in with the provider alone: 1/)
  const file = `${dir}/identity.db`
  const version = (change?: number) => {
    const database = new DatabaseSync(file)
    if (change !== undefined) database.exec(`PRAGMA user_version = ${change}`)
    const [found] = database.prepare('PRAGMA user_version').all() as { user_version: number }[]
    database.close()
    return found!.user_version
  }
  version(5)
  t.match((await cli('config check --json')).json(), { only: { unproved: 1 }, migrated_by_first_start: { shuts_out_earlier: true } })
  t.equal(version(), 5, 'it is as it was')
  t.notOk('only' in (await before('config check --json')).json())
})
