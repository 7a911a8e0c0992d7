import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { INTERACTION } from '../lib/issuer.ts'
import { ServerResponse } from '../lib/node-http.ts'
import { FORM_ID, FORM_ID_PATTERN } from '../lib/pages/form-id.ts'
import type { Answer, Run, SentForm, Turn } from '../lib/sent-forms/sent-forms.ts'
import { groupNetwork } from '../lib/throttling/networks.ts'
import { watchConnection } from './connections.ts'
import { addCookies, createFormCookie, withCookies } from './form-cookie.ts'
import type { OidcMount } from './oidc-mount.ts'
import { sendPage, wasAsked } from './pages.ts'
import { readField, readFields } from './sign-in-forms.ts'

/** Headers that belong to one answer on the wire. */
const OWN = new Set(['set-cookie', 'content-length', 'date', 'connection', 'keep-alive', 'transfer-encoding', 'content-encoding'])

/** Bytes of a download that is kept for a repeat. */
const SHORT = 256 * 1024

export interface RepeatsMount extends Pick<OidcMount, 'getServer' | 'getIssuer' | 'look'> {
  /** The path above pages other than those of the account. */
  getAbove?: () => string
}

/** An answer before the hooks of the host see it. */
interface Given { payload: unknown, headers: Record<string, unknown> }

const toList = (value: unknown): string[] => value === undefined ? [] : [value].flat().map(String)

/** Reads a download that is short enough to be kept; a longer one goes on as a stream. */
async function readShort (stream: Readable): Promise<string | Readable> {
  const chunks: Buffer[] = []
  let length = 0
  const rest = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer | string>
  while (length <= SHORT) {
    const { done, value } = await rest.next()
    if (done === true) return Buffer.concat(chunks).toString()
    const chunk = Buffer.from(value)
    chunks.push(chunk)
    length += chunk.length
  }
  return Readable.from((async function * () {
    yield * chunks
    yield * { [Symbol.asyncIterator]: () => rest }
  })(), { objectMode: false })
}

/** Finds out what a repeat of a form may be shown, and remembers answers. */
export function createFormRepeats (
  { identity: { sentForms, maySignIn } }: FastifyInstance, { getServer, getIssuer, look, getAbove = look.getHome }: RepeatsMount
) {
  const cookie = () => createFormCookie(getIssuer())

  /** The sign-in session in which a browser goes on after an answer. Undefined without one that may go on. */
  async function findSession (request: FastifyRequest, set: readonly string[]): Promise<string | undefined> {
    const raw = withCookies(request, addCookies(request.headers.cookie, set))
    const session = await (await getServer()).browsers.find(raw, new ServerResponse(raw), request.ip)
    if (session === null) return undefined
    const { uid, user_id, user_epoch: epoch, proofs } = session
    return (await maySignIn({ user_id, epoch, proofs })).may ? uid : undefined
  }

  /** @param hasChanged whether an answer that is no error, and leads to this page, says that something was carried out */
  async function finish (
    request: FastifyRequest, status: number, run: Run, { payload, headers }: Given, hasChanged: (to: string | undefined) => boolean
  ): Promise<void> {
    // A failure because the browser has left for the repeat, which is an error 499 or what came of it: the repeat is carried out.
    if (status >= 499 && watchConnection(request).aborted) return await run.giveBack()
    // A long download: the repeat learns that there was one.
    if (payload instanceof Readable) return await run.finish(undefined, 'changed')
    const cookies = toList(headers['set-cookie'])
    const session = await findSession(request, cookies).catch(async (error: unknown) => {
      // Whoever waits must not wait for a run that nobody ends.
      await run.finish(undefined, 'changed')
      throw error
    })
    const kept = Object.entries(headers).filter(([name, value]) => !OWN.has(name) && value !== undefined)
    const texts = Object.fromEntries(kept.map(([name, value]) => [name, String(value)]))
    const answer: Answer = { status, headers: texts, cookies, body: payload === undefined || payload === null ? '' : String(payload), session }
    const to = headers.location === undefined ? undefined : String(headers.location)
    await run.finish(answer, status < 400 && hasChanged(to) ? 'changed' : 'unchanged', to)
  }

  /** Says that a form was carried out, where its answer cannot be shown. */
  async function tell (request: FastifyRequest, reply: FastifyReply, to: string | undefined): Promise<FastifyReply> {
    if (to !== undefined) return reply.redirect(to, 303)
    const [path = ''] = request.url.split('?', 1)
    const isBelow = getAbove !== undefined && path.startsWith(`${getAbove()}/`) && !path.startsWith(INTERACTION)
    const isPage = isBelow && request.server.hasRoute({ method: 'GET', url: request.routeOptions.url ?? '' })
    return await sendPage(reply, 'sent-already', isPage ? { page: request.url } : {}, { look })
  }

  return {
    finish,

    /**
     * Judges a request that may be a repeat.
     * @returns the run of a first one; undefined for a request without what a repeat needs; null when it has answered
     */
    async begin (
      request: FastifyRequest, reply: FastifyReply, form: Pick<SentForm, 'id' | 'fields'> | undefined, options?: { isStored: boolean }
    ): Promise<Run | undefined | null> {
      const browser = cookie().find(request)
      if (form === undefined || browser === undefined) return undefined
      const turn: Turn = await sentForms.send({ ...form, browser, path: request.url, network: groupNetwork(request.ip) }, options)
      if ('run' in turn) return turn.run
      if ('answer' in turn) {
        const { status, headers, cookies, body, session } = turn.answer
        if (session === await findSession(request, cookies)) {
          reply.removeHeader('set-cookie')
          reply.code(status).headers(headers)
          for (const one of cookies) reply.header('set-cookie', one)
          await reply.send(body)
          return null
        }
        sentForms.forget(browser)
      }
      await tell(request, reply, 'done' in turn ? turn.done.to : turn.answer.status === 303 ? String(turn.answer.headers.location) : undefined)
      return null
    },

    /** The form of a request; undefined for one without an id. */
    read (request: FastifyRequest): Pick<SentForm, 'id' | 'fields'> | undefined {
      const id = readField(request, FORM_ID)
      return FORM_ID_PATTERN.test(id) ? { id, fields: [...readFields(request)] } : undefined
    },

    /** A browser has got a page: the answer that it was given before is gone. */
    show (request: FastifyRequest, { payload, headers }: Given, setCookie: (line: string) => void): void {
      if (typeof payload !== 'string' || !String(headers['content-type']).startsWith('text/html')) return
      const browser = cookie().find(request)
      if (browser !== undefined) sentForms.forget(browser)
      else if (payload.includes(`name="${FORM_ID}"`)) setCookie(cookie().create())
    }
  }
}

/**
 * Makes a form of this scope that is sent twice act once, and answers the repeat as the first: the same form (the one-time id that its page
 * carries) with the same fields, from the same browser. It covers every form of the scope, whatever route it has.
 */
export function answerRepeats (app: FastifyInstance, mount: RepeatsMount): void {
  const repeats = createFormRepeats(app, mount)
  const runs = new WeakMap<FastifyRequest, Run>()
  const given = new WeakMap<FastifyRequest, Given>()

  app.addHook('preHandler', async (request, reply) => {
    if (request.method === 'POST') {
      const run = await repeats.begin(request, reply, repeats.read(request))
      if (run === null) return reply
      if (run !== undefined) runs.set(request, run)
    }
    // Hooks of the host, which may compress the answer, run before those of this scope.
    const { send } = reply
    function pass (payload: unknown): FastifyReply {
      given.set(request, { payload, headers: { ...reply.getHeaders() } })
      return send.call(reply, payload)
    }
    reply.send = (payload) => {
      if (!(payload instanceof Readable) || !runs.has(request)) return pass(payload)
      readShort(payload).then(pass, pass)
      return reply
    }
  })

  /** Whether a form was carried out. It was not by a page that asks for more, another provider, or a sign-in that it needs. */
  function hasChanged (request: FastifyRequest, to: string | undefined): boolean {
    if (to === undefined) return !wasAsked(request)
    const { origin, pathname } = new URL(to, mount.getIssuer())
    return origin === mount.getIssuer().origin && !pathname.endsWith('/sign-in')
  }

  async function remember (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const answer = given.get(request)
    const run = runs.get(request)
    if (answer === undefined) return
    runs.delete(request)
    repeats.show(request, answer, (line) => { reply.header('set-cookie', line) })
    if (run !== undefined) await repeats.finish(request, reply.statusCode, run, answer, (to) => hasChanged(request, to))
  }

  app.addHook('onSend', (request, reply, payload, done) => {
    remember(request, reply).then(() => done(null, payload), done)
  })
}
