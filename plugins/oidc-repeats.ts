import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { IdentityError } from '../lib/errors.ts'
import { type RepeatsMount, createFormRepeats } from './form-repeats.ts'
import { readForm } from './utf8.ts'

/** Bytes of the forms of oidc-provider's pages. */
const FORM_LIMIT = 16 * 1024

/** Takes the place of a form in the last step of a sign-in, which is a GET request. */
const LAST = { id: 'last step', fields: [] }

const isForm = ({ headers }: FastifyRequest) => headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true

/** Reads the form of a request whose body is for oidc-provider, and leaves it to be read again. */
async function peekForm (request: FastifyRequest): Promise<void> {
  const { raw } = request
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > FORM_LIMIT) throw new IdentityError('ErrParam', 'body: is too large', { statusCode: 413 })
    chunks.push(chunk)
  }
  const body = Buffer.concat(chunks)
  request.body = await readForm(body)
  Object.defineProperties(raw, { readable: { value: true }, iterator: { value: () => [body] } })
}

/**
 * The same for pages that oidc-provider answers: its forms, and the last step of a sign-in, which makes the session. A browser that has sent
 * a form twice comes there twice, with the cookie that names its sign-in.
 */
export function createRawRepeats (app: FastifyInstance, mount: RepeatsMount) {
  const repeats = createFormRepeats(app, mount)
  /** Called with a request before oidc-provider answers it. Resolves to whether it was answered. */
  return async function begin (request: FastifyRequest, reply: FastifyReply, isLast: boolean): Promise<boolean> {
    const { raw } = reply
    if (request.method === 'POST' && isForm(request)) await peekForm(request)
    const run = await repeats.begin(request, reply, isLast ? LAST : repeats.read(request), { isStored: !isLast })
    if (run === null) return true
    const { end } = raw
    raw.end = (body?: unknown) => {
      raw.end = end
      const answer = { payload: body, headers: raw.getHeaders() }
      repeats.show(request, answer, (line) => raw.appendHeader('set-cookie', line))
      if (run === undefined) return end.call(raw, body, 'utf8')
      void (async () => {
        try {
          // A page that answers a form asks for more.
          await repeats.finish(request, raw.statusCode, run, answer, (to) => isLast || to !== undefined)
        } catch (error) {
          request.log.error({ err: error }, 'what a form has done was not stored')
        }
        end.call(raw, body, 'utf8')
      })()
      return raw
    }
    return false
  }
}
