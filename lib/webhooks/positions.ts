import { parseTimestamp } from '../clock.ts'
import { paramError } from '../errors.ts'
import { type WebhookFeed, compareCursors, isGone, toBefore } from './cursors.ts'

/** Neighbouring events to compare: ULIDs are made before the feed orders the events, so neighbours may be in another order. */
const NEIGHBOURS = 100

/** The lowest cursor of the events since a time, or the highest of those before it. */
async function findNear (feed: WebhookFeed, query: { from: string } | { to: string }): Promise<string | undefined> {
  const isFrom = 'from' in query
  const cursors: string[] = []
  for await (const batch of feed.list({ ...query, sort: `time:${isFrom ? 'asc' : 'desc'}`, limit: NEIGHBOURS })) {
    cursors.push(...batch.map(({ cursor }) => cursor))
  }
  return cursors.sort(compareCursors).at(isFrom ? 0 : -1)
}

async function checkCursor (feed: WebhookFeed, field: string, cursor: string): Promise<string> {
  try {
    await feed.read({ after: cursor, limit: 1 })
  } catch (error) {
    if (isGone(error)) throw paramError(field, 'is a cursor of events that are not kept, or of another feed')
    throw paramError(field, 'must be a time (RFC 3339), a cursor of the feed, first or now')
  }
  return cursor
}

/**
 * Where a replay begins.
 * @throws ErrParam
 */
export async function findStart (feed: WebhookFeed, from: string): Promise<string> {
  if (from === 'now') return await feed.last()
  if (from === 'first') return await feed.first()
  const time = parseTimestamp(from)
  if (time === null) return await checkCursor(feed, 'from', from)
  const found = await findNear(feed, { from: time })
  return found === undefined ? await feed.last() : toBefore(found)
}

/**
 * Where a replay ends.
 * @throws ErrParam
 */
export async function findEnd (feed: WebhookFeed, to: string): Promise<string> {
  const time = parseTimestamp(to)
  if (time === null) return await checkCursor(feed, 'to', to)
  return await findNear(feed, { to: time }) ?? await feed.first()
}
