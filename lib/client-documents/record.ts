import { type Clock, toTimestamp } from '../clock.ts'
import { listAlgorithms, toClientKeys } from '../crypto/public-keys.ts'
import { defined } from '../defined.ts'
import type { ClientKey, ClientRecord } from '../records/client.ts'
import type { Document } from '../store/port.ts'
import { toDocumentId } from './ids.ts'
import { type DocumentBody, toHash, toPrint } from './judge.ts'
import type { Fetched } from './fetch.ts'

const HOUR = 60 * 60_000

/** Milliseconds for which a document is stored after its last use, unless somebody has consented. */
export const KEPT = HOUR

/** A document as it was fetched last. All processes share it. The id is the SHA-256 of its URL. */
export interface DocumentRecord extends Document {
  url: string
  body: DocumentBody
  /** SHA-256 of the body, and the part of it that people decide on (judge.ts). */
  hash: string
  print: string
  fetched_at: string
  fresh_until: string
  /** When its host said first that there is no document, with nothing else since. */
  gone_at?: string
  /** When it is removed. Absent: somebody has consented, so that its client is stored. */
  expired_at?: string
  revision: number
}

/** What a fetch changes. */
export function toContent ({ body, lifetime }: Fetched, now: Clock) {
  const time = now()
  return { body, hash: toHash(body), print: toPrint(body), fetched_at: toTimestamp(time), fresh_until: toTimestamp(time + lifetime) }
}

/** The document of a URL that was fetched for the first time. */
export function createDocument (url: string, fetched: Fetched, now: Clock, isKept: boolean): DocumentRecord {
  return defined({ id: toDocumentId(url), url, ...toContent(fetched, now), expired_at: isKept ? undefined : toTimestamp(now() + KEPT), revision: 0 })
}

/** The fields of a client that the keys of its document decide. */
export function toKeyFields ({ body: { keys = [] } }: Pick<DocumentRecord, 'body'>, before: readonly ClientKey[] = [], time: string) {
  return { tokenAuth: 'private_key_jwt' as const, keys: toClientKeys(keys.filter((key) => listAlgorithms(key).length > 0), before, time) }
}

/** The fields of a client that its document decides. */
export function toClientFields (
  { id, url, body, hash, print, fetched_at }: Pick<DocumentRecord, 'id' | 'url' | 'body' | 'hash' | 'print' | 'fetched_at'>, used_at: string, before?: readonly ClientKey[]
) {
  const hasKeys = body.method === 'private_key_jwt'
  return defined({
    id: url,
    redirectUris: body.redirect_uris,
    scopes: [],
    name: body.client_name,
    // Never absent: a client with private_key_jwt is confidential whether it has keys or not.
    tokenAuth: body.method,
    // Whatever the document says.
    grants: ['code', 'refresh'] satisfies ClientRecord['grants'],
    ...(hasKeys && toKeyFields({ body }, before, used_at)),
    signedRequests: body.require_signed_request_object === true ? 'required' as const : undefined,
    document: defined({
      id, hash, print, method: body.method, used_at, keys_at: hasKeys ? fetched_at : undefined, scope: body.scope
    }) satisfies ClientRecord['document']
  })
}

/**
 * The client of a document in an authorization. Its content is that of the present document; its times and its epoch are those of the
 * stored client.
 * @param row the stored client; null before anybody has consented
 */
export function toClient (document: DocumentRecord, row: ClientRecord | null, time: string): ClientRecord {
  const { used_at = time } = row?.document ?? {}
  return { createdAt: row?.createdAt ?? time, modifiedAt: row?.modifiedAt ?? time, ...toClientFields(document, used_at, row?.keys), epoch: row?.epoch ?? 0 }
}
