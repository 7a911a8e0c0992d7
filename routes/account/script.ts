import type { FastifyInstance } from 'fastify'
import { readScript } from '../../lib/pages/script.ts'

/** A year, in seconds: other content has another URL. */
const FOR_EVER = 'public, max-age=31536000, immutable'

/** The script of passkeys, the only file that pages load. */
export function serveScript (app: FastifyInstance): void {
  const { file, text } = readScript()
  app.get(`/${file}`, { schema: { hide: true } }, async (_request, reply) => (
    await reply.headers({ 'cache-control': FOR_EVER, 'x-content-type-options': 'nosniff' }).type('text/javascript; charset=utf-8').send(text)))
}
