import type { FastifyRequest } from 'fastify'
import type { AccountView } from '../../lib/pages/contract.ts'

const DONE: readonly NonNullable<AccountView['done']>[] = ['name', 'password', 'verification', 'address', 'ended', 'others', 'disconnected', 'renewed', 'removed']

/** What the form before this page has done, which the redirect names. */
export function readDone ({ query }: FastifyRequest): Pick<AccountView, 'done'> {
  const { done } = query as { done?: unknown }
  const known = DONE.find((one) => one === done)
  return known === undefined ? {} : { done: known }
}
