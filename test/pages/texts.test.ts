import t from 'tap'
import { html } from '../../lib/pages/html.ts'
import { OUR_LANGUAGES, createLanguages } from '../../lib/pages/texts/language.ts'
import { de } from '../../lib/pages/texts/de.ts'
import { en } from '../../lib/pages/texts/en.ts'
import { de as mailsInGerman } from '../../lib/mail/texts/de.ts'
import { en as mailsInEnglish } from '../../lib/mail/texts/en.ts'
import { composeMail } from '../../lib/mail/compose.ts'
import { type MailLook, createMailLook } from '../../lib/mail/look.ts'
import { renderPage } from '../../lib/pages/index.ts'
import { createLook } from '../../lib/pages/look.ts'
import { compileTexts, dropLink, isPlural, listPlaceholders } from '../../lib/pages/texts/template.ts'
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
  ] as const) t.equal(OUR_LANGUAGES.choose(locales, accept), language, `${String(locales).slice(0, 20)} | ${accept?.slice(0, 30)}`)
})

/** The keys of all texts, each with its placeholders. */
function describe (texts: object, path = ''): string[] {
  return Object.entries(texts).flatMap(([key, value]: [string, string | object]) => {
    if (typeof value !== 'string' && !isPlural(value)) return describe(value, `${path}${key}.`)
    const forms = typeof value === 'string' ? [value] : Object.values(value)
    return `${path}${key}: ${[...new Set(forms.flatMap(listPlaceholders))].sort().join(' ')}`
  })
}

t.test('every language has every text, with the same placeholders', async (t) => {
  t.strictSame(describe(de).sort(), describe(en).sort())
  t.strictSame(describe(mailsInGerman).sort(), describe(mailsInEnglish).sort(), 'of mails too')
  t.strictSame(describe({ a: 'x {two} {one}', b: { c: { one: 'a', other: '{n}' } } }), ['a: one two', 'b.c: n'])
})

t.test('a text is escaped, and so are its values', async (t) => {
  const english = { plain: 'a {b', html: 'Hello {who}, {who} & {place}', count: { one: '{count} app', other: '{count} apps' }, group: { inner: 'inner', missing: 'only {lang}' } } as const
  const texts = compileTexts(english, [{ group: { inner: 'x' } }, { plain: '<i>{', html: '<b>{place}</b> {who}', count: { one: '{count} apka', few: '{count} apki', other: '{count} apek' }, group: { inner: 'y' } }], 'pl', (words) => words)
  t.equal(texts.plain, '<i>{', 'a page escapes it')
  t.equal(String(texts.html({ who: '<Ann>', place: html`<bdi>${'R&D'}</bdi>` })), '&lt;b&gt;<bdi>R&amp;D</bdi>&lt;/b&gt; &lt;Ann&gt;')
  t.strictSame([1, 2, 5, 22].map((count) => String(texts.count({ count }))), ['1 apka', '2 apki', '5 apek', '22 apki'], 'forms by the rules of the language')
  t.equal(texts.group.inner, 'x')
  t.equal(String(texts.group.missing({ lang: 'English' })), 'only English', 'a text that is missing is in English')
  t.equal(String(compileTexts(english, [], 'pl', (words) => words).count({ count: 2 })), '2 apps', 'with the forms of English')
  t.equal(String(compileTexts(english, [{ count: '{count}x' }], 'de', (words) => words).count({ count: 1 })), '1x', 'one form for all numbers')
})

t.test('the words of a text in brackets link to the help of the operator', async (t) => {
  const english = { ask: 'Too many. [Contact us].', who: 'Not {who}? [Ask {who}].', plain: 'none' } as const
  const compile = (texts: object[]) => compileTexts(english, texts, 'de', (words) => html`<a href="x">${words}</a>`)
  const texts = compile([])
  t.equal(String(texts.ask), 'Too many. <a href="x">Contact us</a>.')
  t.equal(String(texts.who({ who: '[<Ann>]' })), 'Not [&lt;Ann&gt;]? <a href="x">Ask [&lt;Ann&gt;]</a>.', 'brackets of a value are none')
  const own = compile([{ ask: 'Zu viele.', plain: '[so]' }])
  t.equal(String(own.ask), 'Zu viele.', 'a text of an operator needs no link')
  t.equal(own.plain, '[so]', 'and brackets of a text without a link are brackets')

  for (const [helpAddress, shown] of [['help@acme.example', '<a href="mailto:help@acme.example">Contact support</a>'], ['https://acme.example/help', '<a href="https://acme.example/help">Contact support</a>']] as const) {
    const look = createLook({ helpAddress })
    const page = renderPage('second-step', { action: '/x', kind: 'totp', others: [] }, look, 'en')
    t.match(page, `backup codes? ${shown}.`)
    t.notMatch(page, '[object')
    t.notMatch(renderPage('enrol', { action: '/x', client: undefined, kind: 'totp', view: { at: 'offer' } } as never, look, 'en'), '[object')
  }
  t.match(renderPage('error', { message: ({ errors }) => errors.passwordClosed }, createLook(), 'de'), 'fest, oder wenden Sie sich an den Support.', 'words without a help address')
})

t.test('an email links to the help of the operator, and its plain text has the address once', async (t) => {
  const own = createLanguages({ en: { mails: { 'codes-renewed': { subject: '[Acme] codes' } } } })
  const compose = (look: MailLook) => composeMail('codes-renewed', { to: 'ann@example.org', language: 'en', languages: own, values: { service: 'R&D [x]', time: 'now', place: 'here' }, look })
  const { html: rich, text, subject } = compose(createMailLook({ helpAddress: 'help@acme.example' }))
  t.match(rich, /and <a href="mailto:help@acme\.example" style="[^"]*">contact R&amp;D \[x\] support<\/a>\./)
  t.equal(subject, '[Acme] codes', 'brackets of an operator stay')
  t.match(text, 'and contact R&D [x] support.')
  t.equal(text.split('help@acme.example').length, 2)
  t.equal(dropLink('[Ask us], or [write].'), 'Ask us, or write.', 'of several links too')
  t.match(compose(createMailLook()).html, 'and contact R&amp;D [x] support.')
})

t.test('a page is in the language of the app, or of the browser', async (t) => {
  const { register, browser } = await startHarness(t)
  const app = await register()
  const asked = await browser().open(askCode(app, { ui_locales: 'de-AT en' }).url)
  t.match(asked.text, '<html lang="de">')
  t.equal(asked.title, 'Anmelden')
  const wrong = await asked.submit({ account: 'nobody', password: 'wrong' })
  t.equal(wrong.title, 'Fehler: Anmelden', 'after a form too')
  t.match(wrong.text, 'E-Mail-Adresse, Benutzername oder Passwort ist falsch.')

  const headers = { 'accept-language': 'de' }
  for (const [path, heading] of [
    ['/api/v1/auth/device', 'Gerät verbinden'],
    ['/api/v1/auth/session/end', 'Abgemeldet'],
    ['/api/v1/auth/authorize?client_id=none', 'Es ist ein Fehler aufgetreten'],
    ['/api/v1/auth/interaction/none', 'Es ist ein Fehler aufgetreten'],
    ['/api/v1/auth/session/end?ui_locales=en', 'Signed out']
  ] as const) t.match((await browser().open(path, { headers })).text, `<h1>${heading}</h1>`, path)
})

t.test('an OAuth error has its description for developers, and a way back to the app', async (t) => {
  const { register, browser } = await startHarness(t)
  const app = await register({ name: 'Shop <b>' })
  const wrong = await browser().open(askCode(app, { redirect_uri: 'https://evil.example/cb', ui_locales: 'de' }).url)
  t.match(wrong.text, '<p class="error" role="alert">Diese Anfrage kann nicht ausgeführt werden.</p>')
  t.match(wrong.text, /<span lang="en"><code>invalid_redirect_uri<\/code> redirect_uri did not match/)
  t.match(wrong.text, '<a href="https://app.example/">Zurück zu <bdi>Shop &lt;b&gt;</bdi></a>')
  t.notMatch(wrong.text, 'href="https://evil')
})
