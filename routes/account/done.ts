import type { FastifyRequest } from 'fastify'
import type { AccountView } from '../../lib/pages/contract.ts'

const DONE: readonly NonNullable<AccountView['done']>[] = ['name', 'password', 'verification', 'address', 'ended', 'others', 'disconnected', 'renewed', 'removed']

/** The result of the previous form, as named in the redirect. */
export function readDone ({ query }: FastifyRequest): Pick<AccountView, 'done'> {
  const { done } = query as { done?: unknown }
  const known = DONE.find((one) => one === done)
  return known === undefined ? {} : { done: known }
}
