import { type Decision, changeRecord } from '../change-record.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import type { Recorder } from '../events/recorder.ts'
import { readSome } from '../lists/first.ts'
import type { Collection } from '../store/port.ts'
import { MAX_WEBHOOKS, type WebhookRecord } from './record.ts'

export function notFound (): IdentityError {
  return new IdentityError('ErrNotFound', 'webhookId: no such webhook')
}

/** The change that ends the current lease, so that a new one can begin at once. */
export const SEIZE = { set: { leased_until: toTimestamp(0) }, increment: { claim: 1 } }

/** Reads the stored webhooks, and changes them with the events of the change. */
export function createRegistry ({ webhooks, now, recorder }: { webhooks: Collection<WebhookRecord>, now: Clock, recorder: Pick<Recorder, 'attach'> }) {
  async function requireRecord (webhookId: string): Promise<WebhookRecord> {
    const record = await webhooks.get(webhookId)
    if (record === null) throw notFound()
    return record
  }

  async function listAll (): Promise<WebhookRecord[]> {
    return await readSome(webhooks, { limit: MAX_WEBHOOKS, urgent: true })
  }

  /** Reads, decides and writes, and starts again after a concurrent change. Nothing is written when `decide` returns null. */
  async function write (webhookId: string, decide: (record: WebhookRecord) => Decision<WebhookRecord> | null): Promise<WebhookRecord> {
    return await changeRecord({ collection: webhooks, recorder, what: 'the webhook', notFound }, webhookId, (record) => {
      const decision = decide(record)
      return decision && { ...decision, set: { ...decision.set, modified_at: toTimestamp(now()) } }
    })
  }

  return { requireRecord, listAll, write }
}

export type Registry = ReturnType<typeof createRegistry>
