import t from 'tap'
import { askCode, startHarness } from '../oidc/harness.ts'
import { enter, post } from './visits.ts'

const GERMAN = /^<!DOCTYPE html>\n<html lang="de">/
const ENGLISH = /^<!DOCTYPE html>\n<html lang="en">/

t.test('a person who came with ui_locales keeps the language: on pages, in forms, redirects and mails', async (t) => {
  const harness = await startHarness(t)
  const { kit, user, browser } = harness
  const tab = browser()
  const form = await tab.open('/account/email?ui_locales=fr%20de-AT')
  t.match(form.text, GERMAN, 'after the redirect to the sign-in')
  const wrong = await post(form, form.response.url, { account: user.account, password: 'wrong' })
  t.equal(wrong.response.status, 400)
  t.match(wrong.text, GERMAN)
  const page = await enter(harness, '/account/email', tab)
  t.match(page.text, GERMAN)

  const paths = [...page.text.matchAll(/<a href="(\/account[^"]*)"/g)].map(([, path = '']) => path)
  t.ok(paths.length >= 6)
  for (const path of [...paths, '/account/none', '/account/forgot', '/account/reset?token=none']) t.match((await tab.open(path)).text, GERMAN, path)
  for (const [path, fields] of [['/account', { name: 'A' }], ['/account', { name: 'x'.repeat(300) }], ['/account/sessions', { others: 'yes' }], ['/account/email', { verify: 'yes' }]] as const) {
    t.match((await post(page, path, fields)).text, GERMAN, JSON.stringify(fields).slice(0, 30))
  }
  t.match((await kit.mails.next({ to: user.account })).subject, /Adresse/)
  const forgot = await tab.open('/account/forgot')
  t.match((await forgot.submit({ typed: user.account })).text, GERMAN)
  const mail = await kit.mails.next({ to: user.account })
  t.match(mail.subject, /Passwort/)
  t.match((await tab.open(`/account/reset?token=${mail.token}`)).text, GERMAN)

  t.match((await tab.open('/account?ui_locales=fr')).text, GERMAN, 'a language that we do not have changes nothing')
  t.match((await tab.open('/api/v1/auth/session/end')).text, GERMAN, 'a page of the authorization server')
  t.match((await browser().open('/account', { headers: { 'accept-language': 'en' } })).text, ENGLISH, 'another browser')
  t.match((await post(page, '/account/sign-out')).text, GERMAN)
  t.match((await tab.open('/account?ui_locales=en')).text, ENGLISH)
  t.match((await tab.open('/account')).text, ENGLISH)
})

t.test('the cookie of the language has nothing of what was asked for, and is set once', async (t) => {
  const { browser, url } = await startHarness(t)
  const tab = browser()
  const read = async (path: string) => (await tab.fetch(`${url}${path}`)).headers.getSetCookie().filter((line) => line.startsWith('identity_language'))
  t.same(await read('/account/forgot?ui_locales=de-x-%0d%0aevil%20en'), ['identity_language=de; Path=/; HttpOnly; SameSite=Lax'])
  t.same(await read('/account/forgot?ui_locales=de'), [])
  t.same(await read('/account/forgot?ui_locales=x&ui_locales=en'), [])
})

t.test("the language of an app's sign-in goes on with a forgotten password", async (t) => {
  const { register, browser } = await startHarness(t)
  const tab = browser()
  const page = await tab.open(askCode(await register(), { ui_locales: 'de' }).url)
  const [, forgot = ''] = /href="([^"]*forgot[^"]*)"/.exec(page.text) ?? []
  t.match((await tab.open(forgot)).text, GERMAN)
})
