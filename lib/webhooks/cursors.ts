import { IdentityError } from '../errors.ts'
import type { Events } from '../events/index.ts'

/** The part of the feed that deliveries use. */
export type WebhookFeed = Pick<Events, 'read' | 'find' | 'first' | 'last' | 'wait' | 'list'>

const split = (cursor: string): [generation: string, number: number] => {
  const [generation = '', number = ''] = cursor.split('.')
  return [generation, Number(number)]
}

/** The cursor from which the event at this cursor is read. */
export function toBefore (cursor: string): string {
  const [generation, number] = split(cursor)
  return `${generation}.${Math.max(0, number - 1)}`
}

/** Compares two cursors of one feed. */
export function compareCursors (one: string, other: string): number {
  return split(one)[1] - split(other)[1]
}

export function isGone (error: unknown): boolean {
  return error instanceof IdentityError && error.code === 'ErrGone'
}

/**
 * Replaces a cursor that cannot be read by one that can. A restored backup has the webhooks and the events of the same moment, so
 * the same number continues in the new generation. If events were removed, the oldest remaining one is next.
 */
export async function recoverCursor (feed: WebhookFeed, cursor: string): Promise<string> {
  const [first, last] = [await feed.first(), await feed.last()]
  const [generation] = split(last)
  const same = `${generation}.${split(cursor)[1]}`
  if (compareCursors(same, first) < 0) return first
  return compareCursors(same, last) > 0 ? last : same
}
