import { LRUCache } from 'lru-cache'
import type { Clock } from '../clock.ts'
import { type Outbound, type OutboundDocument, OutboundError } from '../outbound/fetcher.ts'

/** Bytes of an answer of a provider. */
const LIMIT = 256 * 1024

/** Milliseconds for which a document is not fetched again, and for which the last good one stands for one that cannot be fetched. */
const FRESH = 60 * 60_000
const STALE = 24 * FRESH

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

/** Calls of one provider. They resolve and connect as webhooks do, and all calls of a sign-in have one deadline. */
export function createCalls (outbound: Pick<Outbound, 'read'>, now: Clock) {
  const documents = new LRUCache<string, Kept>({ max: MOST_DOCUMENTS })
  const tries = new LRUCache<string, Tried>({ max: MOST_DOCUMENTS })

  /** Fetches a document, unless it was tried within the last milliseconds. */
  function fetch (url: string, init: Init, signal: AbortSignal, pause: number): Promise<OutboundDocument> {
    const last = tries.get(url)
    if (last !== undefined && now() - last.at < pause) return last.answer
    const answer = send(url, init, signal)
    // Each caller receives the failure.
    answer.catch(() => {})
    tries.set(url, { at: now(), answer })
    return answer
  }

  async function send (url: string, { method = 'GET', headers = {}, body }: Init, signal: AbortSignal): Promise<OutboundDocument> {
    return await outbound.read({
      url,
      method: method === 'POST' ? 'POST' : 'GET',
      headers: Object.fromEntries(new Headers(headers as ConstructorParameters<typeof Headers>[0])),
      ...(body !== undefined && body !== null && { body: String(body) }),
      limit: LIMIT,
      signal
    })
  }

  return {
    /** Sends a request. */
    call: (signal: AbortSignal): CallProvider => async (url, init = {}) => toResponse(await send(url, init, signal)),

    /**
     * Fetches metadata or keys, or takes them from the cache.
     * @param needed the id of the key that is needed. Keys without it are fetched again
     * @param pause milliseconds in which they are fetched once at most, where a stranger says which key is needed
     */
    read: (signal: AbortSignal, needed?: () => string | undefined, pause = 0): CallProvider => async (url, init = {}) => {
      const kept = documents.get(url)
      const age = kept === undefined ? Infinity : now() - kept.at
      const kid = needed?.()
      if (kept !== undefined && age < FRESH && (needed === undefined || (kid !== undefined && listKeys(kept.document).includes(kid)))) return toResponse(kept.document)
      try {
        const document = await fetch(url, init, signal, pause)
        if (isGood(document)) {
          documents.set(url, { at: tries.get(url)?.at ?? now(), document })
          return toResponse(document)
        }
        if (kept === undefined || age >= STALE) return toResponse(document)
      } catch (error) {
        if (!(error instanceof OutboundError) || kept === undefined || age >= STALE) throw error
      }
      return toResponse(kept.document)
    }
  }
}

export type Calls = ReturnType<typeof createCalls>
