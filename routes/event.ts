import type { FastifyInstance } from 'fastify'
import { type Event, EventFeedQuerySchema, EventFeedSchema, EventListQuerySchema, EventSchema } from '../schemas/event.ts'
import { busyError, goneError } from '../lib/errors.ts'
import { EVENT_COLUMNS, toEventRow } from '../lib/events/columns.ts'
import { watchConnection } from '../plugins/connections.ts'
import { body, createRows, pages } from './rows.ts'
import type { RouteSettings } from './settings.ts'

/** Maximum requests of the feed that wait in this process. Each occupies a connection. */
const WAITING = 1_000

/** Seconds that a request of the feed waits for an event. */
const WAIT = 25

/** The list and the feed of events, see docs/events.md. */
export async function eventRoutes (app: FastifyInstance, { stallTimeout }: RouteSettings): Promise<void> {
  const { events } = app.identity
  const add = createRows(app, 'event', { stallTimeout })
  const closing = new AbortController()
  app.addHook('preClose', async () => closing.abort())

  /** Reads the feed; waits for an event if it has none yet. */
  async function follow (
    start: string, { limit, seconds, signal }: { limit: number | undefined, seconds: number, signal: AbortSignal }
  ): Promise<{ events: Event[], after: string }> {
    const end = performance.now() + seconds * 1000
    const ended = AbortSignal.any([signal, closing.signal])
    for (let after = start; ;) {
      const read = await events.read({ after, limit })
      const left = end - performance.now()
      if (read.events.length > 0 || left <= 0 || closing.signal.aborted) return read
      if (signal.aborted) throw goneError()
      if (events.countWaiting() >= WAITING) throw busyError('readers of the feed', 1_000)
      await events.wait(after = read.after, { timeout: left, signal: ended })
    }
  }

  add('listEvents', 'GET /event/list', 'List events by their time', {
    description: 'With `Accept: text/csv` the response is CSV.',
    query: EventListQuerySchema,
    answer: pages(EventSchema, 'The matching events.', { columns: EVENT_COLUMNS, toRow: toEventRow }),
    run: ({ query, actor }) => events.page(query, actor)
  })

  add('readEvents', 'GET /event/feed', 'Follow events in order', {
    description: 'Each response has the events after a cursor, and the next cursor. If there are none yet, it waits for one.',
    query: EventFeedQuerySchema,
    answer: body(EventFeedSchema, 'The events after the cursor, the oldest first.'),
    errors: ['ErrGone'],
    async run ({ request, query: { after, limit, wait = WAIT }, actor }) {
      if (after === 'now') return { data: [], after: await events.last() }
      const read = await follow(after ?? await events.first(), { limit, seconds: wait, signal: watchConnection(request) })
      // The token may have been revoked or have expired during the wait.
      await actor.confirm?.()
      return { data: read.events, after: read.after }
    }
  })
}
