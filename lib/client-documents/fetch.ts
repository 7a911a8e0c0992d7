import type { Outbound } from '../outbound/fetcher.ts'
import { OutboundError, type OutboundDocument } from '../outbound/fetcher.ts'
import { DocumentError } from './error.ts'
import type { Hosts } from './hosts.ts'
import { type DocumentBody, judgeDocument } from './judge.ts'
import { readKeys } from './keys.ts'

/** Bytes of a document, and of a set of keys. */
const MOST_DOCUMENT = 5_120
const MOST_KEYS = 64 * 1024

/** Milliseconds for a whole call. */
const TIMEOUT = 2_500

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** For how long a document is fresh: as its host says, within these bounds. */
const LEAST_FRESH = 5 * MINUTE
const MOST_FRESH = 24 * HOUR
const FRESH = HOUR

export interface Fetched {
  body: DocumentBody
  /** Milliseconds for which it is fresh. */
  lifetime: number
}

function toLifetime (cacheControl = ''): number {
  const [, seconds] = /(?:^|[\s,])max-age="?(\d{1,10})/i.exec(cacheControl) ?? []
  if (/(?:^|[\s,])no-(?:store|cache)(?:[\s,=]|$)/i.test(cacheControl)) return LEAST_FRESH
  return seconds === undefined ? FRESH : Math.min(Math.max(Number(seconds) * SECOND, LEAST_FRESH), MOST_FRESH)
}

function toDocumentError (error: unknown, what: string): DocumentError {
  if (!(error instanceof OutboundError)) throw error
  const { code } = error
  if (code === 'EREFUSED') return new DocumentError('address', `the host of the ${what} has no public address`)
  if (code === 'ETOOLARGE') return new DocumentError('size', `the ${what} must have at most ${what === 'document' ? MOST_DOCUMENT : MOST_KEYS} bytes`)
  if (code === 'EABORTED') return new DocumentError('busy', 'the service is closing', { retryAfter: 5, state: 'down' })
  return new DocumentError('unreachable', `the host of the ${what} does not answer`, { value: code, state: 'down' })
}

/** A type of JSON: application/json, or application/<anything>+json. */
const isJson = (type: string): boolean => /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type)

function checkAnswer ({ status, type, headers }: OutboundDocument, what: string): void {
  if (status !== 200) {
    const state = status === 404 || status === 410 ? 'gone' : status === 429 || status >= 500 ? 'down' : 'refused'
    throw new DocumentError('status', `the host must answer 200 for the ${what}, without a redirect`, { value: String(status), state })
  }
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new DocumentError('encoding', `the ${what} must not be compressed`, { value: encoding })
  }
  if (!isJson(type)) throw new DocumentError('type', `the ${what} must be of the type application/json`, { value: type })
}

/** Fetches documents, and the keys to which they refer, and judges them. */
export function createDocumentFetch ({ read, hosts }: { read: Outbound['read'], hosts: Hosts }) {
  async function get (url: string, limit: number, what: string): Promise<OutboundDocument> {
    let answer: OutboundDocument
    try {
      answer = await read({ method: 'GET', url, headers: { accept: 'application/json', 'accept-encoding': 'identity' }, limit, timeout: TIMEOUT, status: 200 })
    } catch (error) {
      throw toDocumentError(error, what)
    }
    checkAnswer(answer, what)
    return answer
  }

  /** @throws DocumentError */
  async function getKeys (jwks_uri: string): Promise<Required<Pick<DocumentBody, 'keys'>>> {
    const { body } = await get(jwks_uri, MOST_KEYS, 'keys')
    try {
      return { keys: readKeys(JSON.parse(String(body))) }
    } catch (error) {
      throw error instanceof SyntaxError ? new DocumentError('jwks_uri', 'the keys must be JSON', { value: jwks_uri }) : error
    }
  }

  return {
    /** @throws DocumentError */
    async getDocument (url: URL): Promise<Fetched> {
      const { body, headers } = await get(url.href, MOST_DOCUMENT, 'document')
      const judged = judgeDocument(url, String(body), { redirects: hosts.listRedirects(url) })
      return { body: { ...judged, ...(judged.jwks_uri !== undefined && await getKeys(judged.jwks_uri)) }, lifetime: toLifetime(headers['cache-control']) }
    }
  }
}

export type DocumentFetch = ReturnType<typeof createDocumentFetch>
