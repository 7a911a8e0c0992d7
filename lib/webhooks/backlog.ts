import type { Clock } from '../clock.ts'
import type { WebhookFeed } from './cursors.ts'
import type { Registry } from './registry.ts'

/** The age in seconds of the oldest undelivered event, and the number of parked events. */
export async function readBacklog ({ listAll }: Pick<Registry, 'listAll'>, feed: WebhookFeed, now: Clock): Promise<{ parked: number, oldest: number }> {
  const active = (await listAll()).filter(({ state }) => state === 'on')
  const starts = await Promise.all(active.map(async ({ cursor, parked }) => {
    const { events: [event] } = await feed.read({ after: cursor, limit: 1 }).catch(() => ({ events: [] }))
    return [...parked.map(({ since }) => since), ...(event === undefined ? [] : [event.time])].map((time) => Date.parse(time))
  }))
  const times = starts.flat()
  return { parked: active.reduce((sum, { parked }) => sum + parked.length, 0), oldest: times.length === 0 ? 0 : Math.max(0, now() - Math.min(...times)) / 1000 }
}
