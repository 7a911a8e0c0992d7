import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import Negotiator from 'negotiator'
import { addVary } from './vary.ts'

const [brotli, gzip] = [promisify(zlib.brotliCompress), promisify(zlib.gzip)]

/** Characters below which a page is sent as it is. */
const SHORT = 1_000

/** The best first. Brotli at this level takes as long as gzip, and less space. */
const ENCODINGS = {
  br: async (text: string) => await brotli(text, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 } }),
  gzip: async (text: string) => await gzip(text)
}
const NAMES = Object.keys(ENCODINGS) as (keyof typeof ENCODINGS)[]

/** The encoding for a request. Undefined: none that we have. */
function choose ({ headers }: FastifyRequest): keyof typeof ENCODINGS | undefined {
  const accepted = new Negotiator({ headers: { 'accept-encoding': headers['accept-encoding'] ?? 'identity' } }).encodings(NAMES)
  return NAMES.find((name) => accepted.includes(name))
}

/**
 * Compresses the pages of the service, and nothing else: lists are too long, and what programs read is short. The tokens of pages are masked
 * (lib/pages/xsrf.ts). An app that embeds the plugin compresses by its own means.
 */
export function compressPages (app: FastifyInstance): void {
  // With a callback: the answers that are no pages, which are most, wait for no promise.
  app.addHook('onSend', (request, reply, payload, done) => {
    const isPage = typeof payload === 'string' && payload.length >= SHORT && String(reply.getHeader('content-type')).startsWith('text/html')
    if (!isPage || reply.hasHeader('content-encoding')) return done(null, payload)
    addVary(reply, 'Accept-Encoding')
    const encoding = choose(request)
    if (encoding === undefined) return done(null, payload)
    reply.removeHeader('content-length')
    reply.header('content-encoding', encoding)
    ENCODINGS[encoding](payload).then((compressed) => done(null, compressed), done)
  })
}
