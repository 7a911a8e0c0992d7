import { type Clock, toTimestamp } from '../clock.ts'
import { isAhead } from '../deadline.ts'
import type { WebhookFeed } from './cursors.ts'
import { LEASE } from './failed-events.ts'
import type { createFailedReads } from './failed-reads.ts'
import { MAX_PARKED, type WebhookRecord, findWait } from './record.ts'

interface DueParts {
  feed: Pick<WebhookFeed, 'last' | 'read'>
  failed: ReturnType<typeof createFailedReads>
  now: Clock
}

/** Finds when webhooks have work. Times are in milliseconds. */
export function createDueTimes ({ feed, failed, now }: DueParts) {
  /** The time from which a webhook has work, at least. Undefined when it has none. @param last the end of the feed */
  async function findDue (record: WebhookRecord, last: string): Promise<number | undefined> {
    const { id, cursor, replay, hurries, parked } = record
    const start = Date.parse(findWait(record, now()) ?? toTimestamp(0))
    if (start > now() || hurries === true || parked.length > 0) return start
    const next = await failed.findFirst(id)
    const isBehind = cursor !== last || replay !== undefined
    if (isBehind && (next === undefined || await failed.count(id) < MAX_PARKED)) return start
    if (next === undefined || await failed.hasLate(id)) return next && start
    return Math.max(start, Date.parse(next.due_at))
  }

  /** Since when a webhook has work that no process does: its oldest event waits, and nobody has its lease. */
  async function findIdle ({ id, cursor, leased_until, wait_until = leased_until }: WebhookRecord): Promise<number> {
    const [first, { events: [event] }] = await Promise.all([
      failed.findFirst(id), feed.read({ after: cursor, limit: 1 }).catch(() => ({ events: [] }))
    ])
    const times = [first?.due_at, event?.time].filter((time) => time !== undefined).map((time) => Date.parse(time))
    return Math.max(Date.parse(leased_until), Date.parse(wait_until), Math.min(...times))
  }

  return {
    findDue,

    /** Since when any of these webhooks has work that no process does. Infinity: none has. */
    async findIdleSince (records: readonly WebhookRecord[]): Promise<number> {
      const last = await feed.last()
      let since = Infinity
      for (const record of records) {
        const due = isAhead({ at: record.leased_until, longest: LEASE }, now()) ? undefined : await findDue(record, last)
        if (due !== undefined && due <= now()) since = Math.min(since, await findIdle(record))
      }
      return since
    }
  }
}
