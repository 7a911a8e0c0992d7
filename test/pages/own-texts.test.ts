import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { refuseUnknown } from '../../cli/process/strict.ts'
import { en as mails } from '../../lib/mail/texts/en.ts'
import { readOwnTexts } from '../../lib/mail/texts/own-texts.ts'
import { RENAMED_TEXTS } from '../../lib/mail/texts/renamed-texts.ts'
import { en } from '../../lib/pages/texts/en.ts'
import { createLanguages } from '../../lib/pages/texts/language.ts'
import { prepareIdentity } from '../../plugins/prepare.ts'
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
  t.match(page, '<label for="account">Email or username', 'a text that it lacks')
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
  t.match(html, 'This link works once', 'a text that it lacks')
  const form = await open(link!.slice(link!.indexOf('/account')), 'fr')
  t.match(form, 'pour <strong><bdi>ann@example.com</bdi></strong> &lt;i&gt;')
})

t.test('a file of a language that the service brings replaces single texts', async (t) => {
  const texts = write({ 'de.json': { pages: { signIn: { title: 'Hereinspaziert' } }, mails: { reset: { subject: 'Servus von {service}' } } } })
  const kit = await build(t, { oidc: { texts } })
  const { body } = await kit.inject({ url: '/account/sign-in', headers: { 'accept-language': 'de' } })
  t.match(body, '<h1>Hereinspaziert</h1>')
  t.match(body, '<label for="account">E-Mail-Adresse oder Benutzername')
  t.strictSame(readOwnTexts(texts).warnings, [], 'nothing is missing')
})

t.test('a wrong file is refused, with its name and the keys', async (t) => {
  for (const [files, message] of [
    [{ 'fr.json': { pages: { common: { goBack: 'Retour' } } } }, 'fr.json: pages.common.goBack: lacks the placeholder {app}'],
    [{ 'fr.json': { pages: { common: { goBack: 'Retour à {app} {name}' } } } }, 'fr.json: pages.common.goBack: has the unknown placeholder {name}; there is {app}'],
    [{ 'fr.json': { pages: { common: { cancel: '{service}' } } } }, 'fr.json: pages.common.cancel: has the unknown placeholder {service}'],
    [{ 'fr.json': { pages: { common: { cancel: ' ' } } } }, 'fr.json: pages.common.cancel: must be a text of 1 to 4000 characters'],
    [{ 'fr.json': { pages: { common: { cancel: ['x'] } } } }, 'fr.json: pages.common.cancel: must be a text of 1 to 4000 characters'],
    [{ 'fr.json': { pages: { common: { cancel: 'x'.repeat(4001) } } } }, 'fr.json: pages.common.cancel: must be a text of 1 to 4000 characters'],
    [{ 'fr.json': { pages: { common: 'x' } } }, 'fr.json: pages.common: must be an object'],
    [{ 'fr.json': { pages: { account: { times: { one: '{count}' } } } } }, 'fr.json: pages.account.times: must be a text, or have the form other'],
    [{ 'fr.json': { pages: { account: { times: { other: 'x', lots: '{count}' } } } } }, 'fr.json: pages.account.times.lots: is not one of zero, one, two, few, many, other; fr.json: pages.account.times.other: lacks the placeholder {count}'],
    [{ 'fr.json': { mails: { change: { text: 'x {account}' } } } }, 'fr.json: mails.change.text: lacks the placeholder {address}'],
    [{ 'fr.json': '{"pages": ' }, /^option oidc\.texts: fr\.json: is not JSON: /],
    [{ 'fr.json': '[]' }, 'fr.json: it: must be an object'],
    [{ 'fr.json': `"${'x'.repeat(1024 * 1024)}"` }, 'fr.json: is larger than 1048576 bytes'],
    [{ 'french.json': {} }, 'french.json: the name must be a language tag, as in fr.json or pt-BR.json'],
    [{ '__proto__.json': {} }, '__proto__.json: the name must be a language tag, as in fr.json or pt-BR.json'],
    [{ 'fr.json': { pages: 1 }, 'it.json': { mails: 1 } }, 'fr.json: pages: must be an object; it.json: mails: must be an object']
  ] as [Record<string, unknown>, string | RegExp][]) {
    const texts = write(files)
    t.throws(() => readOwnTexts(texts), { message: typeof message === 'string' ? `option oidc.texts: ${message}` : message })
  }
  await t.rejects(build(t, { oidc: { texts: write({ 'fr.json': { pages: 1 } }) } }), { message: /^option oidc\.texts: fr\.json: pages: / })
  await t.rejects(build(t, { oidc: { texts: '/no/such/folder' } }), { message: 'option oidc.texts: the folder cannot be read (ENOENT)' })
  const folder = write({})
  mkdirSync(join(folder, 'fr.json'))
  t.throws(() => readOwnTexts(folder), { message: 'option oidc.texts: fr.json: cannot be read (EISDIR)' })
})

t.test('a key that this release does not have is told of, and its text is not used', async (t) => {
  for (const [files, unknown] of [
    [{ 'de.json': { pages: { signIn: { titl: 'x' } } } }, ['de.json: pages.signIn.titl: is not a text of this release, did you mean title?']],
    [{ 'de.json': { page: {} } }, ['de.json: page: is not a text of this release, did you mean pages?']],
    [{ 'de.json': { mails: { deleted: { button: 'x' } } } }, ['de.json: mails.deleted.button: is not a text of this release']],
    [{ 'de.json': '{"__proto__": {"x": 1}}' }, ['de.json: __proto__: is not a text of this release']],
    [{ 'de.json': { page: 1 }, 'en.json': { mail: 1 } }, [
      'de.json: page: is not a text of this release, did you mean pages?', 'en.json: mail: is not a text of this release, did you mean mails?'
    ]]
  ] as [Record<string, unknown>, string[]][]) {
    const read = readOwnTexts(write(files))
    t.strictSame([read.unknown, read.warnings], [unknown, []])
    for (const own of Object.values(read.own)) t.strictSame([JSON.stringify(own).includes('x'), Object.getPrototypeOf(own)], [false, Object.prototype])
  }
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`no${index}`, 'x']))
  t.strictSame(readOwnTexts(write({ 'de.json': many })).unknown.slice(20), ['and 10 more'])

  const folder = write({ 'de.json': { pages: { signIn: { title: 'Servus', gone: 'x' } } } })
  const kit = await build(t, { oidc: { texts: folder } })
  t.match((await kit.inject({ url: '/account/sign-in', headers: { 'accept-language': 'de' } })).body, '<h1>Servus</h1>', 'the service starts with the others')
  const line = 'de.json: pages.signIn.gone: is not a text of this release'
  const run = createCli(write({}), { IDENTITY_TEXTS: folder })
  t.match(await run('config check'), { code: 0, stderr: `warning: ${line}` })
  const strict = await run('config check --strict')
  t.match(strict, { code: 1, stderr: `fastify-identity: IDENTITY_TEXTS: ${line}` })
  t.notMatch(strict.stderr, 'warning: de.json', 'it is said once')
  t.match((await createCli(write({}), { IDENTITY_TEXTS: folder })('config check --strict --json')).json(), { problems: [`IDENTITY_TEXTS: ${line}`] })
})

t.test('serve --strict refuses what this release does not know, and the start does not', async (t) => {
  const folder = write({ 'de.json': { pages: { gone: 'x' } } })
  const start = prepareIdentity({ database: 'sqlite::memory:', oidc: { issuer: 'http://127.0.0.1', texts: folder } })
  t.match(start.warnings, ['de.json: pages.gone: is not a text of this release'])
  t.throws(() => refuseUnknown({ IDENTITY_NAM: 'x' }, start), { message: /IDENTITY_NAM: [^]*IDENTITY_TEXTS: de\.json: pages\.gone: is not a text of this release/ })
  t.doesNotThrow(() => refuseUnknown({ IDENTITY_NAME: 'x' }, prepareIdentity({ database: 'sqlite::memory:' })))

  const child = (flags: string[]) => spawnSync(process.execPath, ['server.ts', ...flags], {
    cwd: join(import.meta.dirname, '../..'),
    encoding: 'utf8',
    timeout: 60_000,
    env: { PATH: process.env.PATH, DATABASE_URL: 'sqlite::memory:', IDENTITY_TEXTS: folder }
  })
  t.match(child(['--strict']), { status: 1, stderr: 'fastify-identity: IDENTITY_TEXTS: de.json: pages.gone: is not a text of this release' })
})

t.test('a text whose key was renamed is used under its new key, with one warning', async (t) => {
  const folder = write({
    'de.json': {
      pages: { old: { title: 'Servus' }, signIn: { sub: 'Los' }, links: { gone: 'neu', lost: 'alt' } },
      mails: { forgotten: { subject: 'Ihr Link' } }
    }
  })
  const renamed = {
    'pages.old.title': 'pages.signIn.title',
    'pages.signIn.sub': 'pages.signIn.submit',
    'pages.links.lost': 'pages.links.gone',
    'mails.forgotten': 'mails.reset',
    'pages.never.there': 'pages.signIn.title',
    'pages.signIn.title.deep': 'pages.common.help'
  }
  const { own, warnings, unknown } = readOwnTexts(folder, renamed)
  t.strictSame(warnings, [
    'de.json: pages.old.title: is called pages.signIn.title in this release, rename it',
    'de.json: pages.signIn.sub: is called pages.signIn.submit in this release, rename it',
    'de.json: pages.links.lost: is called pages.links.gone in this release, rename it',
    'de.json: mails.forgotten: is called mails.reset in this release, rename it'
  ])
  t.strictSame(own.de, {
    pages: { signIn: { title: 'Servus', submit: 'Los' }, links: { gone: 'neu' } }, mails: { reset: { subject: 'Ihr Link' } }
  }, 'of two texts that of the new key counts')
  t.strictSame(unknown, ['de.json: pages.old: is not a text of this release'], 'what is left of a group that is gone')
  t.throws(() => readOwnTexts(write({ 'de.json': { pages: { back: 'x' } } }), { 'pages.back': 'pages.common.goBack' }), {
    message: 'option oidc.texts: de.json: pages.common.goBack: lacks the placeholder {app}'
  }, 'it is checked as one of the new key')
})

t.test('a renamed key leads from a key that is gone to one that there is', async (t) => {
  const find = (path: string) => path.split('.').reduce<unknown>((group, key) => Object(group)[key], { pages: en, mails })
  for (const [before, now] of Object.entries(RENAMED_TEXTS)) {
    t.equal(find(before), undefined, before)
    t.not(find(now), undefined, now)
  }
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
  t.match(await run(['texts', 'export', '--file', file]), { code: 1, stderr: /fr\.json exists already/ }, 'no file is replaced')
  t.match(await run('texts export --language fr'), { code: 2, stderr: /--language: must be en or de/ })
  const { pages, mails } = JSON.parse((await run('texts export')).stdout) as Record<'pages' | 'mails', Record<string, Record<string, string>>>
  delete pages.signIn!.title
  delete mails.reset
  const folder = write({ 'fr.json': { pages, mails } })
  t.strictSame(readOwnTexts(folder).warnings, ['fr.json: 6 texts are missing and shown in English: pages.signIn.title, mails.reset.subject, mails.reset.heading, mails.reset.text, mails.reset.button and others'])
  const checked = await createCli(write({}), { IDENTITY_TEXTS: folder })('config check')
  t.match(checked, { code: 0, stderr: /warning: fr\.json: 6 texts are missing/ })
  const wrong = await createCli(write({}), { IDENTITY_TEXTS: write({ 'fr.json': { pages: 1 } }) })('config check')
  t.match(wrong, { code: 1, stderr: /IDENTITY_TEXTS: fr\.json: pages: must be an object/ })
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
