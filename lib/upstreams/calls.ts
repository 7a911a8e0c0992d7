import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import { type Outbound, type OutboundDocument, OutboundError } from '../outbound/fetcher.ts'
import { UpstreamError } from './failure.ts'
import type { Enter } from './places.ts'

/** Bytes of an answer of a provider. */
const LIMIT = 256 * 1024

/** Milliseconds for which a document is not fetched again, and for which the last good one stands for one that cannot be fetched. */
const FRESH = 60 * 60_000
const STALE = 24 * FRESH

/**
 * Milliseconds between two fetches of keys for a key that strangers name: all who ask for one wait for the next fetch, and share it. Whoever
 * sends a logout token may wait five seconds for the answer.
 */
export const KEY_GAP = 3_000

/** Documents that are kept of a provider: its metadata, and its keys. */
const MOST_DOCUMENTS = 4

type Init = { method?: string, headers?: unknown, body?: unknown }

/** A function as `fetch`, for the library and for us. */
export type CallProvider = (url: string, init?: Init) => Promise<Response>

/** The last call for a document. Whoever must not call again so soon shares its answer. */
interface Tried {
  at: number
  answer: Promise<OutboundDocument>
}

interface Kept {
  at: number
  document: OutboundDocument
}

const toResponse = ({ status, type, body }: OutboundDocument): Response => (
  new Response(status === 204 || status === 304 ? null : new Uint8Array(body), { status, headers: { 'content-type': type } }))

/** The ids of the keys in a document, if it is one of keys. */
function listKeys ({ body }: OutboundDocument): unknown[] {
  try {
    const { keys } = JSON.parse(body.toString()) as { keys?: { kid?: unknown }[] }
    return Array.isArray(keys) ? keys.map(({ kid }) => kid) : []
  } catch {
    return []
  }
}

/** Whether documents may stand for others: a redirect or an error page is none. */
const isGood = ({ status, body }: OutboundDocument): boolean => {
  if (status !== 200) return false
  try {
    JSON.parse(body.toString())
    return true
  } catch {
    return false
  }
}

/** Creates the function that sends a request of the library. */
function createSend (outbound: Pick<Outbound, 'read'>) {
  return async function send (url: string, { method = 'GET', headers = {}, body }: Init, signal: AbortSignal): Promise<OutboundDocument> {
    return await outbound.read({
      url,
      method: method === 'POST' ? 'POST' : 'GET',
      headers: Object.fromEntries(new Headers(headers as ConstructorParameters<typeof Headers>[0])),
      body: body === undefined || body === null ? undefined : String(body),
      limit: LIMIT,
      signal
    })
  }
}

const waitFor = async (time: number, signal: AbortSignal): Promise<void> => await sleep(time, undefined, { signal })

/**
 * Calls of one provider. They resolve and connect as webhooks do, and all calls of a sign-in have one place and one deadline.
 * @param wait until it is time for the next fetch
 */
export function createCalls (outbound: Pick<Outbound, 'read'>, now: Clock, wait = waitFor) {
  const send = createSend(outbound)
  const documents = new LRUCache<string, Kept>({ max: MOST_DOCUMENTS })
  const tries = new LRUCache<string, Tried>({ max: MOST_DOCUMENTS })
  /** The fetches that are to come. */
  const coming = new Map<string, Promise<OutboundDocument>>()

  function start (url: string, init: Init, signal: AbortSignal): Promise<OutboundDocument> {
    const answer = send(url, init, signal)
    // Each caller receives the failure.
    answer.catch(() => {})
    tries.set(url, { at: now(), answer })
    return answer
  }

  async function startLater (url: string, init: Init, signal: AbortSignal, time: number): Promise<OutboundDocument> {
    try {
      await wait(time, signal)
    } finally {
      coming.delete(url)
    }
    return await start(url, init, signal)
  }

  /** The next fetch, which everybody shares who asks before it begins. */
  function fetchNext (url: string, init: Init, signal: AbortSignal, last: Tried): Promise<OutboundDocument> {
    const known = coming.get(url)
    if (known !== undefined) return known
    const next = startLater(url, init, signal, Math.min(Math.max(last.at + KEY_GAP - now(), 0), KEY_GAP))
    next.catch(() => {})
    coming.set(url, next)
    return next
  }

  /**
   * Fetches a document, unless it was tried within the last milliseconds. A key is missing only if a fetch has not brought it that began after
   * somebody had asked for it: otherwise whoever makes up keys would keep a new one from being known.
   */
  async function fetch (url: string, init: Init, signal: AbortSignal, pause: number, kid: string | undefined): Promise<OutboundDocument> {
    const last = tries.get(url)
    if (last === undefined || now() - last.at >= pause) return await start(url, init, signal)
    const document = await last.answer
    const isMissing = kid !== undefined && isGood(document) && !listKeys(document).includes(kid)
    return isMissing ? await fetchNext(url, init, signal, last) : document
  }

  /** A document that need not be fetched again. */
  function findFresh (url: string, needed?: () => string | undefined): OutboundDocument | undefined {
    const kept = documents.get(url)
    if (kept === undefined || now() - kept.at >= FRESH) return undefined
    const kid = needed?.()
    return needed === undefined || (kid !== undefined && listKeys(kept.document).includes(kid)) ? kept.document : undefined
  }

  return {
    /** Sends a request. */
    call: (enter: Enter): CallProvider => async (url, init = {}) => toResponse(await send(url, init, await enter())),

    /**
     * Fetches metadata or keys, or takes them from the cache.
     * @param needed the id of the key that is needed. Keys without it are fetched again
     * @param pause least milliseconds between two fetches, where a stranger says which key is needed. If that key is missing, KEY_GAP counts
     *   instead
     */
    read: (enter: Enter, needed?: () => string | undefined, pause = 0): CallProvider => async (url, init = {}) => {
      const fresh = findFresh(url, needed)
      if (fresh !== undefined) return toResponse(fresh)
      const kept = documents.get(url)
      const isUsable = kept !== undefined && now() - kept.at < STALE
      try {
        const signal = await enter()
        // Another sign-in may have fetched it while this one waited for a place.
        const other = findFresh(url, needed)
        if (other !== undefined) return toResponse(other)
        const document = await fetch(url, init, signal, pause, needed?.())
        if (isGood(document)) {
          documents.set(url, { at: tries.get(url)?.at ?? now(), document })
          return toResponse(document)
        }
        if (!isUsable) return toResponse(document)
      } catch (error) {
        if (!isUsable || !(error instanceof OutboundError || error instanceof UpstreamError)) throw error
      }
      return toResponse(kept.document)
    }
  }
}

export type Calls = ReturnType<typeof createCalls>
