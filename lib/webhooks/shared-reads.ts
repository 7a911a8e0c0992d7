import type { WebhookFeed } from './cursors.ts'

/** Cached pages, of a hundred events each. Webhooks that keep up read one of the last pages. */
const PAGES = 4

/** The feed for all webhooks of a process. Webhooks at the same cursor share one read. */
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
      // Neither an empty page nor a failure is cached: the next read may find events.
      if (isEnd && pages.get(after) === reading) pages.delete(after)
    }
  }

  return {
    ...feed,
    read: async ({ after, limit }) => limit === undefined ? await (pages.get(after) ?? read(after)) : await feed.read({ after, limit })
  }
}
