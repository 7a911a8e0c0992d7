import t from 'tap'
import { Html } from '../../lib/pages/html.ts'
import { LANGUAGES, chooseLanguage } from '../../lib/pages/texts/language.ts'
import { TEXTS } from '../../lib/pages/texts/index.ts'
import { askCode, startHarness } from '../oidc/harness.ts'

t.test('ui_locales decides on the language, then Accept-Language', async (t) => {
  for (const [locales, accept, language] of [
    [undefined, undefined, 'en'],
    [undefined, 'de', 'de'],
    [undefined, 'de-AT,de;q=0.9,en;q=0.8', 'de'],
    [undefined, 'fr,de;q=0.5,en;q=0.4', 'de'],
    [undefined, 'fr', 'en'],
    [undefined, '*', 'en'],
    [undefined, 'de;q=0', 'en'],
    [undefined, 'de, '.repeat(1000), 'de'],
    ['de-CH en', 'en', 'de'],
    ['fr DE', 'en', 'de'],
    ['en de', 'de', 'en'],
    ['fr', 'de', 'de'],
    ['', 'de', 'de'],
    ['derby', 'en', 'en'],
    [['de'], 'en', 'en'],
    [`${'x '.repeat(10)}de`, 'en', 'en']
  ] as const) t.equal(chooseLanguage(locales, accept), language, `${String(locales).slice(0, 20)} | ${accept?.slice(0, 30)}`)
})

/** The keys of all texts, and of each whether it is a function. */
function describe (texts: object, path = ''): string[] {
  return Object.entries(texts).flatMap(([key, value]) => typeof value === 'object' ? describe(value as object, `${path}${key}.`) : [`${path}${key}: ${typeof value}`])
}

t.test('every language has every text', async (t) => {
  for (const language of LANGUAGES) t.strictSame(describe(TEXTS[language]).sort(), describe(TEXTS.en).sort(), language)
  const [own, german] = [TEXTS.en, TEXTS.de].map((texts) => JSON.stringify(texts, (_key, value: unknown) =>
    typeof value === 'function' ? String((value as (...args: Html[]) => unknown)(new Html('X'), new Html('Y'))) : value))
  t.notMatch(german, /undefined|null|\[object/)
  t.notMatch(own, /undefined|null|\[object/)
})

t.test('a page is in the language of the app, or of the browser', async (t) => {
  const { register, browser } = await startHarness(t)
  const app = await register()
  const asked = await browser().open(askCode(app, { ui_locales: 'de-AT en' }).url)
  t.match(asked.text, '<html lang="de">')
  t.equal(asked.title, 'Anmelden')
  const wrong = await asked.submit({ account: 'nobody', password: 'wrong' })
  t.equal(wrong.title, 'Fehler: Anmelden', 'after a form too')
  t.match(wrong.text, 'Das Konto oder das Passwort ist falsch.')

  const headers = { 'accept-language': 'de' }
  for (const [path, heading] of [
    ['/api/v1/auth/device', 'Gerät verbinden'],
    ['/api/v1/auth/session/end', 'Abgemeldet'],
    ['/api/v1/auth/authorize?client_id=none', 'Das hat nicht geklappt'],
    ['/api/v1/auth/interaction/none', 'Das hat nicht geklappt'],
    ['/api/v1/auth/session/end?ui_locales=en', 'Signed out']
  ] as const) t.match((await browser().open(path, { headers })).text, `<h1>${heading}</h1>`, path)
})

t.test('an OAuth error has its description for developers, and a way back to the app', async (t) => {
  const { register, browser } = await startHarness(t)
  const app = await register({ name: 'Shop <b>' })
  const wrong = await browser().open(askCode(app, { redirect_uri: 'https://evil.example/cb', ui_locales: 'de' }).url)
  t.match(wrong.text, '<p class="error" role="alert">Die Anfrage kann nicht beantwortet werden.</p>')
  t.match(wrong.text, /<span lang="en"><code>invalid_redirect_uri<\/code> redirect_uri did not match/)
  t.match(wrong.text, '<a href="https://app.example/">Zurück zu <bdi>Shop &lt;b&gt;</bdi></a>')
  t.notMatch(wrong.text, 'href="https://evil')
})
