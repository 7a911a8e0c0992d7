import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import { createAuthenticator } from '../../testing/authenticator.ts'
import { readPasskeyOptions } from '../../testing/passkey.ts'
import { enrol, listRemovals, nextCode, passCodeUsed, pathOf, readCodes, readSeed } from '../pages/factors.ts'
import { answer, beginPasskey, enrolPasskey, enterByPasskey } from '../pages/passkeys.ts'
import { addUser, enter, isSignedOut, post } from '../pages/visits.ts'
import type { Page } from './browser.ts'
import { atLocalhost, eachStore } from './harness.ts'

const { account: own, errors, secondStep } = en

/** The path of the form for a recovery code, where a page offers it. */
const findRecovery = ({ text }: Page) => /<a href="([^"]*way=recovery)"/.exec(text)?.[1]?.replaceAll('&amp;', '&')

// Each fault locked people out of other services, or let a stranger in.
eachStore(t, 'faults of other services', async (t, start) => {
  const harness = await start(await atLocalhost())
  const { kit, browser } = harness
  const { accounts, users, factors } = kit.app.identity
  let count = 0
  const addPerson = async () => await addUser(harness, `person${count++}@example.com`)
  type Person = Awaited<ReturnType<typeof addPerson>>
  const arrive = async (person: Person, tab = browser()) => await enter(harness, '/account', tab, person)
  /** A link for a new password, as the person gets it. */
  const forget = async ({ account }: Person) => {
    await kit.mails.all()
    await accounts.forgotPassword(account, { ip: '127.0.0.1' })
    return (await kit.mails.next({ to: account })).link!
  }

  await t.test('kc#44115: after a recovery code, another app is enrolled, and its code is asked for, not a recovery code', async (t) => {
    const person = await addPerson()
    const { codes } = await enrol(kit.clock, await arrive(person), person.password)
    const lost = await arrive(person)
    const into = await passCodeUsed(await (await lost.browser.open(findRecovery(lost)!)).submit({ code: codes[0]! }))
    t.equal(into.title, own.sections.profile)
    const list = await into.browser.open('/account/methods')
    const former = listRemovals(list)[0]!
    const begun = await post(list, '/account/factors', { name: 'New phone', current_password: person.password, code: codes[1]! })
    const seed = readSeed(begun)
    const added = await post(begun, pathOf(begun), { code: await nextCode(kit.clock, seed) })
    t.match(added.text, own.done['factor-more'])
    const removed = await post(added, former, { current_password: person.password, code: codes[2]! })
    t.match(removed.text, own.done['factor-removed'])
    const next = await arrive(person)
    t.equal(next.title, secondStep.title.totp)
    t.ok(findRecovery(next), 'a code is behind another way')
    t.equal((await next.submit({ code: await nextCode(kit.clock, seed) })).title, own.sections.profile)
  })

  await t.test('kc#42050: recovery codes are not offered to who has none left', async (t) => {
    const person = await addPerson()
    const { codes, seed } = await enrol(kit.clock, await arrive(person), person.password)
    for (const code of codes.slice(1)) t.type(await factors.verifyCode(person.user_id, code), 'string')
    const page = await arrive(person)
    const path = findRecovery(page)!
    t.ok(path, 'the last one is offered')
    t.type(await factors.verifyCode(person.user_id, codes[0]!), 'string')
    const later = await arrive(person)
    t.equal(later.title, secondStep.title.totp)
    t.equal(findRecovery(later), undefined)
    const asked = await page.browser.open(path)
    t.equal(asked.title, secondStep.title.totp, 'nor to who asks for the form')
    t.equal((await asked.submit({ code: await nextCode(kit.clock, seed) })).title, own.sections.profile)
  })

  await t.test('kratos#3386: a person who never knew a password gets one by mail, without a former one, and is not locked out', async (t) => {
    const person = await addPerson()
    const { page, key } = await enrolPasskey(await arrive(person), { current_password: person.password })
    const form = await page.browser.open('/account/password/remove')
    await post(form, '/account/password/remove', answer(form, key))
    t.equal(await users.signIn(person.account, person.password), null, 'no password')
    const set = await browser().open(await forget(person))
    t.match(set.text, 'name="password"')
    t.notMatch(set.text, 'current_password')
    const password = 'the first horse'
    t.equal((await set.submit({ password })).response.status, 200)
    const second = await arrive({ ...person, password })
    t.equal(second.title, secondStep.title.passkey, 'the mailbox alone lets nobody in')
    t.equal((await post(second, second.response.url, { way: 'passkey', ...answer(second, key) })).title, own.sections.profile)
    t.equal((await enterByPasskey(browser(), key)).title, own.sections.profile, 'and the passkey alone, as before')
  })

  await t.test('a passkey that waits for its recovery codes to be confirmed is not forgotten by the device', async (t) => {
    const person = await addPerson()
    const begun = await beginPasskey(await arrive(person), { current_password: person.password })
    const key = createAuthenticator(harness.url)
    const shown = await post(begun, '/account/factors/passkeys', { name: 'Laptop', attestation: key.create(readPasskeyOptions(begun.text).options) })
    t.equal(readCodes(shown).length, 10)
    const refused = await enterByPasskey(browser(), key)
    t.match(refused.text, errors.wrongPasskey)
    t.notMatch(refused.text, 'signalUnknownCredential')
    kit.clock.advance(31 * 60_000)
    t.match((await enterByPasskey(browser(), key)).text, 'signalUnknownCredential', 'after half an hour it cannot be confirmed any more')
  })

  await t.test('ba#2728: a known browser is asked for the second step at the first sign-in and at each later one', async (t) => {
    const person = await addPerson()
    const { seed } = await enrol(kit.clock, await arrive(person), person.password)
    const tab = browser()
    for (let round = 1; round <= 3; round++) {
      const page = await arrive(person, tab)
      t.equal(page.title, secondStep.title.totp, `sign-in ${round}`)
      t.not((await tab.open('/account')).title, own.sections.profile, 'the password alone is not enough')
      const into = await page.submit({ code: await nextCode(kit.clock, seed) })
      t.equal(into.title, own.sections.profile)
      await post(into, '/account/sign-out')
      t.ok(isSignedOut(await tab.open('/account')))
    }
  })

  await t.test('kc#51833, CVE-2026-18963: nobody enters the reset past the mail', async (t) => {
    const person = await addPerson()
    const tab = browser()
    const asked = await (await tab.open('/account/forgot')).submit({ typed: person.account })
    t.equal(asked.response.status, 200)
    const link = (await kit.mails.next({ to: person.account })).link!
    const token = new URL(link).searchParams.get('token')!
    const [app, thief] = [await enrol(kit.clock, await arrive(await addPerson()), 'a horse too'), await addPerson()]
    t.equal(app.codes.length, 10)
    const other = new URL(await forget(thief)).searchParams.get('token')!
    // The browser that asked has its cookies, and knows the account.
    for (const forged of ['', person.account, person.user_id, 'x'.repeat(43), token.slice(1), ...tab.cookies()]) {
      const query = new URLSearchParams({ token: forged, account: person.account, user_id: person.user_id })
      const page = await tab.open(`/account/reset?${query}`)
      t.ok(page.response.status >= 400, 'shows no form')
      t.notMatch(page.text, 'name="password"')
      const sent = await tab.fetch('/account/reset', {
        method: 'POST', headers: { origin: tab.origin }, body: new URLSearchParams({ ...Object.fromEntries(query), password: 'of the thief', purpose: 'reset' })
      })
      t.ok(sent.status >= 400, 'takes no password')
      const { status } = await tab.fetch('/api/v1/auth/reset', {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ data: { token: forged, password: 'of the thief' } })
      })
      t.ok(status >= 400, 'nor does the API')
    }
    // With the link of their own account, a thief sets their own password only.
    await tab.fetch('/account/reset', {
      method: 'POST', headers: { origin: tab.origin }, body: new URLSearchParams({ token: other, account: person.account, user_id: person.user_id, password: 'of the thief' })
    })
    t.equal(await users.signIn(person.account, 'of the thief'), null)
    t.equal((await users.signIn(thief.account, 'of the thief'))?.user_id, thief.user_id)
    t.equal((await users.signIn(person.account, person.password))?.user_id, person.user_id)
    t.ok(isSignedOut(await tab.open('/account')))
    t.equal((await (await tab.open(link)).submit({ password: 'another horse' })).response.status, 200, 'the mailed link still works')
  })
})
