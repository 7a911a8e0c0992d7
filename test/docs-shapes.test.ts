import { globSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { COLLECTIONS } from '../index.ts'
import { readDoc } from './helpers/docs.ts'

const storage = readDoc('docs/storage.md')

/** The members of an interface, each with whether it is optional. Those that it inherits are not among them. */
function listMembers (path: string, name: string): [name: string, optional: boolean][] {
  const source = ts.createSourceFile(path, readDoc(path), ts.ScriptTarget.Latest)
  const found = source.statements.find((node) => ts.isInterfaceDeclaration(node) && node.name.text === name)
  if (found === undefined || !ts.isInterfaceDeclaration(found)) throw new Error(`${path} has no interface ${name}`)
  return found.members.filter(ts.isPropertySignature).map(({ name, questionToken }) => [(name as ts.Identifier).text, questionToken !== undefined])
}

/** The tables of fields: the interface that each names, and its fields. `**key**` is a key, `?` after a field an optional one. */
const tables = [...storage.matchAll(/<!-- checked against (\w+) in (\S+) by \S+ -->\n\| field \| meaning \|\n\| --- \| --- \|\n((?:\|.*\n)+)/g)]
  .map(([, name = '', path = '', rows = '']) => ({
    name,
    path,
    fields: rows.trim().split('\n').flatMap((row) => (row.split('|')[1] ?? '').split(', ')).map((cell) => {
      const [, bold, field = '', optional] = /(\*\*)?`(\w+)`(?:\*\*)?(\?)?/.exec(cell) ?? []
      return { field, isKey: bold !== undefined, optional: optional !== undefined }
    })
  }))

/** The collections of the records, for their keys. A part of a record has none. */
const COLLECTIONS_OF: Record<string, string | null> = {
  UserRecord: 'users',
  CredentialRecord: 'credentials',
  ClientRecord: 'clients',
  LogoRecord: 'client_logos',
  DocumentRecord: 'documents',
  Registry: 'resources',
  TokenRecord: 'access_tokens',
  GrantRecord: 'grants',
  SignInSessionRecord: 'sign_in_sessions',
  DeviceRecord: 'device_codes',
  RequestRecord: 'interactions',
  ProgressRecord: 'sign_ins',
  CarriedLinkRecord: 'sign_ins',
  AttemptRecord: 'sign_ins',
  FoundRecord: 'sign_ins',
  RenewalRecord: 'sign_ins',
  AttemptsRecord: 'attempts',
  HashRecord: 'former_names',
  SentFormRecord: 'sent_forms',
  TicketRecord: 'tickets',
  WorkRecord: 'deliveries',
  DeliveryRecord: 'deliveries',
  LogoutRecord: 'logouts',
  WebhookRecord: 'webhooks',
  FailedEvent: 'webhook_failures',
  SecretEndRecord: 'secret_ends',
  WebhookAttemptsRecord: 'webhook_attempts',
  KeysRecord: 'keys',
  StoredKeyRecord: 'keys',
  Seal: 'meta',
  BackupRecord: 'meta',
  AdministratorsRecord: 'meta',
  FormsRecord: 'meta',
  MailMarkRecord: 'meta',
  PartiesRecord: 'meta',
  UsedRecord: 'sign_ins',
  WaitingRecord: 'sign_ins',
  EventRecord: 'events',
  InboxRecord: 'event_inbox',
  DeadLetterRecord: 'event_letters',
  FeedRecord: 'feed',
  UpstreamsRecord: 'meta',
  UpstreamEndRecord: 'upstream_ends',
  ResourceEntry: null
}

t.test('the fields of each stored record are those of its interface', async (t) => {
  for (const { name, path, fields } of tables) {
    const listed = fields.filter(({ field }) => field !== 'id').map(({ field, optional }) => [field, optional])
    t.same(listed.sort(), listMembers(path, name).sort(), name)
  }
})

t.test('its keys are those that the collection declares', async (t) => {
  for (const { name, fields } of tables) {
    const collection = COLLECTIONS_OF[name]
    const keys = collection === null ? {} : COLLECTIONS.find((one) => one.name === collection)?.keys
    t.ok(keys, `${name} has a collection`)
    t.same(fields.filter(({ isKey }) => isKey).map(({ field }) => field).sort(), fields.map(({ field }) => field).filter((field) => field in keys!).sort(), name)
  }
})

t.test('every stored record has its table', async (t) => {
  const declared = globSync('lib/**/*.ts', { cwd: join(import.meta.dirname, '..') }).flatMap((path) =>
    [...readDoc(path).matchAll(/^(?:export )?interface (\w+) extends (?:Document|TokenRecord|Revocable|WorkRecord|InboxRecord)\b/gm)].map(([, name = '']) => name))
  // A part of several records.
  const records = declared.filter((name) => name !== 'Revocable')
  t.strictSame(records.sort(), Object.keys(COLLECTIONS_OF).filter((name) => COLLECTIONS_OF[name] !== null).sort())
  t.same(records.filter((name) => !tables.some((table) => table.name === name)), [])
})
