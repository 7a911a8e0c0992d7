import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, preHandlerAsyncHookHandler } from 'fastify'
import type { Counter } from '../lib/throttling/counter.ts'
import { IdentityError } from '../lib/errors.ts'
import { countWith } from './attempts.ts'
import { requireCaller } from './auth.ts'

/**
 * Limits how often a user may change their password, because a hash costs a thousand times as much as the rest of the request.
 * @param perMinute false: no limit
 */
export async function createPasswordLimit (app: FastifyInstance, perMinute: number | false, counter: Counter): Promise<preHandlerAsyncHookHandler> {
  if (perMinute === false) return async () => {}
  await app.register(rateLimit, { global: false, store: countWith(counter) })
  const limit = app.rateLimit({
    max: perMinute,
    timeWindow: '1 minute',
    keyGenerator: (request) => `password ${requireCaller(request).user.user_id}`,
    errorResponseBuilder: (_request, { ttl }) => {
      const seconds = Math.max(1, Math.ceil(ttl / 1000))
      return new IdentityError('ErrLimit', `password: too many changes, try again in ${seconds} s`, { headers: { 'retry-after': String(seconds) } })
    }
  })
  return async function passwordLimit (request, reply) {
    const body = request.body as { data?: { password?: string } } | undefined
    if (body?.data?.password !== undefined) await limit.call(app, request, reply)
  }
}
