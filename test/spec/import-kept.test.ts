import t from 'tap'
import type { CredentialRecord } from '../../lib/way.ts'
import { toWayKey } from '../../lib/way.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { Services } from '../../lib/services.ts'
import type { KeptLine } from '../../schemas/export.ts'
import type { TestKit } from '../../testing/index.ts'
import { forEachStore } from '../helpers/build.ts'
import { importLines } from '../helpers/import.ts'
import { unique } from '../helpers/people.ts'

const SEED = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'
const TIME = '2019-04-05T06:07:08.000Z'
const BASE = { at: TIME, created_at: TIME }
const KEPT = { kept: true, source: 'old' } as const

const toPasskey = (id: string, credential_id = `c-${id}`) => ({ ...BASE, id, kind: 'passkey' as const, key: 'A'.repeat(43), material: { credential_id, public_key: 'cA', counter: 0 } })
const toTotp = (id: string, seed = SEED) => ({ ...BASE, id, kind: 'totp' as const, seed, material: { step: 1 } })

const toLine = (id: string, { kept, ...more }: { kept?: Partial<KeptLine['kept']> } & Partial<Omit<KeptLine, 'kept'>> = {}) =>
  ({ format: 'fastify-identity/user/1', id, account: id, created_at: TIME, ...more, kept: { modified_at: TIME, ...kept } })

const readText = async ({ userLines }: Services) => (await Array.fromAsync(userLines.write({ withHashes: true }))).flat().join('')

async function readUser ({ app }: TestKit, id: string): Promise<UserRecord | null> {
  return await app.identity.store.collection<UserRecord>('users').get(id)
}

await forEachStore(t, async (t, build) => {
  t.test('a person signs in as before: with their password, their app, and each of their codes once', async (t) => {
    const kit = await build(t)
    const services = kit.app.identity
    const { users, store, factors } = services
    const { user_id } = await users.create({ data: { account: unique('ann'), password: 'the password' } })
    const { code, recoveryCodes: codes } = await kit.totp(user_id)
    const used = await code()
    t.ok(await factors.verifyTotp(user_id, used))
    t.ok(await factors.verifyCode(user_id, codes[0]!))
    const lines = (await readText(services)).trimEnd().split('\n').map((line) => JSON.parse(line) as KeptLine)
    const now = kit.clock.now()
    await kit.reset()
    kit.clock.advance(now - kit.clock.now())
    t.match((await importLines(services, lines, KEPT)).verdicts, [{ result: 'created', user_id }])
    t.match(await users.verify(lines[0]!.account, 'the password'), { user_id })
    t.equal(await users.verify(lines[0]!.account, 'another'), null)
    t.equal(await factors.verifyTotp(user_id, used), null, 'a step that was used before the move')
    t.equal(await factors.verifyCode(user_id, codes[0]!), null, 'a code that was used before the move')
    t.ok(await factors.verifyCode(user_id, codes[1]!))
    kit.clock.advance(60_000)
    t.ok(await factors.verifyTotp(user_id, await code()))
    t.equal((await Array.fromAsync(store.collection<CredentialRecord>('credentials').stream())).flat().length, 2)
  })

  t.test('an import that was not told of it refuses such a line, and over HTTP nothing tells it', async (t) => {
    const kit = await build(t)
    const { verdicts } = await importLines(kit.app.identity, [toLine(unique('ann'))], { trustEmails: true, allowRoles: true })
    t.match(verdicts, [{ result: 'refused', field: 'format', reason: 'is not a known field' }])
    const { headers } = await kit.mint({ user: 'boss', roles: ['admin'] })
    const send = async (query: string) => await kit.inject({
      method: 'POST', url: `/api/v1/user/import?source=old&trust_emails=true&allow_roles=true${query}`, headers: { ...headers, 'content-type': 'application/x-ndjson' }, payload: `${JSON.stringify(toLine(unique('ann')))}\n`
    })
    t.match((await send('')).body, /"result":"refused".*"field":"format"/)
    t.equal((await send('&kept=true')).statusCode, 400)
  })

  t.test('a line changes nobody, and takes no way of anybody', async (t) => {
    const kit = await build(t)
    const services = kit.app.identity
    const [ann, bob, eve] = [unique('ann'), unique('bob'), unique('eve')]
    const [a, b] = [unique('waya'), unique('wayb')].map((id) => id.replaceAll('-', '')) as [string, string]
    const before = [toLine(ann, { name: 'Ann', kept: { ways: [toPasskey(a)] } }), toLine(bob, { kept: { ways: [toTotp(b)] } })]
    t.match((await importLines(services, before, KEPT)).verdicts, [{ result: 'created' }, { result: 'created' }])
    const text = await readText(services)
    t.equal((await readUser(kit, ann))!.way_keys![0], toWayKey('passkey', `c-${a}`), 'the key of a passkey is computed, whatever the line says')
    const cases: [what: string, line: object, field: string | undefined][] = [
      ['somebody who is here', toLine(ann, { name: 'Eve', kept: { ways: [toPasskey('waye')] } }), undefined],
      ['their id, of another time', toLine(ann, { created_at: '2020-04-05T06:07:08.000Z' }), 'id'],
      ['their account', { ...toLine(eve), account: ann }, 'account'],
      ['their way', toLine(eve, { kept: { ways: [toPasskey(a, 'c-eve')] } }), 'kept.ways'],
      ['their passkey', toLine(eve, { kept: { ways: [toPasskey('waye', `c-${a}`)] } }), 'identities'],
      ['their seed', toLine(eve, { kept: { ways: [toTotp('waye')] } }), 'totp'],
      ['the role of administrators', toLine(eve, { roles: { admin: true } }), 'roles'],
      ['a way twice', toLine(eve, { kept: { ways: [toPasskey('waye', 'c1'), toPasskey('waye', 'c2')] } }), 'kept.ways'],
      ['a way with the id of the password', toLine(eve, { kept: { ways: [toPasskey('password')] } }), 'kept.ways'],
      ['four authenticator apps', toLine(eve, { kept: { ways: ['2', '3', '4', '5'].map((digit) => toTotp(`waye${digit}`, SEED.slice(1) + digit)) } }), 'kept.ways'],
      ['an app without a seed', toLine(eve, { kept: { ways: [{ ...toTotp('waye'), seed: undefined }] } }), 'kept.ways[0].seed'],
      ['a field of the record', { ...toLine(eve), kept: { modified_at: TIME, epoch: 9 } }, 'kept.epoch'],
      ['no format', { ...toLine(eve), format: undefined }, 'format'],
      ['another format', { ...toLine(eve), format: 'fastify-identity/user/2' }, 'format'],
      ['no id', { ...toLine(eve), id: undefined }, 'id'],
      ['disabled without its time', toLine(eve, { disabled: true }), 'kept.disabled_at'],
      ['an address that is verified without its time', toLine(eve, { email: `${eve}@example.com`, email_verified: true }), 'kept.email_verified_at'],
      ['material that is too large', toLine(eve, { kept: { ways: [{ ...toPasskey('waye'), material: { credential_id: 'c', filler: 'x'.repeat(20_000) } }] } }), 'kept.ways[0].material']
    ]
    for (const [what, line, field] of cases) {
      const { verdicts: [verdict] } = await importLines(services, [JSON.parse(JSON.stringify(line))], KEPT)
      t.match(verdict, field === undefined ? { result: 'same' } : { result: 'refused', field }, what)
    }
    t.equal(await readText(services), text)
    t.equal(await readUser(kit, eve), null)
    t.match((await importLines(services, before, { ...KEPT, onConflict: 'fail' })).verdicts, [{ result: 'refused', field: 'id' }, { result: 'refused', field: 'id' }])
    await t.rejects(importLines(services, before, { ...KEPT, onConflict: 'update' }), { code: 'ErrParam' })
  })

  t.test('the material of a run that was interrupted is replaced, and a dry run writes nothing', async (t) => {
    const kit = await build(t)
    const services = kit.app.identity
    const [ann, way] = [unique('ann'), unique('way').replaceAll('-', '')]
    const credentials = services.store.collection<CredentialRecord>('credentials')
    const line = toLine(ann, { kept: { ways: [toTotp(way, 'ONXW2ZJAONSWK5DJNZTSA3DJNZSXGCQA')] } })
    t.match((await importLines(services, [line], { ...KEPT, dryRun: true })).verdicts, [{ result: 'created' }])
    t.equal(await credentials.get(way), null)
    await credentials.insert({ id: way, user_id: ann, way: { kind: 'totp' }, material: {}, sealed: 'of the interrupted run', created_at: TIME, revision: 0 })
    t.match((await importLines(services, [line], KEPT)).verdicts, [{ result: 'created' }])
    t.not((await credentials.get(way))!.sealed, 'of the interrupted run')
    const other = toLine(unique('eve'), { account: ann, kept: { ways: [toTotp(unique('way').replaceAll('-', ''), 'KRSXG5CTMVRXEZLUKRSXG5CTMVRXEZLU')] } })
    t.match((await importLines(services, [other], KEPT)).verdicts, [{ result: 'refused', field: 'account' }])
    t.equal(await credentials.get(other.kept.ways![0]!.id), null, 'what was refused leaves nothing')
  })

  t.test('a service whose second factors are off takes none', async (t) => {
    const kit = await build(t, { factors: 'off' })
    const services = kit.app.identity
    const line = toLine(unique('ann'), { kept: { ways: [toTotp(unique('way').replaceAll('-', ''), 'MFRGGZDFMFRGGZDFMFRGGZDFMFRGGZDF')] } })
    t.match((await importLines(services, [line], KEPT)).verdicts, [{ result: 'refused', field: 'kept.ways' }])
    t.match((await importLines(services, [line], { ...KEPT, withoutFactors: true })).verdicts, [{ result: 'created', dropped: ['kept.ways'] }])
  })
})
