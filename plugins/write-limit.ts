import type { preHandlerHookHandler } from 'fastify'
import type { Counter } from '../lib/sign-in/counter.ts'
import { IdentityError } from '../lib/errors.ts'
import { requireCaller } from './auth.ts'

const MINUTE = 60_000
const READS = ['GET', 'HEAD']

/**
 * Limits how many changes a user may make, because each is written durably and the requests are small. A preHandler, so that
 * invalid requests, which write nothing, are not counted. Reading is not limited, and neither are admins.
 * @param perMinute false: no limit
 */
export function createWriteLimit (perMinute: number | false, counter: Counter): preHandlerHookHandler {
  if (perMinute === false) return (_request, _reply, done) => done()
  return async function writeLimit (request) {
    if (READS.includes(request.method) || request.isAdmin) return
    const { current, ttl } = await counter.count('write', requireCaller(request).user.user_id, MINUTE)
    if (current <= perMinute) return
    const seconds = Math.max(1, Math.ceil(ttl / 1000))
    throw new IdentityError('ErrLimit', `too many changes, try again in ${seconds} s`, { headers: { 'retry-after': String(seconds) } })
  }
}
