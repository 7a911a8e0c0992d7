import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema, onRequestHookHandler } from 'fastify'
import type { Clock } from '../lib/clock.ts'
import { IdentityError } from '../lib/errors.ts'
import type { Caller } from '../lib/tokens/tokens.ts'
import { createAdmission, denied } from '../plugins/admission.ts'
import { createAdmit } from '../plugins/auth.ts'
import { handleNotFound } from '../plugins/errors.ts'
import { readForwarded } from '../plugins/forward-credential.ts'
import { type ForwardRule, RuleError, parseRule } from '../plugins/forward-rule.ts'
import { ForwardQuerySchema, IDENTITY_HEADERS, type IdentityHeader } from '../schemas/forward-auth.ts'
import { errors } from './responses.ts'

interface ForwardSettings {
  /** The request header with the rule of a proxy that appends the original path, in lower case. Absent: only the path itself exists. */
  header?: string | undefined
  now: Clock
}

/** Bytes of all headers about a caller. Proxies refuse longer ones with a 5xx, some from 4 or 8 KiB on. */
const MAX_HEADERS = 6 * 1024

/** What the two lists of headers have between their items, and what a header may not have. */
const RESERVED = /[^\w.~!$&'()*+/:;=?@-]/gu

/** UTF-8 in percent-encoding (RFC 3986, 2.1) of all but letters, digits and marks that have no meaning in a header. */
const encode = (text: string): string => text.toWellFormed().replace(RESERVED, (part) => encodeURIComponent(part))

/** What is said of the caller. A client that acts for itself has an owner, who is not the user of the request. */
function describeCaller ({ subject, user, client, token }: Caller): Record<IdentityHeader, string> {
  const isUser = subject === 'user'
  return {
    'identity-user': isUser ? encode(user.user_id) : '',
    'identity-account': isUser ? encode(user.account) : '',
    'identity-client': encode(client.clientId),
    'identity-scope': token.scopes.map(encode).join(' '),
    'identity-roles': Object.keys(user.roles).map(encode).join(','),
    'identity-subject': subject
  }
}

/** The part of a URL before its query, and the query. */
function splitUrl (url: string): [path: string, query: string] {
  const at = url.indexOf('?')
  return at === -1 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)]
}

/**
 * The rule in a header. Node joins fields of one name by a comma, and so do proxies: a rule with one may be two, of which a caller has written
 * one. In the rule itself a comma is percent-encoded.
 */
function readHeader (value: string | string[] | undefined): string {
  if (Array.isArray(value) || value?.includes(',') === true) throw new RuleError('the header of the rule is given twice, or has a comma')
  return value ?? ''
}

/** Nobody can follow a wrong rule. Not 400: nginx would answer 500. */
function refuseRule (request: FastifyRequest, error: unknown): IdentityError {
  if (!(error instanceof RuleError)) throw error
  request.log.warn({ reason: error.message }, 'the rule of a forward authentication is wrong')
  return denied('the rule of the proxy is wrong; the log of the service has the reason')
}

/** Adds a challenge for programs that send a user name and a password only. It comes first: many read one challenge of a header. */
function addBasic (error: unknown): unknown {
  if (!(error instanceof IdentityError) || error.statusCode !== 401) return error
  const { code, message, statusCode, headers, reason } = error
  const challenge = `Basic realm="access token", ${headers['www-authenticate'] ?? 'Bearer'}`
  return new IdentityError(code, message, { statusCode, reason, headers: { ...headers, 'www-authenticate': challenge } })
}

/** Whether a body follows the headers of a request. */
function announcesBody ({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || !['0', undefined].includes(headers['content-length'])
}

const schema: FastifySchema = {
  operationId: 'forwardAuth',
  tags: ['auth'],
  summary: 'Judge the access token of a request for a reverse proxy',
  description: 'For `auth_request` of nginx, `forward_auth` of Caddy and the like, with any method. The query is the rule of the proxy; ' +
    'a wrong one is 403. A service token may also be the password of Basic credentials.',
  querystring: ForwardQuerySchema,
  security: [{ bearer: [] }],
  response: {
    200: {
      type: 'null',
      description: 'The caller meets the rule. No body. The headers are always there, empty where there is nothing to say.',
      headers: IDENTITY_HEADERS
    },
    ...errors([])
  }
}

/**
 * Judges the requests that a reverse proxy asks about, by the guards' own function and before any body is read. At the path itself the rule is
 * in the query, which the proxy writes. Below it path, method and query are those of the original request, so the rule is in a header.
 */
export async function forwardRoutes (app: FastifyInstance, { header, now }: ForwardSettings): Promise<void> {
  const { tokens, roles } = app.identity

  /** Compares with the URL as it was sent: a router may count others as the same path, which a caller has written. */
  function readRule (request: FastifyRequest): ForwardRule | undefined {
    const [path, query] = splitUrl(request.url)
    if (path === app.prefix) return parseRule(query)
    return header === undefined ? undefined : parseRule(readHeader(request.headers[header]))
  }

  function accept (caller: Caller, reply: FastifyReply): void {
    const headers = describeCaller(caller)
    const size = Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0)
    if (size > MAX_HEADERS) {
      reply.log.warn({ size }, 'the headers about a caller are too long for a proxy')
      throw denied('the scopes and roles of the caller are too long for a proxy')
    }
    reply.headers(headers).code(200).send()
  }

  const judge: onRequestHookHandler = (request, reply, done) => {
    reply.header('cache-control', 'no-store')
    // What follows is not read, and would be taken for the next request.
    if (announcesBody(request) && request.raw.httpVersionMajor === 1) reply.header('connection', 'close')
    let rule: ForwardRule | undefined
    try {
      rule = readRule(request)
      if (rule === undefined) {
        handleNotFound(request, reply)
        return
      }
    } catch (error) {
      done(refuseRule(request, error))
      return
    }
    const { guard, basic } = rule
    const refuse = (error: unknown) => done((basic ? addBasic(error) : error) as Error)
    try {
      const caller = createAdmit(tokens, createAdmission(roles, guard, now), readForwarded)(request)
      if (caller instanceof Promise) caller.then((found) => accept(found, reply)).catch(refuse)
      else accept(caller, reply)
    } catch (error) {
      refuse(error)
    }
  }

  app.addHook('onRequest', judge)
  const handler = () => { throw new Error('the hook has answered') }
  app.get('', { exposeHeadRoute: false, schema, handler })
  const method = app.supportedMethods.filter((name) => name !== 'GET')
  app.route({ method, url: '', schema: { hide: true }, handler })
  if (header !== undefined) app.route({ method: app.supportedMethods, url: '/*', exposeHeadRoute: false, schema: { hide: true }, handler })
  // The methods that the host's router does not have, such as those of WebDAV, and the paths that do not exist.
  app.setNotFoundHandler(handler)
}
