import { randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { IncomingMessage } from '../lib/node-http.ts'
import { readCookie } from './cookies.ts'

/** The cookie of a browser that was shown a form. It ends with the browser, and nothing of it is stored. */
export function createFormCookie (issuer: URL) {
  const secure = issuer.protocol === 'https:'
  const name = secure ? '__Host-identity_browser' : 'identity_browser'
  return {
    /** The browser's secret. Undefined if the request carries none. */
    find: (request: FastifyRequest): string | undefined => {
      const secret = readCookie(request, name)
      return secret !== undefined && /^[\w-]{43}$/.test(secret) ? secret : undefined
    },
    create: (): string => `${name}=${randomBytes(32).toString('base64url')}; Path=/; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  }
}

/** The cookies of a browser after an answer that sets these. */
export function addCookies (sent = '', set: readonly string[]): string {
  const jar = new Map<string, string>()
  for (const pair of [...sent.split(';'), ...set.flatMap((line) => line.split(';', 1))]) {
    const [name = '', ...value] = pair.trim().split('=')
    if (name !== '') jar.set(name, value.join('='))
  }
  return [...jar].filter(([, value]) => value !== '').map(([name, value]) => `${name}=${value}`).join('; ')
}

/** The same request with other cookies, to read the session in it. */
export function withCookies ({ raw }: FastifyRequest, cookie: string): FastifyRequest['raw'] {
  const copy = new IncomingMessage(raw.socket)
  Object.assign(copy, { method: 'GET', url: raw.url, httpVersion: raw.httpVersion })
  copy.headers = { ...raw.headers, cookie }
  return copy
}
