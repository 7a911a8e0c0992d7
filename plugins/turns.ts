import type { FastifyRequest } from 'fastify'
import type { Turn } from '../lib/fair-queue.ts'
import { toNetworkTurn } from '../lib/throttling/networks.ts'
import { watchConnection } from './connections.ts'

/**
 * The turn of a request without a sign-in, whatever account or mailbox it names: otherwise a caller would have a turn for each name
 * that they know.
 */
export function toAnonymousTurn (request: FastifyRequest): Turn {
  return { ...toNetworkTurn(request.ip), signal: watchConnection(request) }
}
