import { CLIENTS, TOKENS, clientAt, range, tokenAt, tokenInfoAt, userAt } from './fixture.ts'
import { bearer, toRaw } from './http.ts'
import type { Load } from './types.ts'

/** The loads on the service's own API; peers bring their own (servers/). */

/** @param indexes of the tokens in rotation */
export function tokenInfoLoad (indexes: number[] = range(TOKENS, (index) => index), proven = true): Load {
  return {
    requests: indexes.map((index) => toRaw({ path: '/api/v1/auth/tokeninfo', headers: bearer(tokenAt(index)) })),
    ...(proven && { proofs: indexes.map((index) => tokenInfoAt(index).account) })
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

/** Nobody's user before: an account of its own each time. */
export function createLoad (): Load {
  return {
    requests: [toRaw({
      method: 'POST', path: '/api/v1/user', headers: admin, body: { data: { account: 'new{counter}@example.com', password: 'a long password', name: 'New user' } }
    })],
    volatile: true
  }
}

/** A page of 100 of `of` records, each request another one. */
export function pageLoad (path: string, of: number): Load {
  return { requests: range(of / 100, (page) => toRaw({ path: `${path}?limit=100&offset=${page * 100}`, headers: admin })) }
}

/** Confidential clients ask for tokens of their own (RFC 6749, 4.4). */
export function issueLoad (path: string): Load {
  return {
    requests: range(CLIENTS / 2, (half) => {
      const { clientId, secret } = clientAt(2 * half)
      const basic = Buffer.from(`${clientId}:${secret}`).toString('base64')
      return toRaw({
        method: 'POST', path, headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' }, body: 'grant_type=client_credentials'
      })
    }),
    volatile: true
  }
}
