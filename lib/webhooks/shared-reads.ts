import type { WebhookFeed } from './cursors.ts'

/** Pages that are kept, of a hundred events each: webhooks that keep up are at one of the last. */
const PAGES = 4

/** The feed for all webhooks of a process: those at the same place share what one of them has read. */
export function shareReads (feed: WebhookFeed): WebhookFeed {
  const pages = new Map<string, ReturnType<WebhookFeed['read']>>()

  async function read (after: string): ReturnType<WebhookFeed['read']> {
    const reading = feed.read({ after })
    pages.set(after, reading)
    for (const oldest of pages.keys()) {
      if (pages.size <= PAGES) break
      pages.delete(oldest)
    }
    let isEnd = true
    try {
      const page = await reading
      isEnd = page.after === after
      return page
    } finally {
      // Neither an empty page nor a failure is kept: the next read may find events.
      if (isEnd && pages.get(after) === reading) pages.delete(after)
    }
  }

  return {
    ...feed,
    read: async ({ after, limit }) => limit === undefined ? await (pages.get(after) ?? read(after)) : await feed.read({ after, limit })
  }
}
