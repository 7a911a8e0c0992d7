import { IdentityError } from '../lib/errors.ts'
import type { WorkRecord } from '../lib/work/record.ts'
import type { Context } from './command.ts'
import { type Columns, printRecord } from './output.ts'

/** The columns that all deliveries have, after those of their kind. */
export const DELIVERY_COLUMNS: Columns<WorkRecord> = {
  ATTEMPTS: ({ attempts }) => attempts,
  FAILURE: ({ failure }) => failure ?? '',
  DUE: ({ due_at }) => due_at,
  ENDS: ({ ends_at }) => ends_at
}

/** The state of the deliveries that `list` shows. */
export const readState = ({ args }: Context): WorkRecord['state'] => args.has('failed') ? 'failed' : 'due'

export interface Retries {
  list (state: WorkRecord['state']): AsyncIterable<WorkRecord[]>
  /** @throws ErrNotFound when the delivery has not failed; ErrParam when its subject has ended */
  retry (id: string): Promise<void>
}

/** Ignores the error of a delivery that has ended, or that somebody else has retried. */
function skipEnded (error: unknown): void {
  if (!(error instanceof IdentityError) || (error.code !== 'ErrNotFound' && error.code !== 'ErrParam')) throw error
}

/** Retries the failed delivery that --id names, or all of them with --all. */
export async function retryDeliveries (context: Context, { list, retry }: Retries, note?: string): Promise<void> {
  const { args } = context
  const id = args.optional('id')
  args.requireOne('id', 'all')
  let retried = 0
  async function retryOne (id: string): Promise<void> {
    await retry(id)
    retried++
  }
  if (id !== undefined) await retryOne(id)
  else for await (const batch of list('failed')) for (const one of batch) await retryOne(one.id).catch(skipEnded)
  printRecord(context, { retried }, retried > 0 ? note : undefined)
}
