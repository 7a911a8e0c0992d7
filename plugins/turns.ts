import type { FastifyRequest } from 'fastify'
import type { Turn } from '../lib/fair-queue.ts'
import { groupAddress, groupNetwork } from '../lib/throttling/networks.ts'
import { watchConnection } from './connections.ts'

/** The turn of a request of a program, which is carried out also if the program does not wait for the answer. */
export function toNetworkTurn ({ ip }: FastifyRequest): Turn {
  return { key: `address ${groupAddress(ip)}`, group: `network ${groupNetwork(ip)}` }
}

/**
 * The turn of a request without a sign-in, whatever account or mailbox it names: otherwise a caller would have a turn for each name
 * that they know.
 */
export function toAnonymousTurn (request: FastifyRequest): Turn {
  return { ...toNetworkTurn(request), signal: watchConnection(request) }
}
