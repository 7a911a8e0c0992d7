import { LRUCache } from 'lru-cache'
import type { Base } from '../base.ts'
import { toTimestamp } from '../clock.ts'
import type { ClientRecord } from '../records/client.ts'
import { TIMERS, type Timers } from '../timers.ts'
import { DocumentError } from './error.ts'
import { failEvenly } from './even.ts'
import type { DocumentFetch } from './fetch.ts'
import { toDocumentId } from './ids.ts'
import type { Limits } from './limits.ts'
import { type DocumentRecord, KEPT, createDocument, toContent } from './record.ts'
import { Wanted } from './wanted.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Milliseconds for which a failure is remembered, so that a page that is opened again makes no call. */
const REMEMBERED = 60 * SECOND

/** Milliseconds for which the stored version serves authorizations while the host does not answer. */
const SERVES = 7 * DAY

/** Milliseconds after which a second answer that there is no document counts. */
const GONE = HOUR

/** Remembered failures. */
const CAPACITY = 1_000

interface PresentParts extends Pick<Base, 'store' | 'now'> {
  fetch: Pick<DocumentFetch, 'getDocument'>
  limits: Limits
  /** Whether the operator has named the host. What others are, a stranger may want to know. */
  isNamed: (host: string) => boolean
  timers?: Timers
  /** Called once for each failure, and not again while it is remembered. @param isAccepted people have consented to the client */
  onFailed: (url: string, error: DocumentError, isAccepted: boolean) => void
}

/** The present version of each document: fetched, stored for all processes, and fetched again when it is no longer fresh. */
export function createPresent ({ store, now, fetch, limits, isNamed, timers = TIMERS, onFailed }: PresentParts) {
  const documents = store.collection<DocumentRecord>('documents')
  const clients = store.collection<ClientRecord>('clients')
  const failed = new LRUCache<string, { error: DocumentError, until: number }>({ max: CAPACITY })
  const running = new Map<string, Wanted<DocumentRecord>>()

  /** Whether the failure says something about the document. */
  const isVerdict = (error: unknown): error is DocumentError => error instanceof DocumentError && error.retryAfter === undefined

  /**
   * One fetch of a document at a time in this process. A failure that says something about the document is remembered.
   * @param turn waits for the caller's turn
   */
  async function once (
    url: URL, address: string, turn: Limits['first'], fetch: () => Promise<DocumentRecord>, isAccepted = false
  ): Promise<DocumentRecord> {
    const { href } = url
    const known = failed.get(href)
    if (known !== undefined && known.until > now()) throw known.error
    const wanted = running.get(href) ?? new Wanted<DocumentRecord>(isVerdict)
    running.set(href, wanted)
    const fetchNoting = async () => await fetch().catch((error: unknown) => {
      if (isVerdict(error)) {
        failed.set(href, { error, until: now() + REMEMBERED })
        onFailed(href, error, isAccepted)
      }
      throw error
    })
    try {
      return await wanted.wait(address, async () => await turn(url, address, wanted, fetchNoting))
    } finally {
      if (wanted.isOver && running.get(href) === wanted) running.delete(href)
    }
  }

  async function fetchFirst (url: URL): Promise<DocumentRecord> {
    const get = async () => await fetch.getDocument(url)
    // It keeps its place for as long, since those who wait for one see its time too.
    const fetched = await (isNamed(url.host) ? get() : failEvenly(timers, get))
    const record = createDocument(url.href, fetched, now, await clients.get(url.href) !== null)
    await documents.put(record)
    return record
  }

  async function fetchAgain (url: URL, known: DocumentRecord): Promise<DocumentRecord> {
    const { id, revision } = known
    const fetched = await fetch.getDocument(url)
    const changed = await documents.update(id, {
      set: { ...toContent(fetched, now) } as never, unset: ['gone_at'], increment: { revision: 1 }
    }, { equal: { revision } })
    // Another process was faster, with a version that is as new.
    return changed ?? await documents.get(id) ?? createDocument(url.href, fetched, now, false)
  }

  /** The stored version, if it may serve although the host has not confirmed it. */
  async function standIn (known: DocumentRecord, error: unknown): Promise<DocumentRecord> {
    if (!(error instanceof DocumentError) || error.state === 'refused') throw error
    if (error.state === 'down') {
      if (Date.parse(known.fetched_at) + SERVES > now()) return known
      throw error
    }
    const { gone_at } = known
    if (gone_at !== undefined && Date.parse(gone_at) + GONE <= now()) {
      throw new DocumentError('gone', 'the host has said twice, an hour apart, that there is no document', { value: error.value })
    }
    if (gone_at === undefined) {
      await documents.update(known.id, { set: { gone_at: toTimestamp(now()) }, increment: { revision: 1 } }, { equal: { revision: known.revision } })
    }
    return known
  }

  /** A document that nobody has consented to stays for an hour after its last use. */
  async function keep ({ id, expired_at }: DocumentRecord): Promise<void> {
    const isSoon = expired_at !== undefined && Date.parse(expired_at) < now() + KEPT - 5 * MINUTE
    if (isSoon) await documents.update(id, { set: { expired_at: toTimestamp(now() + KEPT) } }, { before: { expired_at: toTimestamp(now() + KEPT) } })
  }

  async function findStored (url: string): Promise<DocumentRecord | null> {
    const found = await documents.get(toDocumentId(url))
    return found === null || (found.expired_at !== undefined && found.expired_at <= toTimestamp(now())) ? null : found
  }

  async function refresh (url: URL, known: DocumentRecord, address: string): Promise<DocumentRecord> {
    // A document that nobody has consented to expires.
    return await once(url, address, limits.again, async () => await fetchAgain(url, known), known.expired_at === undefined)
  }

  return {
    findStored,

    /**
     * The present version.
     * @param address of the browser whose link names the document
     * @throws DocumentError
     */
    async read (url: URL, address: string): Promise<DocumentRecord> {
      const known = await findStored(url.href)
      if (known === null) return await once(url, address, limits.first, async () => await fetchFirst(url))
      await keep(known)
      if (known.fresh_until > toTimestamp(now())) return known
      return await refresh(url, known, address).catch(async (error: unknown) => await standIn(known, error))
    },

    /**
     * Fetches a stored document again for its keys, at most once a minute.
     * @param address of the client or browser that needs them; empty for the service itself
     * @throws DocumentError
     */
    async renew (url: URL, address: string): Promise<DocumentRecord | null> {
      const known = await findStored(url.href)
      if (known === null || Date.parse(known.fetched_at) + MINUTE > now()) return known
      return await refresh(url, known, address)
    },

    /** Fetches a stored document now, for an operator. @throws DocumentError */
    async refresh (url: URL): Promise<DocumentRecord | null> {
      failed.delete(url.href)
      const known = await findStored(url.href)
      return known === null ? null : await refresh(url, known, '')
    }
  }
}

export type Present = ReturnType<typeof createPresent>
