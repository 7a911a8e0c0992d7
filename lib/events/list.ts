import { encodeTime } from 'ulid'
import type { Event, EventListQuery } from '../../schemas/event.ts'
import { checkTimestamp } from '../checks.ts'
import { type Page, toStart } from '../lists/cursor.ts'
import { readSome } from '../lists/first.ts'
import { createReads } from '../lists/reads.ts'
import { parseSort } from '../lists/sort.ts'
import type { Actor } from '../roles.ts'
import type { Filter, ListQuery, PageQuery, Store } from '../store/port.ts'
import { type Feed, showEvent } from './feed.ts'
import type { EventRecord } from './types.ts'

/** ULIDs begin with the time, so a range of times is a range of ULIDs. */
const SORT_KEYS = { time: 'key' }

/** Leading characters of a ULID that encode its time. */
const TIME_LENGTH = 10

/** Events of a user that their account pages show. */
const OWN = 100

function toBound (name: string, time: string): string {
  return encodeTime(Math.max(0, Date.parse(checkTimestamp(name, time))), TIME_LENGTH)
}

/** Empty means absent. Gaps have no ULID, so they match no bound. */
function toFilter ({ type, user, client, from, to }: EventListQuery): Filter {
  return {
    equal: { ...(type && { type }), ...(user && { user }), ...(client && { client }) },
    since: { key: from ? toBound('from', from) : '' },
    ...(to && { before: { key: toBound('to', to) } })
  }
}

function toListQuery (query: EventListQuery): ListQuery {
  const sort = parseSort(query.sort, SORT_KEYS, 'time:desc')
  return { filter: toFilter(query), sort, ...toStart(query, sort), limit: query.limit ?? 100 }
}

/** Lists of events by their time. */
export function createEventList ({ store, feed }: { store: Store, feed: Pick<Feed, 'getGeneration'> }) {
  const events = store.collection<EventRecord>('events')
  const reads = createReads(store)

  async function listLast (equal: { user: string } | { owner: string }): Promise<Event[]> {
    const generation = await feed.getGeneration()
    const query: PageQuery = { filter: { equal, since: { key: '' } }, sort: [{ key: 'key', direction: 'desc' }], limit: OWN, urgent: true }
    return (await readSome(events, query)).map((record) => showEvent(record, generation))
  }

  return {
    /**
     * A page of the list, with the cursor of the next one.
     * @throws ErrParam for an invalid sort, time or cursor
     */
    async page (query: EventListQuery = {}, actor?: Actor): Promise<Page<Event>> {
      const listQuery = toListQuery(query)
      const generation = await feed.getGeneration()
      const options = { renderer: { renderer: 'events' as const, options: { generation } }, caller: actor }
      return await reads.page(events, listQuery, (record) => showEvent(record, generation), options)
    },

    /**
     * Batches of events.
     * @throws as `page`
     */
    async * list (query: EventListQuery = {}): AsyncGenerator<Event[], void, undefined> {
      const generation = await feed.getGeneration()
      yield * reads.list(events, toListQuery(query), (record) => showEvent(record, generation))
    },

    /** The last events of a user's account, the newest first. */
    listOwn: async (user: string): Promise<Event[]> => await listLast({ user }),

    /** The last events of a user's clients that acted for themselves, the newest first. They never displace those of the account. */
    listOfClients: async (owner: string): Promise<Event[]> => await listLast({ owner })
  }
}
