import { deepStrictEqual, ok } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { checkAttributes, checkMap, checkText } from '../../lib/checks.ts'
import { type SecretBox, createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { checkName } from '../../lib/names.ts'
import { type UserRecord, createUserRecord } from '../../lib/records/user.ts'
import { toExternalKey } from '../../lib/import/keys.ts'
import { type CredentialRecord, type WayKind, toWayKey } from '../../lib/way.ts'
import { toSeedContext } from '../../lib/ways/totp.ts'
import { toWayFields } from '../../lib/ways/words.ts'
import type { Services } from '../../lib/services.ts'
import type { Json } from '../../lib/store/port.ts'
import { forEachStore } from '../helpers/build.ts'
import { BCRYPT, importLines } from '../helpers/import.ts'
import { anyText, checkProperty } from '../helpers/property.ts'

const OWN_HASH = 'aB3dE6gH$2b$04$KT0wB1.jJmMU1NuFB4JDm.2.TEOuCNGPCzaBPBlaaxG3JbeF5EFzi'
const SEED = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PX'
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const SECRET_KEY = generateSecretKey()
const START = Date.parse('2019-01-01T00:00:00.000Z')

const passes = <T>(check: (value: T) => unknown) => (value: T): boolean => {
  try {
    check(value)
    return true
  } catch {
    return false
  }
}

const time = fc.integer({ min: 0, max: 200_000_000_000 }).map((after) => new Date(START + after).toISOString())
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const map = fc.dictionary(anyText(6).filter((key) => key !== '__proto__'), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as { [key: string]: Json })

const way = fc.record({
  kind: fc.constantFrom<WayKind>('passkey', 'totp', 'totp', 'recovery', 'upstream'),
  at: time,
  created_at: time,
  name: maybe(anyText(10).filter(passes((text) => checkText('name', text)))),
  last_used_at: maybe(time),
  uv: fc.boolean(),
  step: fc.nat(1_000_000_000)
})

const person = fc.record({
  isAddress: fc.boolean(),
  hasOther: fc.boolean(),
  email_verified_at: maybe(time),
  email_verified_by: fc.constantFrom('mail', 'operator', 'import', 'work'),
  name: anyText(20).filter(passes((text) => checkName('name', text))),
  roles: fc.subarray(['editor', 'admin', 'a role']).chain((names) => fc.constant(Object.fromEntries(names.map((name, index) => [name, index === 1 ? { since: 2019 } : true as const])))),
  info: map.filter(passes((value) => checkMap('info', value))),
  attributes: maybe(map.filter((value) => Object.keys(value).length > 0).filter(passes((value) => checkAttributes(value)))),
  password: fc.constantFrom(undefined, '', OWN_HASH, BCRYPT),
  created_at: time,
  modified_at: time,
  verified_at: maybe(time),
  disabled_at: maybe(time),
  expired_at: maybe(time),
  invited_at: maybe(time),
  invited_by: maybe(fc.constant('somebody')),
  language: maybe(fc.constantFrom('en', 'de')),
  language_chosen: maybe(fc.constant(true)),
  enrol_ticket: maybe(fc.constant('a-ticket')),
  external: maybe(fc.constantFrom('old', 'older')),
  imported: maybe(fc.constantFrom({ run: 'run-1', revision: 0 }, { run: 'run-2', revision: 1 })),
  ways: fc.uniqueArray(way, { maxLength: 4, selector: ({ kind }) => kind })
})
type Person = typeof person extends fc.Arbitrary<infer T> ? T : never

/** The record of a person, as the service has made it. */
function create (box: Pick<SecretBox, 'seal'>, given: Person, index: number): { user: UserRecord, credentials: CredentialRecord[] } {
  const { isAddress, hasOther, email_verified_at, email_verified_by, ways, external, imported, created_at, modified_at, verified_at, ...fields } = given
  const id = `user-${String(index).padStart(4, '0')}`
  const account = isAddress ? `${id}@example.com` : id
  const email = hasOther ? `other-${id}@example.com` : email_verified_at !== undefined && isAddress ? account : undefined
  const credentials = ways.map(({ kind, at: _at, step, uv, ...rest }, number): CredentialRecord => {
    const wayId = `way${index}x${number}`
    const material: Record<WayKind, { [field: string]: Json }> = {
      passkey: { credential_id: wayId, public_key: 'cHVibGlj', counter: step, transports: ['internal'], backed_up: true },
      totp: { step },
      recovery: { hashes: ['h1', 'h2'] },
      upstream: { issuer: 'https://idp.example', subject: wayId }
    }
    return {
      id: wayId,
      user_id: id,
      way: {
        kind,
        ...(kind === 'passkey' && { key: toWayKey('passkey', wayId), uv, rp: 'id.example' }),
        ...(kind === 'upstream' && { key: toWayKey('upstream', 'https://idp.example', wayId), upstream: 'work' })
      },
      material: material[kind],
      ...(kind === 'totp' && { sealed: box.seal(`${SEED}${BASE32[index % 32]}${BASE32[Math.floor(index / 32)]}`, toSeedContext(wayId)) }),
      ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)) as Pick<CredentialRecord, 'created_at'>,
      revision: 3
    }
  })
  const made = createUserRecord(START, {
    id,
    account,
    ...(email !== undefined && { email, ...(email_verified_at !== undefined && { email_verified_at, email_verified_by }) }),
    ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Pick<UserRecord, 'name' | 'info' | 'attributes' | 'roles'>,
    ...(external !== undefined && { external: { [external]: id }, external_keys: [toExternalKey(external, id)] }),
    ...(imported !== undefined && { imported_source: 'old', imported_run: imported.run, imported_revision: imported.revision }),
    ...toWayFields(Object.fromEntries(credentials.map((credential, number) => [credential.id, { ...credential.way, at: ways[number]!.at }]))).set
  }, false)
  return { user: { ...made, created_at, modified_at, ...(verified_at !== undefined && { verified_at }), epoch: 2, revision: 1 }, credentials }
}

const readLines = async ({ userLines }: Services): Promise<string> => (await Array.fromAsync(userLines.write({ withHashes: true }))).flat().join('')

await forEachStore(t, async (t, build) => {
  t.test('an export with hashes, imported into an empty store and exported again, has the same bytes', async (t) => {
    const kit = await build(t, { secretKey: SECRET_KEY.toString('base64') })
    const services = kit.app.identity
    const { store } = services
    const box = createSecretBox(SECRET_KEY)
    let seen = 0
    await checkProperty(t, 12, fc.asyncProperty(fc.array(person, { minLength: 1, maxLength: 12 }), async (people) => {
      await kit.reset()
      const made = people.map((one, index) => create(box, one, index))
      const credentials = made.flatMap((one) => one.credentials)
      await store.collection<UserRecord>('users').insertMany(made.map(({ user }) => user))
      if (credentials.length > 0) await store.collection<CredentialRecord>('credentials').insertMany(credentials)
      const text = await readLines(services)
      const lines = text.trimEnd().split('\n').map((line) => JSON.parse(line) as object)
      deepStrictEqual(lines.length, people.length)
      await kit.reset()
      const options = { source: 'other', kept: true, allowRoles: true }
      const { verdicts } = await importLines(services, lines, options)
      deepStrictEqual(verdicts.filter(({ result, dropped }) => result !== 'created' || dropped !== undefined), [])
      deepStrictEqual(await readLines(services), text)
      deepStrictEqual(new Set((await importLines(services, lines, options)).verdicts.map(({ result }) => result)), new Set(['same']))
      seen += credentials.length
    }))
    ok(seen > 40)
  })
})
