import type { preHandlerAsyncHookHandler } from 'fastify'
import { requireCaller } from './auth.ts'
import type { UserLimit } from './user-limit.ts'

const READS = ['GET', 'HEAD']

/**
 * Limits how many changes a user may make, because each is written durably and the requests are small. A preHandler, so that
 * invalid requests, which write nothing, are not counted. Reading is not limited, and neither are admins.
 */
export function createWriteLimit (limit: UserLimit): preHandlerAsyncHookHandler {
  return async function writeLimit (request) {
    if (READS.includes(request.method) || request.isAdmin) return
    await limit(requireCaller(request).user.user_id)
  }
}
