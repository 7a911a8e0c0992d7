import t from 'tap'
import { COMMANDS } from '../cli/main.ts'
import { GROUPS } from '../cli/help.ts'
import { de as germanMails } from '../lib/mail/texts/de.ts'
import { en as englishMails } from '../lib/mail/texts/en.ts'
import { de } from '../lib/pages/texts/de.ts'
import { en } from '../lib/pages/texts/en.ts'
import { listDocs, readDoc } from './helpers/docs.ts'

/** The words that CONTRIBUTING.md ("Words") rules out, each with its replacement. */
const EVERYWHERE: [old: RegExp, use: string][] = [
  [/recovery codes?/i, 'backup code'],
  [/second factors?/i, 'two-step verification on pages and in emails, two-factor authentication (2FA) elsewhere'],
  [/mailbox(es)?/i, 'inbox'],
  [/(?<![/\w.-])mails?(?! (server|program|relay)|[/\w]|\.\w|-\w)|\bmailed\b/i, 'email'],
  [/\bformer(ly)?\b/i, 'old, previous, earlier'],
  [/(works?|worked|counts?|authenticates?) no more\b/i, 'no longer'],
  [/ways? to sign in/i, 'sign-in method'],
  [/code of your app|code of the app/i, 'verification code'],
  [/(password|app|factor|account)s? (is|was|are|were) (closed|opened)|(closed|opened) (password|app|factor)/i, 'locked, unlocked']
]

/** Pages and emails only: developers know these words. */
const TO_PEOPLE: [old: RegExp, use: string][] = [
  ...EVERYWHERE,
  [/two-factor|multi-factor/i, 'two-step verification'],
  [/operator|whoever runs/i, 'contact support, this service'],
  [/vouch/i, 'verified'],
  [/\btyped?\b/i, 'enter'],
  [/it was not (me|you)/i, 'this wasn’t me'],
  [/\bmeanwhile\b|\bbesides\b|of which|whoever/i, 'simpler words'],
  [/did(n’t| not) work\.$/i, 'the reason, or Something went wrong']
]

const GERMAN: [old: RegExp, use: string][] = [
  [/Wiederherstellungscode|Ersatzcode/, 'Backup-Code'],
  [/zweite[rnms]? Faktor|Bestätigung in zwei Schritten/i, 'Zwei-Faktor-Authentifizierung'],
  [/(?<!E-)\bMails?\b/, 'E-Mail'],
  [/Betreiber/, 'Support, dieser Dienst'],
  [/\bWege?\b (zur Anmeldung|an)/, 'Anmeldemethode'],
  [/\bgeschlossen|geöffnet wurde|wieder geöffnet/, 'gesperrt, entsperrt'],
  [/geklappt/, 'der Grund, oder: Es ist ein Fehler aufgetreten'],
  [/frühere[nrs]?\b/, 'alt, bisherig, vorherig'],
  [/aufbewahr(?!en Sie die Datei)/, 'speichern']
]

/** Texts that keep an old word, each with the reason. */
const EXCEPTIONS: [where: RegExp, word: RegExp, reason: string][] = [
  [/^(docs\/(agents|architecture|oidc|operations)\.md)$/, /^former$/i, 'the former and the latter of two'],
  [/^CONTRIBUTING\.md$/, /./, 'lists the old words, and is for those who change the code'],
  [/^pages\.console\.events\.type(Hint)?$/, /^type$/i, 'the type of an event'],
  [/^(docs\/command-line\.md|help of (jobs|work) (list|retry) --kind)$/, /^mail$/, 'a value of --kind']
]

const isExcepted = (where: string, word: string) => EXCEPTIONS.some(([place, text]) => place.test(where) && text.test(word))

/** The texts of a tree, each with its path. */
function listTexts (texts: object, path: string): [where: string, text: string][] {
  return Object.entries(texts).flatMap(([key, text]: [string, string | object]) => (
    typeof text === 'string' ? [[`${path}.${key}`, text]] : listTexts(text, `${path}.${key}`)))
}

/** The old words of texts, each with its place and what to use. */
const findOld = (texts: [where: string, text: string][], words: [old: RegExp, use: string][]): string[] => texts.flatMap(([where, text]) => (
  words.flatMap(([old, use]) => {
    const found = [...text.replace(/\{\w+\}/g, '').matchAll(new RegExp(old.source, `g${old.flags}`))].map(([word]) => word).filter((word) => !isExcepted(where, word))
    return found.map((word) => `${where}: "${word}", use ${use}`)
  })))

/** What a page of the documentation says in its own words: without code, the targets of links, comments and the names of files. */
function readProse (page: string): string {
  const text = readDoc(page)
  // The changes of a release stay in the words of then.
  return (page === 'CHANGELOG.md' ? text.slice(0, text.search(/^## \d/m)) : text)
    .replace(/^(```|~~~).*?^\1$/gms, '')
    .replace(/<!--.*?-->/gs, '')
    .replace(/`[^`]*`/g, '')
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/https?:\S+/g, '')
    .replaceAll(/\s+/g, ' ')
}

const listHelp = (): [where: string, text: string][] => [
  ...GROUPS.map(([title]): [string, string] => ['help', title]),
  ...Object.entries(COMMANDS).flatMap(([name, { summary, flags }]): [string, string][] => [
    [`help of ${name}`, summary.replace(/`[^`]*`/g, '')],
    ...Object.entries(flags).map(([flag, { text }]): [string, string] => [`help of ${name} --${flag}`, text.replace(/`[^`]*`/g, '')])
  ])
]

t.test('the old words are found', async (t) => {
  for (const text of ['Make recovery codes', 'a second factor', 'its mailbox', 'a mail', 'was mailed', 'the former one', 'works no more', 'a way to sign in', 'The password is closed']) {
    t.equal(findOld([['x', text]], EVERYWHERE).length, 1, text)
  }
  for (const text of ['an email', 'the mail server', 'docs/mail.md', 'e-mail', 'information', 'performer', '/user/mails', 'no longer']) t.strictSame(findOld([['x', text]], EVERYWHERE), [], text)
  t.equal(findOld([['x', 'ein zweiter Faktor']], GERMAN).length, 1)
})

t.test('pages and emails use the words that people know', async (t) => {
  t.strictSame(findOld([...listTexts(en, 'pages'), ...listTexts(englishMails, 'emails')], TO_PEOPLE), [])
  t.strictSame(findOld([...listTexts(de, 'pages'), ...listTexts(germanMails, 'emails')], GERMAN), [])
})

t.test('the subject of an email is its heading, and it has three paragraphs at most', async (t) => {
  for (const mails of [englishMails, germanMails]) {
    for (const [kind, mail] of Object.entries(mails)) {
      if (!('subject' in mail)) continue
      t.equal(mail.subject.replace('{service}: ', '').toLowerCase(), mail.heading.toLowerCase(), kind)
      t.ok(mail.text.split('\n\n').length <= 3, kind)
    }
  }
})

t.test('the help of the commands does', async (t) => {
  t.strictSame(findOld(listHelp(), EVERYWHERE), [])
})

t.test('the documentation does', async (t) => {
  for (const page of listDocs()) t.strictSame(findOld([[page, readProse(page)]], EVERYWHERE), [], page)
})
