import type { CreateWebhook, NewWebhook, PatchWebhook, ReplayWebhook, Webhook, WebhookAttempt, WebhookListQuery, WebhookTested } from '../../schemas/webhook.ts'
import { type Checks, checkFields } from '../checks.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import { IdentityError, busyError, paramError } from '../errors.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Happening } from '../events/types.ts'
import { generateId } from '../ids.ts'
import { type Page, mapBatches } from '../lists/cursor.ts'
import { pageDocuments } from '../lists/documents.ts'
import { parseSort } from '../lists/sort.ts'
import { checkName } from '../names.ts'
import { type Outbound, OutboundError } from '../outbound/fetcher.ts'
import { retryWrite } from '../retry.ts'
import { type Change, DuplicateKeyError, type Json, type Store } from '../store/port.ts'
import { type WebhookFeed, compareCursors } from './cursors.ts'
import { type Deliveries, type DeliveriesParts, createDeliveries } from './deliveries.ts'
import { HEADERS, toTestBody } from './message.ts'
import { findEnd, findStart } from './places.ts'
import { type WebhookAttemptsRecord, MAX_WEBHOOKS, type WebhookRecord } from './record.ts'
import { createWebhookSecrets } from './secrets.ts'
import { showAttempt, showWebhook } from './show-webhook.ts'
import { isTypePattern } from './types.ts'

const SORT_KEYS = { created: 'created_at', modified: 'modified_at', name: 'name' }

/** Trials of this process at once. */
const MOST_TESTS = 4

export interface WebhookParts extends Pick<DeliveriesParts, 'timers' | 'random'> {
  store: Store
  now: Clock
  box: SecretBox
  recorder: Pick<Recorder, 'attach' | 'remove'>
  feed: WebhookFeed
  outbound: Pick<Outbound, 'fetch' | 'checkUrl'>
  onError: (error: unknown) => void
  /** Receives what an operator should know: a webhook was disabled, an event was given up. */
  onWarning: (message: string) => void
}

function notFound (): IdentityError {
  return new IdentityError('ErrNotFound', 'webhookId: no such webhook')
}

/** What ends the deliveries of whoever has the lease, and has them begin again at once. */
const SEIZE = { set: { leased_until: toTimestamp(0) }, increment: { claim: 1 } }

/** Webhooks: who is told of which events, and the deliveries. */
export function createWebhooks ({ store, now, box, recorder, feed, outbound, onError, onWarning, ...parts }: WebhookParts) {
  const webhooks = store.collection<WebhookRecord>('webhooks')
  const attempts = store.collection<WebhookAttemptsRecord>('webhook_attempts')
  const secrets = createWebhookSecrets({ box, now })
  let tests = 0

  const CHECKS: Checks<Omit<NewWebhook, 'disabled'>> = {
    name: (text) => checkName('name', text),
    url (text) {
      try {
        return outbound.checkUrl(text)
      } catch (error) {
        throw paramError('url', (error as Error).message)
      }
    },
    types (patterns) {
      const unknown = patterns.findIndex((pattern) => !isTypePattern(pattern))
      if (unknown >= 0) throw paramError(`types[${unknown}]`, 'no event has this type')
      return [...new Set(patterns)].sort()
    }
  }

  const deliveries: Deliveries = createDeliveries({
    ...parts,
    store,
    feed,
    now,
    onError,
    send: async (record, message, signal) => await outbound.fetch({
      url: record.url, headers: { ...HEADERS, ...secrets.sign(record, message) }, body: message.body, signal
    }),
    onGivenUp: (webhookId, event) => onWarning(`webhook ${webhookId}: the event ${event.id} (${event.type}) was given up after its last attempt`),
    async disable ({ id, claim }, failure, { set, unset }) {
      const record = await webhooks.get(id)
      if (record === null) return
      const change = {
        set: { ...set, state: 'off', failure, modified_at: toTimestamp(now()), ...SEIZE.set, ...recorder.attach(record, { type: 'webhook.disabled', id }) },
        unset: unset ?? [],
        increment: { revision: 1, claim: 1 }
      }
      if (await webhooks.update(id, change, { equal: { claim, state: 'on' } }) === null) return
      onWarning(`webhook ${id} was disabled: ${failure === 'FAILING' ? 'its receiver has failed for 5 days' : 'its receiver answered 410, that it is gone'}`)
    }
  })

  async function requireRecord (webhookId: string): Promise<WebhookRecord> {
    const record = await webhooks.get(webhookId)
    if (record === null) throw notFound()
    return record
  }

  async function listAll (): Promise<WebhookRecord[]> {
    const found: WebhookRecord[] = []
    for await (const batch of webhooks.list()) found.push(...batch)
    return found
  }

  /** Reads, decides and writes; a concurrent change starts it again. Null writes nothing. */
  async function write (webhookId: string, decide: (record: WebhookRecord) => { change: Change, happened: Happening[] } | null): Promise<WebhookRecord> {
    return await retryWrite('the webhook', async () => {
      const record = await requireRecord(webhookId)
      const decided = decide(record)
      if (decided === null) return record
      const { change: { set, unset, increment }, happened } = decided
      return await webhooks.update(webhookId, {
        set: { ...set, modified_at: toTimestamp(now()), ...recorder.attach(record, ...happened) },
        ...(unset && { unset }),
        increment: { ...increment, revision: 1 }
      }, { equal: { revision: record.revision } })
    })
  }

  /** The lowest number that no webhook has. @throws ErrLimit */
  function findSlot (taken: WebhookRecord[]): number {
    const slots = Array.from({ length: MAX_WEBHOOKS }, (_, index) => index + 1)
    const free = slots.find((slot) => !taken.some((record) => record.slot === slot))
    if (free === undefined) throw new IdentityError('ErrLimit', `webhooks: there are ${MAX_WEBHOOKS}, which is the maximum`)
    return free
  }

  async function readPage (query: WebhookListQuery): Promise<Page<Webhook>> {
    const { batches, ...page } = pageDocuments(await listAll(), parseSort(query.sort, SORT_KEYS, 'name:asc'), query)
    return { ...page, batches: mapBatches(batches, showWebhook) }
  }

  /** How long an event has waited that could not be delivered, and the number of parked ones. */
  async function readBacklog (): Promise<{ parked: number, oldest: number }> {
    const active = (await listAll()).filter(({ state }) => state === 'on')
    const starts = await Promise.all(active.map(async ({ cursor, parked }) => {
      const { events: [event] } = await feed.read({ after: cursor, limit: 1 }).catch(() => ({ events: [] }))
      return [...parked.map(({ since }) => since), ...(event === undefined ? [] : [event.time])].map((time) => Date.parse(time))
    }))
    const times = starts.flat()
    return { parked: active.reduce((sum, { parked }) => sum + parked.length, 0), oldest: times.length === 0 ? 0 : Math.max(0, now() - Math.min(...times)) / 1000 }
  }

  return {
    /**
     * Makes a webhook, which is told of the events from now on.
     * @returns with the secret, which is not shown again
     * @throws ErrParam, ErrLimit, ErrBusy
     */
    async create ({ data: { disabled = false, ...data } }: CreateWebhook): Promise<{ webhookId: string, secret: string }> {
      const fields = checkFields(data, CHECKS) as Omit<NewWebhook, 'disabled'>
      const time = now()
      const id = generateId(time)
      const { secret, sealed } = secrets.create(id)
      const cursor = await feed.last()
      await retryWrite('the webhooks', async () => {
        const record: WebhookRecord = {
          id,
          ...fields,
          slot: findSlot(await listAll()),
          state: disabled ? 'off' : 'on',
          sealed,
          revision: 0,
          created_at: toTimestamp(time),
          modified_at: toTimestamp(time),
          claim: 0,
          leased_until: toTimestamp(0),
          cursor,
          parked: [],
          failures: 0
        }
        try {
          await webhooks.insert({ ...record, ...recorder.attach(null, { type: 'webhook.created', id }) } as WebhookRecord)
          return record
        } catch (error) {
          if (error instanceof DuplicateKeyError) return null
          throw error
        }
      })
      deliveries.wake()
      return { webhookId: id, secret }
    },

    /** The webhook; throws ErrNotFound. */
    require: async (webhookId: string): Promise<Webhook> => showWebhook(await requireRecord(webhookId)),

    /**
     * Changes a webhook, which takes effect at once. A new URL, and one that is enabled again, is tried at once with all events
     * that wait for another attempt.
     * @throws ErrNotFound, ErrParam, ErrBusy
     */
    async patch (webhookId: string, { data: { disabled, ...data } }: PatchWebhook): Promise<void> {
      const fields = checkFields(data, CHECKS)
      if (disabled === undefined && Object.keys(fields).length === 0) throw new IdentityError('ErrParam', 'body: must contain a change')
      let ends = false
      await write(webhookId, (record) => {
        const changed = Object.entries(fields).filter(([field, value]) => JSON.stringify(record[field as keyof WebhookRecord]) !== JSON.stringify(value)).map(([field]) => field)
        const isDisabled = disabled === true && record.state === 'on'
        const isEnabled = disabled === false && record.state === 'off'
        const retries = isEnabled || changed.includes('url')
        ends = retries || isDisabled || changed.includes('types')
        if (isEnabled) changed.push('disabled')
        if (changed.length === 0 && !isDisabled) return null
        const { id } = record
        return {
          change: {
            set: {
              ...fields,
              ...(isDisabled && { state: 'off' }),
              ...(isEnabled && { state: 'on' }),
              ...(ends && SEIZE.set),
              ...(retries && { failures: 0, hurries: true })
            } as { [field: string]: Json },
            ...(retries && { unset: ['failing_since', 'wait_until', ...(isEnabled ? ['failure'] : [])] }),
            ...(ends && { increment: SEIZE.increment })
          },
          happened: [...(changed.length > 0 ? [{ type: 'webhook.updated' as const, id, changed }] : []), ...(isDisabled ? [{ type: 'webhook.disabled' as const, id }] : [])]
        }
      })
      if (ends) deliveries.interrupt(webhookId)
    },

    /**
     * Removes a webhook, with the record of its attempts.
     * @throws ErrNotFound, ErrBusy
     */
    async remove (webhookId: string): Promise<void> {
      if (!await recorder.remove('webhooks', webhookId, { type: 'webhook.deleted', id: webhookId })) throw notFound()
      deliveries.interrupt(webhookId)
      await attempts.delete(webhookId)
    },

    /**
     * Replaces the secret. The former one signs too for a day.
     * @throws ErrNotFound, ErrBusy
     */
    async rotateSecret (webhookId: string): Promise<{ secret: string }> {
      let secret = ''
      await write(webhookId, (record) => {
        const rotated = secrets.rotate(record.id, record.sealed)
        secret = rotated.secret
        return { change: { set: { sealed: rotated.sealed } }, happened: [{ type: 'webhook.secret_changed', id: record.id }] }
      })
      return { secret }
    },

    /**
     * Delivers events again, from a place in the feed on.
     * @throws ErrNotFound, ErrParam, ErrBusy
     */
    async replay (webhookId: string, { from, to }: ReplayWebhook): Promise<{ cursor: string }> {
      await requireRecord(webhookId)
      const cursor = await findStart(feed, from)
      const end = to === undefined ? undefined : await findEnd(feed, to)
      if (end !== undefined && compareCursors(end, cursor) < 0) throw paramError('to', 'must not be before from')
      await write(webhookId, (record) => {
        const resume = record.replay?.resume ?? record.cursor
        // A replay up to where the deliveries are goes on from there by itself.
        const isBounded = end !== undefined && compareCursors(end, resume) !== 0
        return {
          change: {
            set: { ...SEIZE.set, cursor, ...(isBounded && { replay: { to: end, resume } }) },
            ...(!isBounded && { unset: ['replay'] }),
            increment: SEIZE.increment
          },
          happened: [{ type: 'webhook.replayed', id: record.id }]
        }
      })
      deliveries.interrupt(webhookId)
      return { cursor }
    },

    /**
     * Sends a message of the type `webhook.test` now, also to a disabled webhook, and tells what came of it.
     * @throws ErrNotFound, ErrBusy
     */
    async test (webhookId: string, signal?: AbortSignal): Promise<WebhookTested> {
      const record = await requireRecord(webhookId)
      if (tests >= MOST_TESTS) throw busyError('tests of webhooks', 1_000)
      tests++
      const time = now()
      const id = `test_${generateId(time)}`
      const body = toTestBody(id, toTimestamp(time), webhookId)
      const start = performance.now()
      try {
        const { status, time } = await outbound.fetch({ url: record.url, headers: { ...HEADERS, ...secrets.sign(record, { id, body }) }, body, ...(signal && { signal }) })
        return { status, time }
      } catch (error) {
        if (!(error instanceof OutboundError)) throw error
        return { code: error.code, time: Math.round(performance.now() - start) }
      } finally {
        tests--
      }
    },

    /** The last attempts, the newest first; throws ErrNotFound. */
    async listAttempts (webhookId: string): Promise<WebhookAttempt[]> {
      await requireRecord(webhookId)
      const found = await attempts.get(webhookId)
      return (found?.attempts ?? []).map(showAttempt).reverse()
    },

    count: async (): Promise<number> => await webhooks.count(),

    /**
     * A page of the list, with the cursor of the next one.
     * @throws ErrParam for a sort that is not one, and a cursor that is not of this sort
     */
    page: readPage,

    /**
     * Batches of webhooks.
     * @throws as `page`
     */
    async * list (query: WebhookListQuery = {}): AsyncGenerator<Webhook[], void, undefined> {
      yield * (await readPage(query)).batches
    },

    readBacklog,

    /** Begins to deliver, and goes on until `close`. */
    start: deliveries.start,
    /** Delivers all that is due. */
    flush: deliveries.flush,
    close: deliveries.close
  }
}

export type Webhooks = ReturnType<typeof createWebhooks>
