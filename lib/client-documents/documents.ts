import type { DocumentListQuery } from '../../schemas/document.ts'
import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import type { PublicKey } from '../crypto/public-keys.ts'
import { IdentityError } from '../errors.ts'
import type { Failures } from '../events/failures.ts'
import type { Outbound } from '../outbound/fetcher.ts'
import type { ClientRecord } from '../records/client.ts'
import { filterBatches, takeFirst } from '../lists/first.ts'
import type { Counter } from '../throttling/counter.ts'
import { scan } from '../store/scan.ts'
import type { Outages } from '../work/outage.ts'
import { createAcceptance } from './accept.ts'
import { DocumentError } from './error.ts'
import { type DocumentFetch, createDocumentFetch } from './fetch.ts'
import { type DocumentHosts, createHosts, readUrl } from './hosts.ts'
import { DOCUMENT_PREFIX, MOST_URL, toDocumentId } from './ids.ts'
import { createLimits } from './limits.ts'
import { createPresent } from './present.ts'
import { type DocumentRecord, toClient, toKeyFields } from './record.ts'
import { type RemoveUnused, createSweep } from './sweep.ts'

const DAY = 24 * 60 * 60_000

/** A refused document, for the log. */
export interface RefusedDocument { client_id: string, rule: string, reason: string, value: string }

export interface DocumentParts extends Base {
  failures: Pick<Failures, 'recordDocument'>
  /** Removes a stored client with all that belongs to it. */
  removeUnused: RemoveUnused
  /** Forgets when a key of a client was last used. */
  forgetUse: (client_id: string, keyId: string) => Promise<void>
  counter: Counter
  /** Disables a stored client. Resolves to null if there is none. */
  disable: (client_id: string) => Promise<unknown>
  /** Sends requests to public addresses only. */
  read: Outbound['read']
  hosts: DocumentHosts
  /** Notes whether the hosts answer. */
  outages?: Pick<Outages, 'of'> | undefined
  onRefused: (refused: RefusedDocument) => void
}

/** A document as an operator sees it. */
export interface DocumentView {
  /** `document:` and the SHA-256 of the URL. */
  id: string
  url: string
  name: string
  /** `new`: nobody has consented yet. */
  state: 'allowed' | 'blocked' | 'new'
  fetched_at?: string
  used_at?: string
}

/** A client, and whether people have consented to its present content: then it is stored. */
export interface FoundClient { client: ClientRecord, accepted: boolean }

/** Null when a document is refused or its host does not answer. */
async function unlessRefused<T> (work: Promise<T>): Promise<T | null> {
  try {
    return await work
  } catch (error) {
    if (error instanceof DocumentError) return null
    throw error
  }
}

/** How a client is looked up: for a new authorization, which may fetch its document; for one in progress; for the tokens that it holds. */
export type Purpose = 'authorize' | 'resume' | 'redeem'

/** Clients that are not registered: their ids are the URLs of documents about them (draft-ietf-oauth-client-id-metadata-document). */
export function createDocuments ({ hosts: given, failures, onRefused, report, read, outages, counter, disable, ...parts }: DocumentParts) {
  const { store, now } = parts
  const clients = store.collection<ClientRecord>('clients')
  const documents = store.collection<DocumentRecord>('documents')
  const hosts = createHosts(given)
  const fetched = createDocumentFetch({ read, hosts })
  /** The documents of a host that the operator has named, or of one that people use. A host that a stranger names has no outage. */
  const fetch: DocumentFetch = {
    async getDocument (url) {
      const outage = outages?.of('document', hosts.isNamed(url.host) ? url.host : '')
      try {
        const found = await fetched.getDocument(url)
        outage?.succeed()
        return found
      } catch (error) {
        const isDown = error instanceof DocumentError && error.state === 'down' && error.rule !== 'busy'
        if (isDown && (hosts.isNamed(url.host) || await clients.get(url.href) !== null)) outage?.fail(error)
        throw error
      }
    }
  }
  const acceptance = createAcceptance(parts)
  const sweep = createSweep(parts)
  let sweptAt = now()

  /** @param isKnown there is a stored client of this URL. Anybody can make up others */
  function refuse (url: string, error: DocumentError, isKnown: boolean): void {
    if (error.retryAfter !== undefined) return
    const { rule, message: reason, value } = error
    const client_id = url.slice(0, 2 * MOST_URL)
    failures.recordDocument(client_id, isKnown ? URL.parse(url)?.host : undefined, { rule, value })
    onRefused({ client_id, rule, reason, value })
  }

  const present = createPresent({ store, now, fetch, limits: createLimits({ counter, now }), isNamed: hosts.isNamed, onFailed: refuse })

  /** @throws DocumentError for a URL that no document may have here, and for a blocked one */
  async function check (client_id: string): Promise<{ url: URL, row: ClientRecord | null }> {
    const url = readUrl(client_id)
    hosts.check(url)
    const row = await clients.get(client_id)
    if (row?.disabled_at !== undefined) throw new DocumentError('blocked', 'the operator has blocked this client', { value: client_id })
    return { url, row }
  }

  const lacks = (keys: readonly { jwk: PublicKey }[], kid: string | undefined): boolean => kid !== undefined && !keys.some(({ jwk }) => jwk.kid === kid)

  /** The present document, for an authorization. An unknown `kid` has it fetched again. @throws DocumentError */
  async function readPresent (url: URL, address: string, kid: string | undefined): Promise<DocumentRecord> {
    const document = await present.read(url, address)
    if (document.body.method !== 'private_key_jwt' || !lacks(toKeyFields(document, [], '').keys, kid)) return document
    return await unlessRefused(present.renew(url, address)) ?? document
  }

  /** Fetches the keys of a stored client again. The stored ones serve until its host answers. */
  async function renewKeys (url: URL, row: ClientRecord, address: string): Promise<void> {
    const document = await unlessRefused(present.renew(url, address))
    if (document !== null) await acceptance.renewKeys(document, row)
  }

  /** A stored client with its present keys: an unknown `kid` has them fetched first, and an age of a day in the background. */
  async function withKeys (url: URL, row: ClientRecord, address: string, kid: string | undefined): Promise<ClientRecord> {
    if (row.document?.method !== 'private_key_jwt') return row
    const { keys = [], document: { keys_at } } = row
    if (lacks(keys, kid)) {
      await renewKeys(url, row, address)
      return await clients.get(row.id) ?? row
    }
    if (keys_at === undefined || Date.parse(keys_at) + DAY <= now()) renewKeys(url, row, '').catch(report('documents'))
    return row
  }

  /** The documents of stored clients, and then those of clients to which nobody has consented. */
  async function * listAll (): AsyncGenerator<DocumentView[]> {
    const toView = (url: string, row: ClientRecord | null, document: DocumentRecord | null): DocumentView => ({
      id: DOCUMENT_PREFIX + toDocumentId(url),
      url,
      name: row?.name ?? document?.body.client_name ?? '',
      state: row === null ? 'new' : row.disabled_at === undefined ? 'allowed' : 'blocked',
      fetched_at: document?.fetched_at,
      used_at: row?.document !== undefined && row.document.hash !== '' ? row.document.used_at : undefined
    })
    for await (const batch of scan(clients, { absent: ['userId'] })) {
      const rows = batch.filter(({ document }) => document !== undefined)
      yield await Promise.all(rows.map(async (row) => toView(row.id, row, await documents.get(row.document!.id))))
    }
    for await (const batch of scan(documents, {})) {
      const found = await Promise.all(batch.map(async (document) => await clients.get(document.url) === null ? [toView(document.url, null, document)] : []))
      yield found.flat()
    }
  }

  return {
    /**
     * The client of a URL, or null. In an authorization it has the present content of its document; with `redeem` it has the content to which
     * people have consented, and the present keys.
     * @param from the address of the browser or the client, and the `kid` of the assertion or the request that the client has signed
     * @throws DocumentError with `authorize`
     */
    async find (
      client_id: string, purpose: Purpose, { address = '', kid }: { address?: string | undefined, kid?: string | undefined } = {}
    ): Promise<FoundClient | null> {
      let checked
      try {
        checked = await check(client_id)
      } catch (error) {
        if (!(error instanceof DocumentError)) throw error
        if (purpose !== 'authorize') return null
        refuse(client_id, error, error.rule === 'blocked')
        throw error
      }
      const { url, row } = checked
      if (purpose === 'redeem') return row && { client: await withKeys(url, row, address, kid), accepted: true }
      const document = purpose === 'authorize' ? await readPresent(url, address, kid) : await present.findStored(client_id)
      if (row !== null && purpose === 'authorize') {
        await acceptance.touch(row)
        if (document !== null) await acceptance.renewKeys(document, row)
      }
      if (document === null) return null
      return { client: toClient(document, row, toTimestamp(now())), accepted: row?.document?.print === document.print }
    },

    /**
     * Stores the client of a document, because a person has allowed what they saw. Nothing is stored if the document has changed since, so
     * that they are asked again.
     * @param print of the version that they saw
     */
    async accept (client_id: string, print: string): Promise<void> {
      const document = await present.findStored(client_id)
      if (document === null || document.print !== print) return
      await acceptance.accept(document)
      if (sweptAt + DAY > now()) return
      sweptAt = now()
      sweep().catch(report('documents'))
    },

    /** Removes the clients of documents that are no longer used. It also runs by itself, once a day. */
    sweep,

    /** Fetches and judges a document, and stores nothing. @throws DocumentError */
    async test (client_id: string) {
      const url = readUrl(client_id)
      hosts.check(url)
      const { body, lifetime } = await fetch.getDocument(url)
      const { keys, ...rest } = body
      return { client_id, ...rest, keys: keys?.length, fresh_seconds: Math.round(lifetime / 1000) }
    },

    /** Fetches a stored document now. @throws DocumentError, ErrNotFound */
    async refresh (client_id: string): Promise<void> {
      if (await present.refresh(readUrl(client_id)) === null) throw new IdentityError('ErrNotFound', 'url: no such document')
    },

    /** Blocks the client of a URL, also before its first use: its tokens end, and it gets no more. @throws DocumentError */
    block: async (client_id: string): Promise<void> => await acceptance.block(readUrl(client_id).href, toDocumentId(client_id), disable),

    /** Lists the documents of stored clients, and then those of clients to which nobody has consented. */
    list ({ contains = '', limit = 0 }: Pick<DocumentListQuery, 'contains' | 'limit'> = {}): AsyncGenerator<DocumentView[]> {
      const part = contains.toLowerCase()
      const hasPart = ({ name, url }: DocumentView) => name.toLowerCase().includes(part) || url.toLowerCase().includes(part)
      return takeFirst(filterBatches(listAll(), hasPart), limit)
    }
  }
}

export type Documents = ReturnType<typeof createDocuments>
