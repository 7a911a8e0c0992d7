import t from 'tap'
import { askCode, startHarness } from '../oidc/harness.ts'
import type { Page } from '../oidc/browser.ts'
import { BUILT_IN } from '../../lib/pages/texts/language.ts'
import { enter, post } from './visits.ts'

const languageOf = ({ text }: Page) => /<html lang="([^"]*)"/.exec(text)?.[1]

/** The links of a page to itself in other languages, by language. */
const readChoices = ({ text }: Page) => Object.fromEntries([...text.matchAll(/<a href="([^"]*)" lang="([^"]*)" hreflang="\2">/g)].map(([, href = '', language = '']) => [language, href.replaceAll('&amp;', '&')]))

/** Follows the link to a language, as a browser resolves it against the URL of the page. */
const choose = async (page: Page, language: string) => await page.browser.open(new URL(readChoices(page)[language] ?? '', page.response.url).href)

t.test('every page has a link to itself in each other language, and the choice is kept for every page and mail', async (t) => {
  const harness = await startHarness(t, { signUp: true })
  const { kit, browser, user, register } = harness
  const app = await register()
  for (const path of ['/account/sign-in?next=email', '/account/forgot', '/account/sign-up', '/account/reset?token=none', '/api/v1/auth/device?user_code=WDJB-MJHT', '/api/v1/auth/session/end', askCode(app).url, '/api/v1/auth/interaction/none']) {
    const page = await browser().open(path)
    t.equal(languageOf(page), 'en', path)
    t.strictSame(Object.keys(readChoices(page)), BUILT_IN.filter((language) => language !== 'en'), path)
    const german = await choose(page, 'de')
    t.equal(languageOf(german), 'de', path)
    t.equal(german.response.status, page.response.status, `${path}: the same page`)
    for (const [name, value] of new URL(page.response.url).searchParams) t.equal(new URL(german.response.url).searchParams.get(name), value, `${path}: ${name} stays`)
    t.equal(languageOf(await german.browser.open('/account/forgot')), 'de', 'other pages follow')
    t.equal(languageOf(await german.browser.open('/account/forgot', { headers: { 'accept-language': 'en' } })), 'de')
    t.equal(languageOf(await choose(german, 'en')), 'en', 'and back')
  }

  const tab = await choose(await enter(harness), 'de')
  t.equal(tab.title, 'Profil')
  t.equal(languageOf(await tab.browser.open('/account/email')), 'de')
  await post(tab, '/account/email', { verify: 'yes' })
  t.match((await kit.mails.next({ to: user.account })).subject, /Adresse/)
  const form = await choose(await browser().open('/account/forgot'), 'de')
  const sent = await form.submit({ typed: user.account })
  t.equal(languageOf(sent), 'de')
  t.strictSame(readChoices(sent), {}, 'a page that cannot be opened again has no links to itself')
  const link = new URL((await kit.mails.next({ to: user.account })).link!)
  t.equal(languageOf(await browser().open(link.href)), 'en')
  const wrong = await (await sent.browser.open(link.href)).submit({ password: '' })
  t.equal((await choose(wrong, 'en')).title, 'Set a new password', 'a form that was refused keeps its link')
})

t.test("a person's choice counts more than what an app asks for", async (t) => {
  const { browser, register } = await startHarness(t)
  const app = await register()
  const tab = browser()
  const asked = await tab.open(askCode(app, { ui_locales: 'de' }).url)
  t.equal(languageOf(asked), 'de')
  t.equal(languageOf(await choose(asked, 'en')), 'en')
  t.equal(languageOf(await tab.open(askCode(app, { ui_locales: 'de' }).url)), 'en')
  t.equal(languageOf(await tab.open('/account?ui_locales=de')), 'en')
})

t.test('the cookie of the choice has nothing but one of our languages', async (t) => {
  const { browser, url } = await startHarness(t)
  const tab = browser()
  const read = async (path: string) => (await tab.fetch(`${url}${path}`)).headers.getSetCookie().filter((line) => line.startsWith('identity_language'))
  t.strictSame(await read('/account/forgot?language=de'), ['identity_language_choice=de; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax'])
  for (const path of ['/account/forgot?language=de', '/account/forgot?language=x%0d%0aevil', '/account/forgot?language=de&language=en', `/account/forgot?language=${'x'.repeat(5000)}`]) {
    t.strictSame(await read(path), [], path.slice(0, 60))
  }
  const long = await tab.open(`/account/forgot?x=${'y'.repeat(5000)}`)
  t.strictSame(readChoices(long), {}, 'a long query is not repeated')
  const page = await tab.open('/account/forgot?x=%22%3E%3Cscript%3E')
  t.notMatch(page.text, '<script')
})
