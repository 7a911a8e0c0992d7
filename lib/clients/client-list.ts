import type { KeyObject } from 'node:crypto'
import type { Client } from '../../schemas/client.ts'
import type { ClientRecord } from '../records.ts'
import { type RendererOptions, createJoiner, parseStored } from '../lists/renderer.ts'
import { createSecretBox } from '../crypto/secrets.ts'
import type { Renderer } from '../store/port.ts'

/** The client as a caller may see it: only an admin is told whose it is. */
export function showClient (record: ClientRecord, isAdmin: boolean, open: (sealed: string, id: string) => string): Client {
  return {
    clientId: record.id,
    createdAt: record.createdAt,
    modifiedAt: record.modifiedAt,
    ...(record.secret !== undefined && { clientSecret: open(record.secret, record.id) }),
    redirectUris: record.redirectUris,
    scopes: record.scopes,
    ...(isAdmin && { userId: record.userId }),
    name: record.name,
    ...(record.image !== undefined && { image: record.image })
  }
}

/** Where the fields of a stored client lie in its text. */
interface Layout {
  /** After the opening quote of the id, and at the closing one. */
  id: number
  idEnd: number
  /** After modifiedAt. */
  head: number
  /** The sealed secret without its quotes; -1 for none. */
  secret: number
  secretEnd: number
  /** The comma before redirectUris, before userId and before name, and after the last field that is shown. */
  uris: number
  user: number
  name: number
  end: number
}

const ID = '{"id":"'
const CREATED = '","createdAt":"'
const MODIFIED = '","modifiedAt":"'
const SECRET = ',"secret":"'
const URIS = ',"redirectUris":['
const SCOPES = '],"scopes":['
const USER = '],"userId":"'
const NAME = '","name":"'
const IMAGE = ',"image":"'
const EPOCH = ',"epoch":'
const COLON = '":'

/**
 * Finds the fields, where the text is laid out as an insert writes it and holds no escape. Then a quote begins or ends a
 * text and nothing else, between two marks is one value, and what JSON.stringify once made of it is what it would make of
 * it again. False for any other text.
 */
function findFields (text: string, layout: Layout): boolean {
  if (!text.startsWith(ID) || text.includes('\\')) return false
  layout.id = ID.length
  layout.idEnd = text.indexOf('"', layout.id)
  if (!text.startsWith(CREATED, layout.idEnd)) return false
  const created = text.indexOf('"', layout.idEnd + CREATED.length)
  if (!text.startsWith(MODIFIED, created)) return false
  layout.head = text.indexOf('"', created + MODIFIED.length) + 1
  layout.secret = -1
  layout.uris = layout.head
  if (text.startsWith(SECRET, layout.head)) {
    layout.secret = layout.head + SECRET.length
    layout.secretEnd = text.indexOf('"', layout.secret)
    layout.uris = layout.secretEnd + 1
  }
  if (!text.startsWith(URIS, layout.uris)) return false
  const scopes = findNextField(text, SCOPES, layout.uris + URIS.length)
  const user = scopes === -1 ? -1 : findNextField(text, USER, scopes + SCOPES.length)
  if (user === -1) return false
  layout.user = user + 1
  const userEnd = text.indexOf('"', user + USER.length)
  if (!text.startsWith(NAME, userEnd)) return false
  layout.name = userEnd + 1
  layout.end = text.indexOf('"', userEnd + NAME.length) + 1
  if (text.startsWith(IMAGE, layout.end)) layout.end = text.indexOf('"', layout.end + IMAGE.length) + 1
  // The last one: with a comma behind it, which may be in a text, a field that is shown may follow.
  return text.startsWith(EPOCH, layout.end) && !text.includes(',', layout.end + EPOCH.length)
}

/** Where this mark is, from inside an array on; -1 when another key comes first, in an item or behind the array, or an item that looks like one. */
function findNextField (text: string, mark: string, start: number): number {
  const at = text.indexOf(COLON, start) - mark.indexOf(COLON)
  return text.startsWith(mark, at) ? at : -1
}

export interface ClientListOptions extends RendererOptions {
  isAdmin: boolean
  /** Secrets are opened with it. */
  key: KeyObject
}

/** Writes clients as showClient shows them. */
export function createRenderer ({ between, isAdmin, key }: ClientListOptions): Renderer<ClientRecord> {
  const { open } = createSecretBox(key)
  const join = createJoiner(between)
  const layout: Layout = { id: 0, idEnd: 0, head: 0, secret: 0, secretEnd: 0, uris: 0, user: 0, name: 0, end: 0 }

  const fromDocument = (record: ClientRecord) => JSON.stringify(showClient(record, isAdmin, open))

  function fromText (text: string): string {
    if (!findFields(text, layout)) return fromDocument(parseStored(text))
    const { id, idEnd, head, secret, secretEnd, uris, user, name, end } = layout
    const shown = secret === -1 ? '' : `,"clientSecret":${JSON.stringify(open(text.slice(secret, secretEnd), text.slice(id, idEnd)))}`
    const rest = isAdmin ? text.slice(uris, end) : text.slice(uris, user) + text.slice(name, end)
    return `{"clientId":${text.slice(id - 1, head)}${shown}${rest}}`
  }

  return {
    fromTexts: (texts) => join(texts, fromText),
    fromDocuments: (documents) => join(documents, fromDocument)
  }
}
