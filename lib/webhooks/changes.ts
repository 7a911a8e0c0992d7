import { isDeepStrictEqual } from 'node:util'
import type { CreateWebhook, NewWebhook, PatchWebhook, ReplayWebhook } from '../../schemas/webhook.ts'
import type { Decision } from '../change-record.ts'
import { type Checks, checkFields } from '../checks.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { IdentityError, paramError } from '../errors.ts'
import type { Recorder } from '../events/recorder.ts'
import { generateId } from '../ids.ts'
import { checkName } from '../names.ts'
import type { Outbound } from '../outbound/fetcher.ts'
import { retryWrite } from '../retry.ts'
import { type Collection, DuplicateKeyError } from '../store/port.ts'
import { type WebhookFeed, compareCursors } from './cursors.ts'
import type { Deliveries } from './deliveries.ts'
import { findEnd, findStart } from './positions.ts'
import { type FailedEvent, type WebhookAttemptsRecord, MAX_WEBHOOKS, type WebhookRecord } from './record.ts'
import { type Registry, SEIZE, notFound } from './registry.ts'
import type { WebhookSecrets } from './secrets.ts'
import { isTypePattern } from './types.ts'
import { readMessage } from '../failure.ts'
import { listFields } from '../defined.ts'

interface ChangesParts {
  webhooks: Collection<WebhookRecord>
  attempts: Collection<WebhookAttemptsRecord>
  failedEvents: Collection<FailedEvent>
  registry: Registry
  secrets: WebhookSecrets
  now: Clock
  recorder: Pick<Recorder, 'attach' | 'remove'>
  feed: WebhookFeed
  outbound: Pick<Outbound, 'checkUrl'>
  deliveries: Pick<Deliveries, 'wake' | 'interrupt'>
}

/** What a webhook remembers of failures, which does not count for another receiver. */
const NOTES_OF_FAILURES = ['failing_since', 'wait_until', 'wait_set_at'] as const

/** The lowest free slot. @throws ErrLimit */
function findSlot (taken: WebhookRecord[]): number {
  const slots = Array.from({ length: MAX_WEBHOOKS }, (_, index) => index + 1)
  const free = slots.find((slot) => !taken.some((record) => record.slot === slot))
  if (free === undefined) throw new IdentityError('ErrLimit', `webhooks: there are ${MAX_WEBHOOKS}, which is the maximum`)
  return free
}

/** What a patch changes of a webhook. A new URL, other types, and its end or new beginning also end its lease. Null: nothing. */
function decidePatch (record: WebhookRecord, fields: Partial<Omit<NewWebhook, 'disabled'>>, disabled: boolean | undefined): Decision<WebhookRecord> | null {
  const names = listFields(fields)
  const changed: string[] = names.filter((field) => !isDeepStrictEqual(record[field], fields[field]))
  const isDisabled = disabled === true && record.state === 'on'
  const isEnabled = disabled === false && record.state === 'off'
  const retries = isEnabled || changed.includes('url')
  const ends = retries || isDisabled || changed.includes('types')
  if (isEnabled) changed.push('disabled')
  if (changed.length === 0 && !isDisabled) return null
  const { id } = record
  return {
    set: {
      ...fields,
      ...(ends && SEIZE.set),
      state: isDisabled ? 'off' : isEnabled ? 'on' : undefined,
      failures: retries ? 0 : undefined,
      hurries: retries ? true : undefined
    },
    unset: [...(retries ? NOTES_OF_FAILURES : []), ...(isEnabled ? ['failure' as const] : [])],
    increment: ends ? SEIZE.increment : undefined,
    happened: [
      ...(changed.length > 0 ? [{ type: 'webhook.updated' as const, id, changed }] : []),
      ...(isDisabled ? [{ type: 'webhook.disabled' as const, id }] : [])
    ]
  }
}

/** Changes of webhooks by operators. A change takes effect at once, also on the deliveries of another process. */
export function createChanges (
  { webhooks, attempts, failedEvents, registry: { requireRecord, listAll, write }, secrets, now, recorder, feed, outbound, deliveries }: ChangesParts
) {
  const checks: Checks<Omit<NewWebhook, 'disabled'>> = {
    name: (text) => checkName('name', text),
    url (text) {
      try {
        return outbound.checkUrl(text)
      } catch (error) {
        throw paramError('url', readMessage(error))
      }
    },
    types (patterns) {
      const unknown = patterns.findIndex((pattern) => !isTypePattern(pattern))
      if (unknown >= 0) throw paramError(`types[${unknown}]`, 'no event has this type')
      return [...new Set(patterns)].sort()
    }
  }

  return {
    /**
     * Creates a webhook. It receives the events from now on.
     * @returns with the secret, which is not shown again
     * @throws ErrParam, ErrLimit, ErrBusy
     */
    async create ({ data: { disabled = false, ...data } }: CreateWebhook): Promise<{ webhookId: string, secret: string }> {
      const fields = checkFields(data, checks) as Omit<NewWebhook, 'disabled'>
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
          await webhooks.insert({ ...record, ...recorder.attach(null, { happened: [{ type: 'webhook.created', id }] }) })
          return record
        } catch (error) {
          if (error instanceof DuplicateKeyError) return null
          throw error
        }
      })
      deliveries.wake()
      return { webhookId: id, secret }
    },

    /**
     * Changes a webhook at once. When it gets a new URL or is enabled again, all events that wait for a retry are sent at once.
     * @throws ErrNotFound, ErrParam, ErrBusy
     */
    async patch (webhookId: string, { data: { disabled, ...data } }: PatchWebhook): Promise<void> {
      const fields = checkFields(data, checks)
      if (disabled === undefined && Object.keys(fields).length === 0) throw new IdentityError('ErrParam', 'body: must contain a change')
      let ends = false
      await write(webhookId, (record) => {
        const decided = decidePatch(record, fields, disabled)
        ends = decided?.increment !== undefined
        return decided
      })
      if (ends) deliveries.interrupt(webhookId)
    },

    /**
     * Removes a webhook, with its attempts and failed events.
     * @throws ErrNotFound, ErrBusy
     */
    async remove (webhookId: string): Promise<void> {
      if (!await recorder.remove('webhooks', webhookId, { type: 'webhook.deleted', id: webhookId })) throw notFound()
      deliveries.interrupt(webhookId)
      await attempts.delete(webhookId)
      await failedEvents.deleteMany({ equal: { webhook_id: webhookId } })
    },

    /**
     * Replaces the secret. The previous secret also signs for one more day.
     * @throws ErrNotFound, ErrBusy
     */
    async rotateSecret (webhookId: string): Promise<{ secret: string }> {
      let secret = ''
      await write(webhookId, (record) => {
        const rotated = secrets.rotate(record.id, record.sealed)
        secret = rotated.secret
        return { set: { sealed: rotated.sealed }, happened: [{ type: 'webhook.secret_changed', id: record.id }] }
      })
      return { secret }
    },

    /**
     * Delivers events again, from a position in the feed on.
     * @throws ErrNotFound, ErrParam, ErrBusy
     */
    async replay (webhookId: string, { from, to }: ReplayWebhook): Promise<{ cursor: string }> {
      await requireRecord(webhookId)
      const cursor = await findStart(feed, from)
      const end = to === undefined ? undefined : await findEnd(feed, to)
      if (end !== undefined && compareCursors(end, cursor) < 0) throw paramError('to', 'must not be before from')
      await write(webhookId, (record) => {
        const resume = record.replay?.resume ?? record.cursor
        // A replay that ends at the current position needs no bound: the deliveries go on from there.
        const isBounded = end !== undefined && compareCursors(end, resume) !== 0
        return {
          set: { ...SEIZE.set, cursor, replay: isBounded ? { to: end, resume } : undefined },
          unset: isBounded ? [] : ['replay'],
          increment: SEIZE.increment,
          happened: [{ type: 'webhook.replayed', id: record.id }]
        }
      })
      deliveries.interrupt(webhookId)
      return { cursor }
    }
  }
}
