import { hash } from 'node:crypto'
import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import { listScripts, readScript } from '../../lib/pages/script.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { CredentialRecord } from '../../lib/way.ts'
import { createAuthenticator } from '../../testing/authenticator.ts'
import { readPasskeyOptions } from '../../testing/passkey.ts'
import { type Harness, askCode, atLocalhost, eachStore } from '../oidc/harness.ts'
import type { Page } from '../oidc/browser.ts'
import { enrol, listRemovals, nextCode, passCodeUsed, readCodes, readHidden } from './factors.ts'
import { answer, asksPasskey, beginPasskey, enrolPasskey, enterByPasskey } from './passkeys.ts'
import { addUser, enter, isSignedOut, post } from './visits.ts'

const { account: own, errors, secondStep, signIn: signInTexts } = en

const PAGES = ['', '/password', '/password/remove', '/methods', '/factors/new', '/factors/passkeys', '/factors/codes', '/email', '/delete', '/sessions', '/apps', '/activity', '/clients', '/data']

eachStore(t, 'passkeys on the pages', async (t, start) => {
  const harness: Harness = await start({ selfDelete: true, ...await atLocalhost() })
  const { kit, browser } = harness
  const { store, users, heldFactors } = kit.app.identity
  const records = store.collection<UserRecord>('users')
  let count = 0
  const addPerson = async () => await addUser(harness, `person${count++}@example.com`)
  type Person = Awaited<ReturnType<typeof addPerson>>
  const arrive = async (person: Person, path = '/account') => await enter(harness, path, browser(), person)
  const kindsOf = async ({ user_id }: Person) => Object.values((await records.get(user_id))?.ways ?? {}).map(({ kind }) => kind).sort()
  /** A person with a passkey, and a page of theirs. */
  const withPasskey = async (...settings: Parameters<typeof createAuthenticator> extends [string, ...infer Rest] ? Rest : never) => {
    const person = await addPerson()
    return { person, ...await enrolPasskey(await arrive(person), { current_password: person.password }, ...settings) }
  }

  await t.test('only the pages that need a script have it, and only these allow it', async (t) => {
    const { page } = await withPasskey()
    const other = await arrive(await addPerson())
    const listScripted = async (from: Page) => {
      const scripted: string[] = []
      for (const path of PAGES) {
        const { text, response } = await from.browser.open(`/account${path}`)
        const policy = response.headers.get('content-security-policy') ?? ''
        const url = `${harness.url}/account/${readScript().file}`
        const isScripted = text.includes(`<script src="${url}" defer></script>`)
        const inline = listScripts(text).map((script) => `'sha256-${hash('sha256', script, 'base64')}'`)
        const sources = [...inline, ...isScripted ? [url] : []]
        t.equal(/; script-src ([^;]*)/.exec(policy)?.[1], sources.length === 0 ? undefined : sources.join(' '), path)
        t.equal(policy.includes("; connect-src 'self';"), isScripted, path)
        t.equal(text.split('<script').length - 1, sources.length, path)
        if (isScripted) scripted.push(path)
      }
      return scripted
    }
    t.strictSame(await listScripted(page), ['/password', '/password/remove', '/factors/new', '/factors/passkeys', '/factors/codes', '/email', '/delete'])
    t.strictSame(await listScripted(other), [])
    const app = await harness.register()
    for (const path of ['/account/sign-in', askCode(app).url]) t.ok(asksPasskey(await browser().open(path)), path)
    for (const path of ['/account/forgot', '/']) t.notMatch((await browser().open(path)).text, '<script', path)
  })

  await t.test('the script is one small file that browsers keep', async (t) => {
    const { headers, status } = await browser().fetch(`/account/${readScript().file}`)
    t.equal(status, 200)
    t.match(headers.get('content-type'), 'text/javascript')
    t.match(headers.get('cache-control'), 'immutable')
    t.ok(readScript().text.length <= 20 * 1024, `${readScript().text.length} bytes`)
  })

  await t.test('a passkey is added after a fresh proof, and counts with the codes that the person has kept', async (t) => {
    const person = await addPerson()
    const page = await arrive(person)
    t.match((await beginPasskey(page, { current_password: 'wrong' })).text, own.wrongCurrent)
    const begun = await beginPasskey(page, { current_password: person.password }, '<b>Laptop')
    const { mode, options } = readPasskeyOptions(begun.text)
    t.equal(mode, 'create')
    t.equal(options.rp.id, 'localhost')
    const key = createAuthenticator(harness.url)
    const send = async (from: Page, fields: Record<string, string>) => await post(from, '/account/factors/passkeys', { name: '<b>Laptop', ...fields })
    t.match((await send(begun, { attestation: key.create(options, { origin: 'https://id.example' }) })).text, errors.wrongPasskey)
    t.match((await send(begun, { attestation: 'x'.repeat(9000) })).text, errors.wrongPasskey)
    const attestation = key.create(options)
    const thief = await arrive(await addPerson())
    t.match((await send(await beginPasskey(thief, { current_password: 'a horse too' }), { attestation })).text, errors.wrongPasskey, 'not in the session of somebody else')
    const shown = await send(begun, { attestation })
    t.equal(readCodes(shown).length, 10)
    t.strictSame(await kindsOf(person), [], 'it does not count yet')
    const fields = { codes: readHidden(shown, 'codes'), factor: readHidden(shown, 'factor') }
    t.match((await post(shown, '/account/factors/codes', fields)).text, own.keepFirst)
    const done = await post(shown, '/account/factors/codes', { ...fields, kept: 'yes' })
    t.match(done.text, own.done.passkey)
    t.match(done.text, '&lt;b&gt;Laptop')
    t.strictSame(await kindsOf(person), ['passkey', 'recovery'])
    const mail = await kit.mails.next({ to: person.account })
    t.match(mail.subject, /a passkey was added/)
    t.match(mail.link, /\/undo\?/, 'the password alone was proved')
    t.equal(isSignedOut(await done.browser.open('/account/sessions')), false, 'this browser has proved both')
  })

  await t.test('kratos#2794, kratos#2978, kc#52809: a passkey that verifies is two factors, and nothing more is asked', async (t) => {
    const { person, key, page } = await withPasskey()
    const { factors } = await heldFactors.list(person.user_id)
    t.match(factors, [{ kind: 'passkey', name: 'Laptop' }])
    const { key: foreign } = await withPasskey()
    const refused = await post(page, '/account/factors', { name: 'Phone', ...answer(await page.browser.open('/account/factors/new'), foreign) })
    t.match(refused.text, errors.wrongPasskey, 'that of somebody else proves nothing here')
    t.notMatch(refused.text, 'otpauth://')
    const begun = await post(page, '/account/factors', { name: 'Phone', ...answer(await page.browser.open('/account/factors/new'), key) })
    t.match(begun.text, 'otpauth://', 'it proves an operation alone')
    const into = await enterByPasskey(browser(), key)
    t.equal(into.title, own.sections.profile)
    const app = await harness.register()
    const asked = askCode(app, { acr_values: 'phr' })
    const { left } = await enterByPasskey(browser(), key, {}, asked.url)
    const { body } = await harness.post('token', { grant_type: 'authorization_code', code: left!.searchParams.get('code')!, code_verifier: asked.verifier, redirect_uri: app.redirect_uri }, app)
    const info = await harness.get('tokeninfo', String(body['access_token']))
    t.match((info.body['data'] ?? info.body), { acr: 'phr', amr: ['pop', 'mfa'] })
  })

  await t.test('a passkey that does not verify asks for the password of the same user, and no other', async (t) => {
    const { person, key } = await withPasskey({ uv: false })
    const other = await addPerson()
    const tab = browser()
    const asks = await enterByPasskey(tab, key)
    t.match(asks.text, signInTexts.unverifiedWhy)
    t.notOk(asksPasskey(asks))
    const wrong = await post(asks, asks.response.url, { account: other.account, password: other.password })
    t.match(wrong.text, errors.wrongPassword, 'the password of another account')
    t.match(wrong.text, signInTexts.unverifiedWhy)
    t.ok(isSignedOut(await tab.open('/account')))
    const into = await post(wrong, asks.response.url, { account: person.account, password: person.password })
    t.equal(into.title, own.sections.profile)
  })

  await t.test('a passkey comes second, before the recovery codes, which stay good; and others of the account are alternatives', async (t) => {
    const { person, key, codes } = await withPasskey({ uv: false })
    const second = await arrive(person)
    t.equal(second.title, secondStep.title.passkey)
    t.match((await post(second, second.response.url, { way: 'passkey', ...answer(second, createAuthenticator(harness.url)) })).text, errors.wrongPasskey)
    const into = await post(second, second.response.url, { way: 'passkey', ...answer(second, key) })
    t.equal(into.title, own.sections.profile)
    const elsewhere = await arrive(person)
    const byCode = await post(elsewhere, elsewhere.response.url, { way: 'recovery', code: codes[0]! })
    t.equal((await passCodeUsed(byCode)).title, own.sections.profile)
    const again = await arrive(person)
    t.equal((await post(again, again.response.url, { way: 'passkey', ...answer(again, key) })).title, own.sections.profile, 'canonical/identity-platform-login-ui#794: a code disables no passkey')
  })

  await t.test('one text for unknown, removed and foreign passkeys, disabled users and wrong origins', async (t) => {
    const [removed, foreign, disabled, wrong] = [await withPasskey(), await withPasskey(), await withPasskey(), await withPasskey()]
    const id = async ({ user_id }: Person) => Object.entries((await records.get(user_id))!.ways!).find(([, { kind }]) => kind === 'passkey')![0]
    await kit.app.identity.ways.remove({ user_id: removed.person.user_id, epoch: 0 }, await id(removed.person), { isEnd: false })
    const { ways } = (await records.get(foreign.person.user_id))!
    for (const way of Object.values(ways!)) if (way.kind === 'passkey') way.rp = 'old.example'
    await records.update(foreign.person.user_id, { set: { ways: ways! } })
    await records.update(disabled.person.user_id, { set: { disabled_at: '2026-01-01T00:00:00.000Z' } })
    const unknown = createAuthenticator(harness.url)
    unknown.create({ challenge: '', rp: { id: 'localhost', name: '' }, user: { id: 'x', name: '', displayName: '' } })
    const texts = new Map<string, string>()
    const tell = (text: string) => text.replaceAll(/data-(passkey|signals)="[^"]*"|value="[^"]*"/g, '').replace(/<div\s+hidden><\/div>\n/, '')
    for (const [name, key, changes] of [
      ['unknown', unknown], ['removed', removed.key], ['foreign', foreign.key], ['disabled', disabled.key], ['origin', wrong.key, { origin: 'https://id.example' }]
    ] as const) {
      const page = await enterByPasskey(browser(), key, changes)
      t.equal(page.response.status, 400)
      t.match(page.text, errors.wrongPasskey, name)
      t.equal(page.text.includes('signalUnknownCredential'), name === 'unknown' || name === 'removed', `${name}: what the device may forget`)
      texts.set(tell(page.text), name)
    }
    t.equal(texts.size, 1, [...texts.values()].join())
  })

  await t.test('securo#534, NodeBB/nodebb-plugin-2factor#122: a counter that falls locks nobody out, and transports are those that were sent', async (t) => {
    const { key, person } = await withPasskey({ counter: 5, transports: ['hybrid', 'internal', 'new'] })
    for (const counter of [9, 2, 0]) t.equal((await enterByPasskey(browser(), key, { counter })).title, own.sections.profile)
    const second = await arrive(person)
    t.strictSame(readPasskeyOptions(second.text).options.allowCredentials?.map(({ transports }) => transports), [['hybrid', 'internal', 'new']])
  })

  await t.test('kratos#2225: an account does not demand the passkey that was removed; everybody else is signed out', async (t) => {
    const { person, key, page } = await withPasskey()
    const elsewhere = await enterByPasskey(browser(), key)
    const list = await page.browser.open('/account/methods')
    const path = listRemovals(list)[0]!
    const form = await page.browser.open(path)
    t.match(form.text, own.removeLastWhy)
    const done = await post(form, path, { current_password: person.password, ...answer(form, key), end_sessions: 'yes' })
    t.match(done.text, own.done['passkey-removed'])
    t.match(done.text, 'signalAllAcceptedCredentials')
    t.strictSame(await kindsOf(person), [])
    t.ok(isSignedOut(await elsewhere.browser.open('/account')))
    t.equal((await arrive(person)).title, own.sections.profile)
    t.equal(await store.collection<CredentialRecord>('credentials').count({ equal: { user_id: person.user_id } }), 0)
    t.match((await kit.mails.all()).findLast(({ to }) => to === person.account)?.subject, /passkey was removed/)
  })

  await t.test('a proof by passkey is of this account and this browser, is good once, and a code is not spent for it', async (t) => {
    const { person, key, page } = await withPasskey()
    const other = await withPasskey()
    const form = await page.browser.open('/account/password')
    const change = async (fields: Record<string, string>) => await post(form, '/account/password', { password: 'another horse', ...fields })
    t.match((await change(answer(form, other.key))).text, errors.wrongPasskey, "another account's")
    t.match((await change(answer(await other.page.browser.open('/account/password'), key))).text, errors.wrongPasskey, "another browser's challenge")
    t.match((await change(answer(form, key, { uv: false }))).text, errors.passkeyUnverified)
    t.match((await change({ current_password: 'wrong', ...answer(form, key) })).text, own.wrongCurrent, 'a password that is given is compared')
    const proof = answer(await page.browser.open('/account/password'), key)
    t.match((await change(proof)).text, own.done.password)
    t.match((await post(await page.browser.open('/account/password'), '/account/password', { password: 'a third horse', ...proof })).text, errors.wrongPasskey, 'a replay')
    t.equal((await users.signIn(person.account, 'another horse'))?.user_id, person.user_id)
  })

  await t.test('a person whose way in is a passkey removes their password, and goes on with the passkey alone', async (t) => {
    const { person, key, page } = await withPasskey()
    const form = await page.browser.open('/account/password/remove')
    const done = await post(form, '/account/password/remove', answer(form, key))
    t.match(done.text, own.done['password-removed'])
    t.equal(done.title, own.sections.methods, 'this browser stays signed in')
    t.equal(await users.signIn(person.account, person.password), null)
    const bare = await done.browser.open('/account/password')
    t.notMatch(bare.text, 'name="current_password"')
    t.match((await post(bare, '/account/password', { password: 'a horse again', ...answer(bare, key, { uv: false }) })).text, errors.passkeyUnverified)
    t.match((await post(bare, '/account/password', { password: 'a horse again' })).text, own.wrongCurrent)
    const list = await done.browser.open('/account/methods')
    const path = listRemovals(list)[0]!
    const last = await done.browser.open(path)
    t.match((await post(last, path, answer(last, key))).text, own.lastWay, 'it cannot be removed then')
    const again = await done.browser.open('/account/password')
    t.match((await post(again, '/account/password', { password: 'a horse again', ...answer(again, key) })).text, own.done.password)
  })

  await t.test('a passkey that verifies opens an app that was closed', async (t) => {
    const person = await addPerson()
    const { page, seed } = await enrol(kit.clock, await arrive(person), person.password)
    const { key } = await enrolPasskey(page, { current_password: person.password, code: await nextCode(kit.clock, seed) })
    const { factors } = kit.app.identity
    for (let index = 0; index < 130; index++) {
      await factors.verifyTotp(person.user_id, '000000').catch(() => kit.clock.advance(3_600_000))
    }
    await t.rejects(factors.verifyTotp(person.user_id, await nextCode(kit.clock, seed)), { code: 'ErrLimit' })
    t.equal((await enterByPasskey(browser(), key)).title, own.sections.profile)
    t.type(await factors.verifyTotp(person.user_id, await nextCode(kit.clock, seed)), 'string')
  })

  await t.test('the API lists passkeys and removes them with a sign-in by passkey', async (t) => {
    const { person, key } = await withPasskey()
    const app = await harness.register({ scopes: ['account:security'] })
    const asked = askCode(app, { scope: 'openid account:security' })
    const { left } = await enterByPasskey(browser(), key, {}, asked.url)
    const { body } = await harness.post('token', { grant_type: 'authorization_code', code: left!.searchParams.get('code')!, code_verifier: asked.verifier, redirect_uri: app.redirect_uri }, app)
    const headers = { authorization: `Bearer ${String(body['access_token'])}` }
    const { data } = (await kit.inject({ url: '/api/v1/user/factors', headers })).json()
    t.match(data, { factors: [{ kind: 'passkey', name: 'Laptop' }], recovery_codes: 10 })
    t.notMatch(JSON.stringify(data), key.id)
    t.equal((await kit.inject({ method: 'DELETE', url: `/api/v1/user/factors/${data.factors[0].factor_id}`, headers })).statusCode, 204)
    t.strictSame(await kindsOf(person), [])
  })
})
