import { decodeTime } from 'ulid'
import type { Clock } from '../clock.ts'
import { readFirst } from '../lists/first.ts'
import type { Collection } from '../store/port.ts'
import type { WebhookFeed } from './cursors.ts'
import type { FailedEvent } from './record.ts'
import type { Registry } from './registry.ts'

interface BacklogParts extends Pick<Registry, 'listAll'> {
  records: Collection<FailedEvent>
  feed: WebhookFeed
  now: Clock
}

/** The age in seconds of the oldest undelivered event, and the number of failed ones. */
export async function readBacklog ({ listAll, records, feed, now }: BacklogParts): Promise<{ parked: number, oldest: number }> {
  const found = await Promise.all((await listAll()).filter(({ state }) => state === 'on').map(async ({ id, cursor }) => {
    const equal = { webhook_id: id, state: 'due' }
    const { events: [event] } = await feed.read({ after: cursor, limit: 1 }).catch(() => ({ events: [] }))
    // In the order of their ids, and so of the events.
    const failed = await readFirst(records, { filter: { equal }, urgent: true })
    const times = [event && Date.parse(event.time), failed && decodeTime(failed.event_id)].filter((time) => time !== undefined)
    return { count: await records.count({ equal }, { urgent: true }), times }
  }))
  const oldest = Math.min(now(), ...found.flatMap(({ times }) => times))
  return { parked: found.reduce((sum, { count }) => sum + count, 0), oldest: (now() - oldest) / 1000 }
}
