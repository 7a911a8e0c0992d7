import t from 'tap'
import type { UserRecord } from '../../../lib/records/user.ts'
import type { CredentialRecord } from '../../../lib/way.ts'
import { readMaterial, toUserHandle } from '../../../lib/ways/passkey-material.ts'
import { createAuthenticator } from '../../../testing/authenticator.ts'
import { type Build, forEachStore } from '../../helpers/build.ts'
import { KEYS, toCose } from '../../helpers/cose.ts'
import { BROWSER, TAMPERED } from '../../helpers/tampered.ts'
import { waitUntil } from '../../helpers/wait.ts'

const ISSUER = 'http://localhost'
const OTHER = 'another browser'

await forEachStore(t, async (t, build) => {
  const start = async (options: Parameters<Build>[1] = {}) => {
    const kit = await build(t, { oidc: { issuer: ISSUER }, ...options })
    for (const account of ['ann', 'bob']) {
      if (await kit.app.identity.store.collection('users').getBy('account', account) === null) await kit.app.identity.users.create({ data: { account, password: 'correct horse' } })
    }
    const { identity } = kit.app
    const users = identity.store.collection<UserRecord>('users')
    const read = async (account: string) => (await users.getBy('account', account))!
    const actor = async (account: string) => {
      const { id: user_id, epoch } = await read(account)
      return { user_id, epoch }
    }
    return { kit, ...identity, users, read, actor }
  }
  const { kit, passkeys, ways, users, read, actor, store } = await start()

  await t.test('tampered assertions are refused, and the same one untampered is not', async (t) => {
    const [ann, bob] = [await kit.passkey('ann'), await kit.passkey('bob')]
    const { id: user_id } = await read('bob')
    for (const { name, make } of TAMPERED) {
      const text = await make({
        passkeys, advance: kit.clock.advance, get: ann.answer, getOther: bob.answer, other: { user_id, handle: toUserHandle(user_id) }
      })
      t.strictSame(await passkeys.verify('begin', BROWSER, text), { refused: true }, name)
    }
    t.ok(TAMPERED.length >= 20)
    const text = ann.answer(await passkeys.ask('begin', BROWSER))
    t.match(await passkeys.verify('begin', BROWSER, text), { user: { account: 'ann' }, id: ann.id, uv: true })
  })

  await t.test('a passkey comes second, and proves, for its own user only, each with a challenge of that purpose', async (t) => {
    const [ann, bob] = [await kit.passkey('ann'), await kit.passkey('bob')]
    const { id } = await read('ann')
    for (const purpose of ['second', 'confirm'] as const) {
      const options = await passkeys.ask(purpose, BROWSER, id)
      t.ok(options.allowCredentials?.some((one) => one.id === ann.credentialId && one.transports.join() === 'internal'))
      t.notOk(options.allowCredentials?.some((one) => one.id === bob.credentialId))
      t.match(await passkeys.verify(purpose, BROWSER, bob.answer(options), id), { refused: true })
      for (const other of ['begin', 'second', 'confirm'] as const) {
        if (other !== purpose) t.match(await passkeys.verify(other, BROWSER, ann.answer(options), id), { refused: true }, `${purpose} as ${other}`)
      }
      t.match(await passkeys.verify(purpose, OTHER, ann.answer(options), id), { refused: true })
      t.match(await passkeys.verify(purpose, BROWSER, ann.answer(options, { userHandle: null }), id), { id: ann.id, uv: true }, 'a key that is not resident sends no handle')
      t.match(await passkeys.verify(purpose, BROWSER, ann.answer(options), id), { refused: true }, 'used')
    }
  })

  await t.test('of two uses of one challenge at the same moment one wins', async (t) => {
    const ann = await kit.passkey('ann')
    for (let round = 0; round < 10; round++) {
      const text = ann.answer(await passkeys.ask('begin', BROWSER))
      const all = await Promise.all([1, 2, 3, 4].map(async () => await passkeys.verify('begin', BROWSER, text)))
      t.equal(all.filter((one) => !('refused' in one)).length, 1)
    }
  })

  await t.test('strangers store nothing', async (t) => {
    const before = await store.collection('sign_ins').count()
    for (let index = 0; index < 20; index++) await passkeys.verify('begin', BROWSER, createAuthenticator(ISSUER).get(await passkeys.ask('begin', BROWSER), { userHandle: 'x' }))
    t.equal(await store.collection('sign_ins').count(), before)
  })

  await t.test('the counter is a signal and no lock; transports, flags and the model are kept', async (t) => {
    const credentials = store.collection<CredentialRecord>('credentials')
    const key = await kit.passkey('bob', { counter: 7, backupEligible: true, backedUp: true, transports: ['usb', 'new-one'] })
    const material = async () => readMaterial((await credentials.get(key.id))!)
    t.match(await material(), { counter: 7, transports: ['usb', 'new-one'], backup_eligible: true, backed_up: true, aaguid: '00000000-0000-0000-0000-000000000000' })
    const use = async (changes: object) => await passkeys.verify('begin', BROWSER, key.answer(await passkeys.ask('begin', BROWSER), changes))
    t.match(await use({ counter: 9, backedUp: false }), { id: key.id })
    t.match(await material(), { counter: 9, backed_up: false, counter_fell: undefined })
    t.match(await use({ counter: 3 }), { id: key.id }, 'a synced passkey may do that')
    t.match(await material(), { counter: 9, counter_fell: 1 })
    t.match((await users.get((await read('bob')).id))!.ways![key.id], { kind: 'passkey', uv: true, rp: 'localhost' })
  })

  await t.test('an enrolment is refused for another browser, purpose, site or time, and counts once', async (t) => {
    const ann = await read('ann')
    const prepare = async (secret: string, text: string) => await passkeys.prepare(await actor('ann'), secret, text)
    const fresh = () => createAuthenticator(ISSUER)
    const options = await passkeys.askNew(ann, BROWSER)
    t.ok(options.excludeCredentials.length > 0, 'a device does not make a second one')
    t.match(options, { user: { id: toUserHandle(ann.id), name: 'ann', displayName: 'ann' }, authenticatorSelection: { residentKey: 'preferred' }, attestation: 'none' })
    await t.rejects(prepare(OTHER, fresh().create(options)), { code: 'ErrParam' })
    for (const changes of [{ origin: 'https://id.example' }, { rpId: 'id.example' }, { type: 'webauthn.get' }, { up: false }, { crossOrigin: true }, { transports: ['x y'] }]) {
      await t.rejects(prepare(BROWSER, fresh().create(options, changes)), { code: 'ErrParam' }, JSON.stringify(changes))
    }
    for (const purpose of ['begin', 'confirm'] as const) {
      const { challenge } = await passkeys.ask(purpose, BROWSER, ann.id)
      await t.rejects(prepare(BROWSER, fresh().create({ ...options, challenge })), { code: 'ErrParam' }, purpose)
    }
    const text = fresh().create(options)
    const id = await prepare(BROWSER, text)
    await t.rejects(prepare(BROWSER, text), { code: 'ErrParam' }, 'a challenge is good once')
    t.equal((await read('ann')).ways?.[id], undefined, 'it is not named yet')
    const late = await passkeys.askNew(ann, BROWSER)
    kit.clock.advance(5 * 60_000)
    await t.rejects(prepare(BROWSER, fresh().create(late)), { code: 'ErrParam' }, 'five minutes')
  })

  // @simplewebauthn/server follows the revocation lists of a chain that the message itself brings (android-key): anybody with a session
  // could make the service send requests into its network.
  await t.test('an attestation statement is not read, whatever its format and its certificates', async (t) => {
    const chain = Buffer.from('a363616c672663736967420000637835638241304130', 'hex')
    for (const format of ['android-key', 'android-safetynet', 'apple', 'fido-u2f', 'packed', 'tpm', 'unheard-of']) {
      const options = await passkeys.askNew(await read('ann'), BROWSER)
      const made = createAuthenticator(ISSUER).create(options, { statement: { format, content: chain } })
      t.match(await passkeys.prepare(await actor('ann'), BROWSER, made), /./, format)
    }
    const options = await passkeys.askNew(await read('ann'), BROWSER)
    const object = { attestationObject: Buffer.from('a0', 'hex').toString('base64url') }
    const made = JSON.parse(createAuthenticator(ISSUER).create(options)) as { response: object }
    await t.rejects(passkeys.prepare(await actor('ann'), BROWSER, JSON.stringify({ ...made, response: { ...made.response, ...object } })), { code: 'ErrParam' }, 'none at all')
  })

  await t.test('a key that can never verify is not enrolled', async (t) => {
    const enrol = async (publicKey: Buffer) => {
      const options = await passkeys.askNew(await read('ann'), BROWSER)
      return await passkeys.prepare(await actor('ann'), BROWSER, createAuthenticator(ISSUER).create(options, { publicKey }))
    }
    const [ec, ed, rsa, small, p384] = [KEYS.ec(), KEYS.ed(), KEYS.rsa(), KEYS.rsa(512), KEYS.p384()]
    const x = (length: number, value = 7) => Uint8Array.from(Buffer.alloc(length, value))
    for (const [name, key] of Object.entries({ ec, ed, rsa })) t.match(await enrol(toCose(key)), /./, name)
    for (let round = 0; round < 5; round++) t.match(await enrol(toCose(KEYS.ed())), /./, 'every key on Ed25519')
    for (const [name, key] of Object.entries({
      'a point that is not on P-256': toCose(ec, { [-2]: x(32) }),
      'an x of 31 bytes': toCose(ec, { [-2]: x(31) }),
      'an x of 33 bytes': toCose(ec, { [-2]: Uint8Array.from([0, ...Buffer.from(ec['x']!, 'base64url')]) }),
      'no y': toCose(ec, { [-3]: undefined }),
      'a y that says only its sign': toCose(ec, { [-3]: true }),
      'no curve': toCose(ec, { [-1]: undefined }),
      'another curve': toCose(p384, { [-1]: 2 }),
      'a point of another curve': toCose(p384),
      'EC that says RS256': toCose(ec, { 3: -257 }),
      'EC that says EdDSA': toCose(ec, { 3: -8 }),
      'RSA that says ES256': toCose(rsa, { 3: -7 }),
      'RSA that says EdDSA': toCose(rsa, { 3: -8 }),
      'RSA of 512 bits': toCose(small),
      'RSA without an exponent': toCose(rsa, { [-2]: undefined }),
      'EdDSA that says ES256': toCose(ed, { 3: -7 }),
      'a y without an x on Ed25519': toCose(ed, { [-2]: Uint8Array.from([2, ...x(31, 0)]) }),
      'a y beyond the field of Ed25519': toCose(ed, { [-2]: x(32, 0xff) }),
      'a text in place of a coordinate': toCose(ed, { [-2]: 'x' }),
      'no algorithm': toCose(ec, { 3: undefined })
    })) await t.rejects(enrol(key), { code: 'ErrParam' }, name)
  })

  await t.test('another user cannot take a passkey over by enrolling its id, and a user cannot have it twice', async (t) => {
    const victim = await kit.passkey('bob')
    const thief = createAuthenticator(ISSUER)
    for (const account of ['ann', 'bob']) {
      const id = await passkeys.prepare(await actor(account), BROWSER, thief.create(await passkeys.askNew(await read(account), BROWSER), { id: victim.credentialId }))
      await t.rejects(ways.name(await actor(account), [id]), { message: 'way: is in use already' }, account)
    }
    t.match(await passkeys.verify('begin', BROWSER, victim.answer(await passkeys.ask('begin', BROWSER))), { user: { account: 'bob' } })
  })

  await t.test('dotnet/aspnetcore#68511: a browser is told to forget a passkey only if no user has its id', async (t) => {
    const key = await kit.passkey('ann')
    const use = async (changes: object = {}) => await passkeys.verify('begin', BROWSER, key.answer(await passkeys.ask('begin', BROWSER), changes))
    const { id: user_id } = await read('ann')
    await users.update(user_id, { set: { disabled_at: '2026-01-01T00:00:00.000Z' } })
    t.strictSame(await use(), { refused: true }, 'a disabled user')
    await users.update(user_id, { unset: ['disabled_at'] })
    t.strictSame(await use({ origin: 'https://id.example' }), { refused: true }, 'another site')
    const credentials = store.collection<CredentialRecord>('credentials')
    const record = (await credentials.get(key.id))!
    await credentials.delete(key.id)
    t.strictSame(await use(), { refused: true }, 'the material is missing, which is damage')
    await credentials.insert(record)
    t.match(await use(), { id: key.id })
    await ways.remove(await actor('ann'), key.id, { isEnd: false })
    t.strictSame(await use(), { refused: true, unknown: key.credentialId }, 'removed')
  })

  await t.test('supabase/auth#2564: the passkeys of a deleted user are gone', async (t) => {
    const { user_id } = await kit.app.identity.users.create({ data: { account: 'dan', password: 'correct horse' } })
    const key = await kit.passkey('dan')
    await kit.inject({ method: 'DELETE', url: `/api/v1/user/${user_id}`, headers: (await kit.mint({ user: 'root', roles: ['admin'] })).headers })
    await kit.app.identity.tokens.settle()
    t.equal(await store.collection<CredentialRecord>('credentials').count({ equal: { user_id } }), 0)
    t.strictSame(await passkeys.verify('begin', BROWSER, key.answer(await passkeys.ask('begin', BROWSER))), { refused: true, unknown: key.credentialId })
  })
})

t.test('a passkey of another relying party counts as none', async (t) => {
  await forEachStore(t, async (t, build) => {
    const first = await build(t, { oidc: { issuer: 'https://id.old.example' } })
    await first.app.identity.users.create({ data: { account: 'ann', password: 'correct horse' } })
    const key = await first.passkey('ann')
    await first.close()
    const logged: string[] = []
    const { createApp } = await import('../../../testing/kit.ts')
    const second = await build(t, {
      oidc: { issuer: 'https://id.new.example' },
      app: createApp({ logger: { level: 'info', stream: { write: (line: string) => { logged.push(JSON.parse(line).msg) } } } })
    })
    const { passkeys, users, store, signIns } = second.app.identity
    const ann = (await store.collection<UserRecord>('users').getBy('account', 'ann'))!
    t.notOk(passkeys.has(ann))
    t.strictSame((await passkeys.ask('second', BROWSER, ann.id)).allowCredentials, [])
    t.strictSame(await passkeys.verify('begin', BROWSER, key.answer(await passkeys.ask('begin', BROWSER))), { refused: true })
    t.match(await users.signIn('ann', 'correct horse'), { user_id: ann.id })
    const form = new URLSearchParams({ account: 'ann', password: 'correct horse' })
    t.match(await signIns.submit('a', { form, turn: {}, limit: async () => undefined }), { done: { strength: { acr: '1' } } }, 'it is no factor')
    t.match(await waitUntil('a line about the relying party', () => logged.find((line) => line.includes('relying party'))), '1 passkeys do not work')
  })
})
