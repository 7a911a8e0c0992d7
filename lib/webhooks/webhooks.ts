import type { Base } from '../base.ts'
import type { Webhook, WebhookAttempt, WebhookListQuery } from '../../schemas/webhook.ts'
import { toTimestamp } from '../clock.ts'
import type { Page } from '../lists/cursor.ts'
import { pageDocuments } from '../lists/documents.ts'
import { parseSort } from '../lists/sort.ts'
import type { Outbound } from '../outbound/fetcher.ts'
import { readBacklog } from './backlog.ts'
import { createChanges } from './changes.ts'
import type { WebhookFeed } from './cursors.ts'
import { type Deliveries, type DeliveriesParts, createDeliveries } from './deliveries.ts'
import { HEADERS } from './message.ts'
import { FAILED_EVENTS } from './failed-events.ts'
import type { FailedEvent, WebhookAttemptsRecord, WebhookRecord } from './record.ts'
import { SEIZE, createRegistry } from './registry.ts'
import { createWebhookSecrets } from './secrets.ts'
import { showAttempt, showWebhook } from './show-webhook.ts'
import { createTrials } from './trials.ts'

const SORT_KEYS = { created: 'created_at', modified: 'modified_at', name: 'name' }

export interface WebhookParts extends Base, Pick<DeliveriesParts, 'timers' | 'random' | 'outages'> {
  feed: WebhookFeed
  outbound: Pick<Outbound, 'fetch' | 'checkUrl'>
  /** Receives warnings for operators: a webhook was disabled, an event was given up. */
  onWarning: (message: string) => void
  /** Called when an event was given up, or a webhook was disabled because its receiver fails. */
  onGivenUp?: (() => void) | undefined
}

/** Webhooks: the receivers, the events that each of them wants, and the deliveries. */
export function createWebhooks ({ store, now, box, recorder, feed, outbound, report, onWarning, onGivenUp, ...parts }: WebhookParts) {
  const webhooks = store.collection<WebhookRecord>('webhooks')
  const attempts = store.collection<WebhookAttemptsRecord>('webhook_attempts')
  const failedEvents = store.collection<FailedEvent>(FAILED_EVENTS)
  const secrets = createWebhookSecrets({ box, now })
  const registry = createRegistry({ webhooks, now, recorder })
  const { requireRecord, listAll } = registry

  const deliveries: Deliveries = createDeliveries({
    ...parts,
    store,
    feed,
    now,
    onError: report('webhooks'),
    send: async (record, message, signal) => await outbound.fetch({
      url: record.url, headers: { ...HEADERS, ...secrets.sign(record, message) }, body: message.body, signal
    }),
    onGivenUp ({ webhook_id, event_id, type }) {
      onGivenUp?.()
      onWarning(`webhook ${webhook_id}: the event ${event_id} (${type}) was given up after its last attempt`)
    },
    async disable ({ id, claim }, failure, { set, unset }) {
      const record = await webhooks.get(id)
      if (record === null) return
      const change = {
        set: {
          ...set,
          state: 'off',
          failure,
          modified_at: toTimestamp(now()),
          ...SEIZE.set,
          ...recorder.attach(record, { happened: [{ type: 'webhook.disabled', id }] })
        },
        unset: unset ?? [],
        increment: { revision: 1, claim: 1 }
      }
      if (await webhooks.update(id, change, { equal: { claim, state: 'on' } }) === null) return
      onGivenUp?.()
      onWarning(`webhook ${id} was disabled: ${failure === 'FAILING' ? 'its receiver has failed for 5 days' : 'its receiver answered 410, that it is gone'}`)
    }
  })

  const show = async (record: WebhookRecord) => showWebhook(record, await failedEvents.count({ equal: { webhook_id: record.id, state: 'due' } }))

  async function * showAll (batches: AsyncIterable<WebhookRecord[]>): AsyncGenerator<Webhook[]> {
    for await (const batch of batches) yield await Promise.all(batch.map(show))
  }

  async function readPage (query: WebhookListQuery): Promise<Page<Webhook>> {
    const { batches, ...page } = pageDocuments(await listAll(), parseSort(query.sort, SORT_KEYS, 'name:asc'), query)
    return { ...page, batches: showAll(batches) }
  }

  return {
    ...createChanges({ webhooks, attempts, failedEvents, registry, secrets, now, recorder, feed, outbound, deliveries }),
    ...createTrials({ registry, secrets, now, outbound }),

    /** The webhook; throws ErrNotFound. */
    require: async (webhookId: string): Promise<Webhook> => show(await requireRecord(webhookId)),

    /** The last attempts, the newest first; throws ErrNotFound. */
    async listAttempts (webhookId: string): Promise<WebhookAttempt[]> {
      await requireRecord(webhookId)
      const found = await attempts.get(webhookId)
      return (found?.attempts ?? []).map(showAttempt).reverse()
    },

    count: async (): Promise<number> => await webhooks.count(),

    /**
     * A page of the list, with the cursor of the next one.
     * @throws ErrParam for an invalid sort, and for a cursor of another sort
     */
    page: readPage,

    /**
     * Batches of webhooks.
     * @throws as `page`
     */
    async * list (query: WebhookListQuery = {}): AsyncGenerator<Webhook[], void, undefined> {
      yield * (await readPage(query)).batches
    },

    /** The failed events, for operators. A retry delivers an event that was given up, up to ten times. */
    work: {
      list: deliveries.list,
      countFailed: deliveries.countFailed,
      async retry (id: string): Promise<void> {
        const record = await failedEvents.get(id)
        const isPaused = record?.state === 'due' && (await webhooks.get(record.webhook_id))?.wait_until !== undefined
        // A pause after failures may be all that holds it up.
        const { webhook_id } = isPaused && record.due_at <= toTimestamp(now()) ? record : await deliveries.retry(id)
        // The change ends the lease, so that its holder forgets the pause too.
        if (isPaused && await webhooks.update(webhook_id, { ...SEIZE, unset: ['wait_until', 'wait_set_at'] }) !== null) deliveries.interrupt(webhook_id)
        await recorder.insert({ type: 'webhook.replayed', id: webhook_id })
      },
      findStall: deliveries.findStall,
      pace: deliveries.pace
    },

    /** See backlog.ts. */
    readBacklog: async () => await readBacklog({ ...registry, records: failedEvents, feed, now }),

    /** Delivers until `close`. */
    start: deliveries.start,
    /** Delivers everything due. */
    flush: deliveries.flush,
    close: deliveries.close
  }
}

export type Webhooks = ReturnType<typeof createWebhooks>
