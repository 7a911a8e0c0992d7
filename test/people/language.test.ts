import t from 'tap'
import { askCode, eachStore, type Harness } from '../oidc/harness.ts'
import type { Browser } from '../oidc/browser.ts'
import { callAs } from '../helpers/people.ts'
import { post } from '../pages/visits.ts'

const DE = { 'accept-language': 'de-AT, en;q=0.5' }
const EN = { 'accept-language': 'en' }

/** Signs in to a page of the account in a browser with these headers. */
async function enterIn (tab: Browser, headers: Record<string, string>, who: { account: string, password: string }, path = '/account') {
  const form = await tab.open(path, { headers })
  return await post(form, form.response.url, { account: who.account, password: who.password }, headers)
}

const readLanguage = async ({ kit }: Harness, user_id: string) => {
  const { language, language_chosen } = (await kit.app.identity.store.collection('users').get(user_id) ?? {}) as { language?: string, language_chosen?: boolean }
  return [language, language_chosen]
}

eachStore(t, 'a person who did it all in German gets every notice in German', async (t, start) => {
  const harness = await start({ signUp: true, selfDelete: true })
  const { kit, browser } = harness
  const subject = async (to: string) => (await kit.mails.next({ to })).subject
  const tab = browser()
  const page = await tab.open('/account/sign-up', { headers: DE })
  await post(page, '/account/sign-up', { typed: 'eva@example.com' }, DE)
  const signUp = await kit.mails.next({ to: 'eva@example.com' })
  t.match(signUp.subject, /Konto erstellen/)
  const password = 'Pferd Batterie'
  await post(await tab.open(signUp.link!, { headers: DE }), '/account/sign-up', { token: signUp.token!, password }, DE)
  const eva = { ...(await kit.app.identity.users.getByAccount('eva@example.com'))!, account: 'eva@example.com', password }
  t.strictSame(await readLanguage(harness, eva.user_id), ['de', undefined])

  await kit.app.identity.accounts.changeAddress(eva.user_id, 'eva@new.example')
  const change = await kit.mails.next({ to: 'eva@new.example' })
  t.match(change.subject, /neue E-Mail-Adresse bestätigen/, 'a request that says nothing of a language')
  await kit.app.identity.accounts.verifyAddress(change.token!, eva.user_id)
  const changed = await kit.mails.next({ to: eva.account })
  t.match(changed.subject, /Ihre E-Mail-Adresse wurde geändert/)
  await kit.app.identity.accounts.undo(changed.token!)
  const restored = await kit.mails.next({ to: eva.account })
  t.match(restored.subject, /letzten Änderungen wurden rückgängig gemacht/)
  t.match(await subject('eva@new.example'), /rückgängig gemacht/)
  await kit.app.identity.accounts.setPassword(restored.token!, `${password}!`)
  t.match(await subject(eva.account), /Passwort wurde geändert/)
  await kit.app.identity.accounts.deleteOwn(eva.user_id)
  t.match(await kit.mails.next({ to: eva.account }), { subject: /Ihr Konto wurde gelöscht/, html: /<html lang="de">/ })
})

eachStore(t, 'the language of the last sign-in replaces that of the request that made the account, and a chosen one stays', async (t, start) => {
  const harness = await start()
  const { kit, user, browser, register } = harness
  const admin = await kit.mint({ roles: ['admin'] })
  const made = await callAs(kit, { ...admin.headers, ...EN }).post<{ data: { user_id: string } }>('/user', { data: { account: 'bob@example.com', password: 'a horse too' } })
  t.strictSame(await readLanguage(harness, made.body.data.user_id), ['en', undefined], 'of the request')
  t.strictSame(await readLanguage(harness, user.user_id), [undefined, undefined], 'a program without a request has none')
  const shown = await callAs(kit, admin.headers).get<{ data: object }>(`/user/${made.body.data.user_id}`)
  t.notOk('language' in shown.body.data, 'the API does not show it')

  const bob = { account: 'bob@example.com', password: 'a horse too' }
  const read = async () => await readLanguage(harness, made.body.data.user_id)
  await enterIn(browser(), DE, { ...bob, password: 'wrong' })
  t.strictSame(await read(), ['en', undefined], 'a refused sign-in changes nothing')
  const page = await enterIn(browser(), DE, bob)
  t.strictSame(await read(), ['de', undefined])
  await enterIn(browser(), EN, bob)
  t.strictSame(await read(), ['en', undefined])

  const chosen = await page.browser.open('/account?language=de', { headers: EN })
  t.match(chosen.text, '<html lang="de">')
  t.strictSame(await read(), ['de', true])
  await enterIn(browser(), EN, bob)
  t.strictSame(await read(), ['de', true], 'the language of a browser is no choice')
  const app = await register()
  const asked = await browser().open(askCode(app, { ui_locales: 'en' }).url)
  await asked.submit(bob)
  t.strictSame(await read(), ['de', true], 'nor is that of an app')
  await page.browser.open('/account?language=fr')
  t.strictSame(await read(), ['de', true], 'nor one that we do not have')
  await page.browser.open('/account?ui_locales=en')
  t.strictSame(await read(), ['de', true], 'nor is a link with a language')
  await page.browser.open('/account?language=en')
  t.strictSame(await read(), ['en', true])

  const signing = await browser().open(askCode(app, { ui_locales: 'de' }).url)
  await signing.submit({ account: user.account, password: user.password })
  t.strictSame(await readLanguage(harness, user.user_id), ['de', undefined], 'the language that an app asked for, as the pages show it')
})

eachStore(t, 'an invited person has the language of the invitation, and then their own', async (t, start) => {
  const harness = await start()
  const { kit } = harness
  const admin = await kit.mint({ roles: ['admin'] })
  const invite = async (headers: Record<string, string>, account: string) => (await callAs(kit, { ...admin.headers, ...headers }).post<{ data: { user_id: string } }>('/user/invite', { data: { account } })).body.data.user_id
  const id = await invite(DE, 'cyd@example.com')
  const { subject, token } = await kit.mails.next({ to: 'cyd@example.com' })
  t.match(subject, /Sie sind eingeladen/)
  t.strictSame(await readLanguage(harness, id), ['de', undefined])
  await callAs(kit, EN).post('/auth/reset', { data: { token, password: 'a horse for cyd' } })
  t.strictSame(await readLanguage(harness, id), ['en', undefined])
  const other = await invite({}, 'dan@example.com')
  t.strictSame(await readLanguage(harness, other), [undefined, undefined])
  t.match((await kit.mails.next({ to: 'dan@example.com' })).subject, /you’re invited/)
})

t.test('a store that does not answer fails no sign-in', async (t) => {
  const { createLanguageMemory } = await import('../../lib/accounts/language.ts')
  const errors: unknown[] = []
  const users = { get: async () => { throw new Error('down') } }
  const { rememberLanguage } = createLanguageMemory({ users, onError: (error: unknown) => { errors.push(error) } } as unknown as Parameters<typeof createLanguageMemory>[0])
  await rememberLanguage('ann', 'de', { chosen: true })
  t.match(errors, [{ message: 'the language of a user was not stored' }])
})
