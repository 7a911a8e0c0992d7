import type { Test } from 'tap'
import { createSecretBox, generateSecretKey } from '../../lib/crypto/secrets.ts'
import { createEvents, openRelay } from '../../lib/events/index.ts'
import type { EventType } from '../../lib/events/types.ts'
import { type OutboundAnswer, OutboundError, type OutboundRequest } from '../../lib/outbound/fetcher.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import type { Store } from '../../lib/store/port.ts'
import type { WebhookRecord } from '../../lib/webhooks/record.ts'
import { type WebhookParts, createWebhooks } from '../../lib/webhooks/webhooks.ts'
import { createTestClock } from '../../testing/clock.ts'
import { createBase } from './base.ts'

/** An answer: a status, or the code of a failure. */
export type Reply = number | string | Partial<OutboundAnswer> | Promise<number>

/** A message that a receiver got. */
export interface Got {
  url: string
  id: string
  type: string
  headers: Record<string, string>
  body: string
  at: number
}

export const box = createSecretBox(generateSecretKey())

/** A store with a feed, and simulated processes that deliver from it. Nothing is sent over the network. */
export async function openWebhooks (t: Test, { time = Date.now(), store: given }: { time?: number | string, store?: Store } = {}) {
  const clock = createTestClock(time)
  const store = given ?? await openStore('sqlite::memory:', { collections: COLLECTIONS, now: clock.now })
  if (given === undefined) t.teardown(() => store.close())
  const errors: unknown[] = []
  const warnings: string[] = []
  const onError = (error: unknown) => { errors.push(error) }
  const record = createEvents({ store, now: clock.now, via: 'system', addresses: 'off', getKey: () => box.key, onError })
  const { recorder } = record
  const { events, close } = openRelay({ store, now: clock.now, days: 400, record, onPublished: () => {}, onError })
  t.teardown(close)
  const got: Got[] = []
  let reply: (got: Got) => Reply = () => 204

  async function fetch ({ url, headers, body, signal }: OutboundRequest): Promise<OutboundAnswer> {
    const one: Got = { url, headers, body, id: headers['webhook-id']!, type: JSON.parse(body).type, at: clock.now() }
    got.push(one)
    const { promise, reject } = Promise.withResolvers<never>()
    signal?.addEventListener('abort', () => reject(new OutboundError('EABORTED')))
    const answer = await Promise.race([reply(one), promise])
    if (typeof answer === 'string') throw new OutboundError(answer)
    return typeof answer === 'number' ? { status: answer, time: 1 } : { status: 200, time: 1, ...answer }
  }

  /** Starts a simulated process. */
  function start (parts: Partial<WebhookParts> = {}) {
    const webhooks = createWebhooks({
      ...createBase({ store, now: clock.now, box, recorder, onError }),
      feed: events,
      outbound: {
        fetch,
        checkUrl (url) {
          if (!url.startsWith('https://')) throw new Error('must be an https URL')
          return url
        }
      },
      onWarning: (message) => { warnings.push(message) },
      random: () => 0,
      ...parts
    })
    t.teardown(() => webhooks.close())
    return webhooks
  }

  return {
    store,
    clock,
    events,
    recorder,
    start,
    errors,
    warnings,
    records: store.collection<WebhookRecord>('webhooks'),
    /** Returns the messages in their order of arrival, and clears them. */
    take: () => got.splice(0),
    got,
    setReply (to: (got: Got) => Reply) { reply = to },
    /** Records events, each about a user with a number. */
    async happen (type: EventType, count = 1, start = 1) {
      await Promise.all(Array.from({ length: count }, (_, index) => recorder.insert({ type, id: `user${start + index}` })))
      await events.flush()
    }
  }
}
