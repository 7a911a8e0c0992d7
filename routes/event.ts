import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Event, EventFeedQuerySchema, EventFeedSchema, EventListQuerySchema, EventSchema } from '../schemas/event.ts'
import { busyError, goneError } from '../lib/errors.ts'
import { EVENT_COLUMNS, toEventRow } from '../lib/events/columns.ts'
import { toActor } from '../plugins/auth.ts'
import { watchConnection } from '../plugins/connections.ts'
import { linkNext, sendList } from './list-reply.ts'
import { errors, json, pagedList } from './responses.ts'
import type { RouteSettings } from './settings.ts'

const tags = ['event']

/** Maximum requests of the feed that wait in this process. Each occupies a connection. */
const WAITING = 1_000

/** Seconds that a request of the feed waits for an event. */
const WAIT = 25

/** The list and the feed of events, see docs/events.md. */
export const eventRoutes: FastifyPluginAsyncTypebox<RouteSettings> = async (app, { stallTimeout }) => {
  const { events, tokens } = app.identity
  const closing = new AbortController()
  app.addHook('preClose', async () => closing.abort())

  /** Reads the feed; waits for an event if it has none yet. */
  async function follow (start: string, { limit, seconds, signal }: { limit: number | undefined, seconds: number, signal: AbortSignal }): Promise<{ events: Event[], after: string }> {
    const end = performance.now() + seconds * 1000
    const ended = AbortSignal.any([signal, closing.signal])
    for (let after = start; ;) {
      const read = await events.read({ after, ...(limit !== undefined && { limit }) })
      const left = end - performance.now()
      if (read.events.length > 0 || left <= 0 || closing.signal.aborted) return read
      if (signal.aborted) throw goneError()
      if (events.countWaiting() >= WAITING) throw busyError('readers of the feed', 1_000)
      await events.wait(after = read.after, { timeout: left, signal: ended })
    }
  }

  app.get('/event/list', {
    config: { access: 'listEvents' },
    schema: {
      operationId: 'listEvents',
      tags,
      summary: 'List events by their time',
      description: 'With `Accept: text/csv` the answer is CSV.',
      querystring: EventListQuerySchema,
      response: { 200: pagedList(EventSchema, 'The matching events.'), ...errors('ErrLimit') }
    }
  }, async (request, reply) => {
    const page = await events.page(request.query, toActor(request, tokens))
    if (page.after !== undefined) linkNext(request, reply, page.after)
    return await sendList(request, reply, page, { format: request.query.format, stallTimeout, csv: { columns: EVENT_COLUMNS, toRow: toEventRow } })
  })

  app.get('/event/feed', {
    config: { access: 'readEvents' },
    schema: {
      operationId: 'readEvents',
      tags,
      summary: 'Follow the events in their order',
      description: 'Each answer has the events after a cursor, and the cursor to go on with. Without new events the answer waits for one.',
      querystring: EventFeedQuerySchema,
      response: { 200: json(EventFeedSchema, 'The events after the cursor, the oldest first.'), ...errors('ErrGone') }
    }
  }, async (request) => {
    const actor = toActor(request, tokens)
    const { after, limit, wait = WAIT } = request.query
    if (after === 'now') return { data: [], after: await events.last() }
    const read = await follow(after ?? await events.first(), { limit, seconds: wait, signal: watchConnection(request) })
    // The token may have been revoked or have expired during the wait.
    await actor.confirm?.()
    return { data: read.events, after: read.after }
  })
}
