import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readOwnTexts } from '../../lib/mail/texts/own-texts.ts'
import { createLanguages } from '../../lib/pages/texts/language.ts'
import { build } from '../helpers/build.ts'
import { createCli } from '../helpers/cli.ts'

const root = t.testdir()
let count = 0

/** Makes a folder with these files. */
function write (files: Record<string, unknown>): string {
  const folder = join(root, String(count++))
  mkdirSync(folder)
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content))
  return folder
}

const FRENCH = {
  pages: {
    signIn: { title: 'Connexion', submit: '<b>Se connecter</b> & "entrer"' },
    links: { forgot: { title: 'Mot de passe oublié' }, setPassword: { forAccount: 'pour {account} <i>', hint: 'Au moins {characters} caractères.' } },
    account: { times: { one: '{count} fois', many: '{count} de fois', other: '{count} fois' } }
  },
  mails: {
    layout: { help: 'Aide' },
    reset: { subject: 'Nouveau mot de passe', heading: 'Nouveau <b>mot de passe</b>', text: 'Bonjour de {service}.\n\nChoisissez un mot de passe.', button: 'Choisir' }
  }
}

t.test('a file of a third language adds it to pages and mails; what it lacks is in English', async (t) => {
  const texts = write({ 'fr.json': FRENCH, 'pt-BR.json': { pages: { signIn: { title: 'Entrar' } } }, 'README.md': 'not read' })
  const kit = await build(t, { oidc: { texts, name: 'Acme', helpAddress: 'help@example.com' } })
  const open = async (path: string, accept = '') => (await kit.inject({ url: path, headers: accept === '' ? {} : { 'accept-language': accept } })).body
  const page = await open('/account/sign-in', 'fr-CA, en;q=0.5')
  t.match(page, '<html lang="fr">')
  t.match(page, '<title>Connexion - Acme</title>')
  t.match(page, '&lt;b&gt;Se connecter&lt;/b&gt; &amp; &quot;entrer&quot;</button>', 'its HTML is escaped')
  t.match(page, '<label for="account">Account', 'a text that it lacks')
  t.match(await open('/account/sign-in?ui_locales=fr'), '<html lang="fr">')
  for (const accept of ['pt', 'pt-BR', 'pt-br;q=0.9, fr;q=0.1']) t.match(await open('/account/sign-in', accept), '<html lang="pt-BR">', accept)
  for (const locales of ['pt', 'pt-PT', 'xx PT-br']) t.match(await open(`/account/sign-in?ui_locales=${locales.replace(' ', '%20')}`), '<html lang="pt-BR">', locales)
  t.match(await open('/account/sign-in', 'de'), '<html lang="de">')
  t.strictSame((await kit.inject('/.well-known/openid-configuration')).json<{ ui_locales_supported: string[] }>().ui_locales_supported, ['en', 'de', 'fr', 'pt-BR'])
  t.match(page, /<a href="\?language=pt-BR" lang="pt-BR"/, 'and a page has a link to each')

  await kit.app.identity.users.create({ data: { account: 'ann@example.com', password: 'p' } })
  await kit.inject({ method: 'POST', url: '/api/v1/auth/forgot', headers: { 'accept-language': 'fr' }, payload: { data: { account: 'ann@example.com' } } })
  const { subject, text, html, link } = await kit.mails.next()
  t.equal(subject, 'Nouveau mot de passe')
  t.match(text, /^Nouveau <b>mot de passe<\/b>\n\nBonjour de Acme\.\n\nChoisissez un mot de passe\.\n\nhttp/)
  t.match(html, '<html lang="fr">')
  t.match(html, '&lt;b&gt;mot de passe&lt;/b&gt;</h1>')
  t.match(html, /Bonjour de Acme\.<\/p>\n<p[^>]*>Choisissez/)
  t.match(html, '>Aide</a>')
  t.match(html, 'The link works once', 'a text that it lacks')
  const form = await open(link!.slice(link!.indexOf('/account')), 'fr')
  t.match(form, 'pour <strong><bdi>ann@example.com</bdi></strong> &lt;i&gt;')
})

t.test('a file of a language that the service brings replaces single texts', async (t) => {
  const texts = write({ 'de.json': { pages: { signIn: { title: 'Hereinspaziert' } }, mails: { reset: { subject: 'Servus von {service}' } } } })
  const kit = await build(t, { oidc: { texts } })
  const { body } = await kit.inject({ url: '/account/sign-in', headers: { 'accept-language': 'de' } })
  t.match(body, '<h1>Hereinspaziert</h1>')
  t.match(body, '<label for="account">Konto')
  t.strictSame(readOwnTexts(texts).warnings, [], 'nothing is missing')
})

t.test('a wrong file is refused, with its name and the keys', async (t) => {
  for (const [files, message] of [
    [{ 'fr.json': { pages: { signIn: { titl: 'x' } } } }, 'fr.json: pages.signIn.titl: is not a text of this release, did you mean title?'],
    [{ 'fr.json': { page: {} } }, 'fr.json: page: is not a text of this release, did you mean pages?'],
    [{ 'fr.json': { pages: { common: { goBack: 'Retour' } } } }, 'fr.json: pages.common.goBack: lacks the placeholder {app}'],
    [{ 'fr.json': { pages: { common: { goBack: 'Retour à {app} {name}' } } } }, 'fr.json: pages.common.goBack: has the unknown placeholder {name}; there is {app}'],
    [{ 'fr.json': { pages: { common: { cancel: '{service}' } } } }, 'fr.json: pages.common.cancel: has the unknown placeholder {service}'],
    [{ 'fr.json': { pages: { common: { cancel: ' ' } } } }, 'fr.json: pages.common.cancel: must be a text of 1 to 4000 characters'],
    [{ 'fr.json': { pages: { common: { cancel: ['x'] } } } }, 'fr.json: pages.common.cancel: must be a text of 1 to 4000 characters'],
    [{ 'fr.json': { pages: { common: { cancel: 'x'.repeat(4001) } } } }, 'fr.json: pages.common.cancel: must be a text of 1 to 4000 characters'],
    [{ 'fr.json': { pages: { common: 'x' } } }, 'fr.json: pages.common: must be an object'],
    [{ 'fr.json': { pages: { account: { times: { one: '{count}' } } } } }, 'fr.json: pages.account.times: must be a text, or have the form other'],
    [{ 'fr.json': { pages: { account: { times: { other: 'x', lots: '{count}' } } } } }, 'fr.json: pages.account.times.lots: is not one of zero, one, two, few, many, other; fr.json: pages.account.times.other: lacks the placeholder {count}'],
    [{ 'fr.json': { mails: { deleted: { button: 'x' } } } }, 'fr.json: mails.deleted.button: is not a text of this release'],
    [{ 'fr.json': { mails: { change: { text: 'x {account}' } } } }, 'fr.json: mails.change.text: lacks the placeholder {address}'],
    [{ 'fr.json': '{"pages": ' }, /^option oidc\.texts: fr\.json: is not JSON: /],
    [{ 'fr.json': '[]' }, 'fr.json: it: must be an object'],
    [{ 'fr.json': `"${'x'.repeat(1024 * 1024)}"` }, 'fr.json: is larger than 1048576 bytes'],
    [{ 'french.json': {} }, 'french.json: the name must be a language tag, as in fr.json or pt-BR.json'],
    [{ '__proto__.json': {} }, '__proto__.json: the name must be a language tag, as in fr.json or pt-BR.json'],
    [{ 'fr.json': '{"__proto__": {"x": 1}}' }, 'fr.json: __proto__: is not a text of this release'],
    [{ 'fr.json': { page: 1 }, 'it.json': { mail: 1 } }, 'fr.json: page: is not a text of this release, did you mean pages?; it.json: mail: is not a text of this release, did you mean mails?']
  ] as [Record<string, unknown>, string | RegExp][]) {
    const texts = write(files)
    t.throws(() => readOwnTexts(texts), { message: typeof message === 'string' ? `option oidc.texts: ${message}` : message })
  }
  await t.rejects(build(t, { oidc: { texts: write({ 'fr.json': { page: 1 } }) } }), { message: /^option oidc\.texts: fr\.json: page: / })
  await t.rejects(build(t, { oidc: { texts: '/no/such/folder' } }), { message: 'option oidc.texts: the folder cannot be read (ENOENT)' })
  const folder = write({})
  mkdirSync(join(folder, 'fr.json'))
  t.throws(() => readOwnTexts(folder), { message: 'option oidc.texts: fr.json: cannot be read (EISDIR)' })
})

t.test('texts that were exported are whole; missing ones are named', async (t) => {
  const run = createCli(write({}))
  for (const language of ['en', 'de']) {
    const { stdout, code } = await run(`texts export --language ${language}`)
    t.equal(code, 0)
    t.strictSame(readOwnTexts(write({ 'fr.json': stdout })).warnings, [], language)
  }
  const file = join(write({}), 'new', 'fr.json')
  t.match(await run(['texts', 'export', '--file', file]), { code: 0, stdout: '' })
  t.strictSame(readOwnTexts(join(file, '..')).warnings, [])
  t.match(await run(['texts', 'export', '--file', file]), { code: 1, stderr: /EEXIST/ }, 'no file is replaced')
  t.match(await run('texts export --language fr'), { code: 1, stderr: /--language: must be one of en, de/ })
  const { pages, mails } = JSON.parse((await run('texts export')).stdout) as Record<'pages' | 'mails', Record<string, Record<string, string>>>
  delete pages.signIn!.title
  delete mails.reset
  const folder = write({ 'fr.json': { pages, mails } })
  t.strictSame(readOwnTexts(folder).warnings, ['fr.json: 6 texts are missing and shown in English: pages.signIn.title, mails.reset.subject, mails.reset.heading, mails.reset.text, mails.reset.button and others'])
  const checked = await createCli(write({}), { IDENTITY_TEXTS: folder })('config check')
  t.match(checked, { code: 0, stderr: /warning: fr\.json: 6 texts are missing/ })
  const wrong = await createCli(write({}), { IDENTITY_TEXTS: write({ 'fr.json': { page: {} } }) })('config check')
  t.match(wrong, { code: 1, stderr: /IDENTITY_TEXTS: fr\.json: page: is not a text/ })
})

t.test('a language is chosen by its tag, by a longer one, or by another region', async (t) => {
  const { find, findAsked, check, tags } = createLanguages({ 'pt-BR': {}, 'zh-Hant': {}, de: {} })
  t.strictSame(tags, ['en', 'de', 'pt-BR', 'zh-Hant'])
  for (const [asked, found] of [['zh-Hant-TW', 'zh-Hant'], ['zh', 'zh-Hant'], ['zh-CN', 'zh-Hant'], ['PT-br', 'pt-BR'], ['de-AT-1996', 'de'], ['p', undefined], ['ptx', undefined], ['fr', undefined]] as const) t.equal(find(asked), found, asked)
  t.equal(findAsked(undefined, '*'), undefined, 'a program that asks for nothing')
  t.equal(findAsked(undefined, undefined), undefined)
  t.equal(findAsked(undefined, 'fr'), undefined)
  t.equal(findAsked('', 'fr, zh-Hant;q=0.5'), 'zh-Hant')
  t.equal(check('pt-BR'), 'pt-BR')
  t.equal(check('fr'), 'en', 'a language whose file is gone')
})
