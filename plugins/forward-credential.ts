import type { FastifyRequest } from 'fastify'
import { IdentityError } from '../lib/errors.ts'
import { PREFIXES } from '../lib/crypto/prefixed-secret.ts'
import { LIMITS } from '../schemas/common.ts'
import { readBearer } from './auth.ts'

/** The scheme, case-insensitive, and the credentials in base64 (RFC 7617, 2). */
const BASIC = /^basic +([A-Za-z0-9+/]{1,1536}={0,2}) *$/i

/** After a user name, which has no colon: a service or personal access token, which says by its prefix that it is one. */
const TOKEN = new RegExp(`^[^:]*:((?:${PREFIXES.service}|${PREFIXES.personal})[0-9A-Za-z]+)$`)

const IS_BASIC = /^basic(?: |$)/i

/**
 * The token in Basic credentials, for programs that know a user name and a password only. The user name is ignored. The password of a person
 * is no such token, and is compared with nothing.
 */
function readBasic (header: string): string {
  const [, credentials = ''] = BASIC.exec(header) ?? []
  const token = TOKEN.exec(Buffer.from(credentials, 'base64').toString())?.[1]
  if (token !== undefined && token.length <= LIMITS.token) return token
  throw new IdentityError('ErrUnknown', 'authorization: the password must be a token', { headers: { 'www-authenticate': 'Bearer' } })
}

/**
 * The token of a request that a proxy asks about: a bearer token, or one in place of a password.
 * @throws ErrUnknown when there is none
 */
export function readForwarded ({ headers: { authorization } }: Pick<FastifyRequest, 'headers'>): string {
  return authorization !== undefined && IS_BASIC.test(authorization) ? readBasic(authorization) : readBearer(authorization)
}
