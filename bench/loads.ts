import { CLIENTS, TOKENS, clientAt, range, tokenAt, tokenInfoAt, userAt } from './fixture.ts'
import { bearer, toRaw } from './http.ts'
import type { Load } from './types.ts'

/** The loads on the service's API; the servers of peers bring their own (servers/). */

/**
 * @param indexes of the tokens in rotation
 * @param proven false for a server that gives every request the same answer
 */
export function tokenInfoLoad (indexes: number[] = range(TOKENS, (index) => index), proven = true): Load {
  return {
    requests: indexes.map((index) => toRaw({ path: '/api/v1/auth/tokeninfo', headers: bearer(tokenAt(index)) })),
    ...(proven && { proofs: indexes.map((index) => tokenInfoAt(index).account) })
  }
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

const TOKEN = '/api/v1/auth/token'

/** RFC 6749, 2.3.1. */
function basic (id: string, secret: string): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}` }
}

/** A resource server asks about all tokens (RFC 7662). */
export function introspectionLoad (path: string, { id, secret }: { id: string, secret: string }, tokens: string[] = range(TOKENS, tokenAt)): Load {
  return {
    requests: tokens.map((token) => toRaw({ method: 'POST', path, headers: { ...basic(id, secret), ...FORM }, body: `token=${token}` })),
    proofs: range(TOKENS, (index) => userAt(index).user_id)
  }
}

export const admin = bearer(tokenAt(0))

export function profileLoad (): Load {
  return {
    requests: range(TOKENS, (index) => toRaw({ path: '/api/v1/user', headers: bearer(tokenAt(index)) })),
    proofs: range(TOKENS, (index) => userAt(index).account)
  }
}

/** An admin reads users. */
export function userLoad (): Load {
  return {
    requests: range(TOKENS, (index) => toRaw({ path: `/api/v1/user/${userAt(index).user_id}`, headers: admin })),
    proofs: range(TOKENS, (index) => userAt(index).account)
  }
}

/** An admin changes users' names. */
export function patchLoad (): Load {
  return {
    requests: range(TOKENS, (index) => toRaw({
      method: 'PATCH', path: `/api/v1/user/${userAt(index).user_id}`, headers: admin, body: { data: { name: 'Name {counter}' } }
    })),
    status: 204
  }
}

/** An admin creates users; each has a new account. */
export function createLoad (): Load {
  return {
    requests: [toRaw({
      method: 'POST', path: '/api/v1/user', headers: admin, body: { data: { account: 'new{counter}@example.com', password: 'a long password', name: 'New user' } }
    })],
    volatile: true
  }
}

/** The path of the console. */
export const CONSOLE = '/admin'

/** An operator reads about people, one after the other, and about events. */
export function consoleLoad (cookie: string): Load {
  const headers = { cookie, accept: 'text/html' }
  const people = range(100, (index) => `/people/${userAt(index).user_id}`)
  return { requests: [...people, '/people', '/clients', '/events'].map((path) => toRaw({ path: CONSOLE + path, headers })) }
}

/** Pages of 100 records, each request another page. */
export function pageLoad (path: string, records: number): Load {
  return { requests: range(records / 100, (page) => toRaw({ path: `${path}?limit=100&offset=${page * 100}`, headers: admin })) }
}

/** People have forgotten their passwords, each at an address of their own. */
export function forgotLoad (): Load {
  return {
    requests: range(TOKENS, (index) => toRaw({
      method: 'POST',
      path: '/api/v1/auth/forgot',
      headers: { 'x-forwarded-for': `10.0.${index >> 8}.${index & 255}` },
      body: { data: { account: userAt(index).account } }
    })),
    status: 204,
    volatile: true
  }
}

/** Confidential clients ask for their own tokens (RFC 6749, 4.4). */
export function issueLoad ({ path = TOKEN, scope }: { path?: string, scope?: string } = {}): Load {
  const body = String(new URLSearchParams({ grant_type: 'client_credentials', ...(scope !== undefined && { scope }) }))
  return {
    requests: range(CLIENTS / 2, (half) => {
      const { clientId, secret } = clientAt(2 * half)
      return toRaw({ method: 'POST', path, headers: { ...basic(clientId, secret!), ...FORM }, body })
    }),
    volatile: true
  }
}

/** A request of a client's at the token endpoint, beside its authentication. */
export interface TokenRequest {
  client: { clientId: string, secret: string }
  body: Record<string, string>
}

/** Confidential clients redeem codes or refresh tokens, each once. */
export function redeemLoad (requests: TokenRequest[]): Load {
  return {
    requests: requests.map(({ client: { clientId, secret }, body }) => (
      toRaw({ method: 'POST', path: TOKEN, headers: { ...basic(clientId, secret), ...FORM }, body: String(new URLSearchParams(body)) }))),
    volatile: true,
    once: true
  }
}
