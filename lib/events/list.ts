import { encodeTime } from 'ulid'
import type { Event, EventListQuery } from '../../schemas/event.ts'
import { checkTimestamp } from '../checks.ts'
import { defined } from '../defined.ts'
import { type Page, type PageRequest, toStart } from '../lists/cursor.ts'
import { readSome } from '../lists/first.ts'
import { createReads } from '../lists/reads.ts'
import { parseSort } from '../lists/sort.ts'
import type { Actor } from '../roles.ts'
import { BATCH_SIZE, type Filter, type Keyset, type PageQuery, type Store } from '../store/port.ts'
import { type Feed, showEvent } from './feed.ts'
import type { EventRecord, EventType } from './types.ts'

/** ULIDs begin with the time, so a range of times is a range of ULIDs. */
const SORT_KEYS = { time: 'key' }

/** Leading characters of a ULID that encode its time. */
const TIME_LENGTH = 10

/** Events of a user that their account pages show. Those of mails are left out, which accompany others. */
const OWN = 100
const MAILS: readonly string[] = ['mail.sent', 'mail.failed']

/** Pages that are read for them at most. */
const PAGES = 3

/** What refused attempts to sign in leave. */
const REFUSALS: readonly EventType[] = ['sign_in.failed', 'factor.failed']

/** Pages that are read of a user's refused attempts of each type. At a summary a minute they reach back fourteen hours. */
const FLOOD_PAGES = 10

/** The last attempts of a user to sign in. */
export interface SignInHistory {
  /** The newest first. Each reason has its share of the limit, so that a flood of one hides no attempt with another. */
  attempts: Event[]
  last_signed_in_at?: string
}

const byNewest = (a: Event, b: Event): number => a.id < b.id ? 1 : -1

/** The newest of each reason, then the second of each, and so on. @param events the newest first */
function pickEvenly (events: readonly Event[], limit: number): Event[] {
  const seen = new Map<string, number>()
  const ranked = events.map((event) => {
    const key = `${event.type} ${event.reason}`
    const rank = seen.get(key) ?? 0
    seen.set(key, rank + 1)
    return { event, rank }
  })
  return ranked.sort((a, b) => a.rank - b.rank).slice(0, limit).map(({ event }) => event).sort(byNewest)
}

function toBound (name: string, time: string): string {
  return encodeTime(Math.max(0, Date.parse(checkTimestamp(name, time))), TIME_LENGTH)
}

/** The events of a pattern, see coversType: those of `user.*` are a range, because `/` follows `.`. */
function toTypes (pattern: string): Pick<Filter, 'equal' | 'since' | 'before'> {
  if (pattern === '' || pattern === '*') return {}
  if (!pattern.endsWith('.*')) return { equal: { type: pattern } }
  const kind = pattern.slice(0, -2)
  return { since: { type: `${kind}.` }, before: { type: `${kind}/` } }
}

/** Empty means absent. Gaps have no ULID, so they match no bound. */
function toFilter ({ type = '', user, client, reason, from, to }: EventListQuery): Filter {
  const { equal, since, before } = toTypes(type)
  return {
    equal: { ...equal, ...defined({ user: user || undefined, client: client || undefined, reason: reason || undefined }) },
    since: { ...since, key: from ? toBound('from', from) : '' },
    before: { ...before, ...(to && { key: toBound('to', to) }) }
  }
}

function toListQuery (query: EventListQuery): PageRequest {
  const sort = parseSort(query.sort, SORT_KEYS, 'time:desc')
  return { filter: toFilter(query), sort, ...toStart(query, sort), limit: query.limit ?? 100 }
}

/** Lists of events by their time. */
export function createEventList ({ store, feed }: { store: Store, feed: Pick<Feed, 'getGeneration'> }) {
  const events = store.collection<EventRecord>('events')
  const reads = createReads(store)

  type Subject = { user: string, type?: EventType } | { owner: string }

  async function readLast (equal: Subject, limit: number, after?: Keyset): Promise<EventRecord[]> {
    const query: PageQuery = { filter: { equal, since: { key: '' } }, sort: [{ key: 'key', direction: 'desc' }], limit, urgent: true, ...(after && { after }) }
    return await readSome(events, query)
  }

  async function listLast (equal: Subject, limit: number): Promise<Event[]> {
    const generation = await feed.getGeneration()
    return (await readLast(equal, limit)).map((record) => showEvent(record, generation))
  }

  /** Pages of the last events, the newest first. */
  async function * pageLast (equal: Subject, pages: number): AsyncGenerator<Event[], void, undefined> {
    const generation = await feed.getGeneration()
    let after: Keyset | undefined
    for (let page = 0; page < pages; page++) {
      const records = await readLast(equal, BATCH_SIZE, after)
      yield records.map((record) => showEvent(record, generation))
      const last = records.at(-1)
      if (last?.key === undefined || records.length < BATCH_SIZE) return
      after = { values: [last.key], id: last.id }
    }
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
    async listOwn (user: string): Promise<Event[]> {
      const found: Event[] = []
      for await (const page of pageLast({ user }, PAGES)) {
        found.push(...page.filter(({ type }) => !MAILS.includes(type)))
        if (found.length >= OWN) break
      }
      return found.slice(0, OWN)
    },

    /**
     * The last attempts of a user to sign in: what succeeded, what was refused, and wrong codes. A summary counts as one.
     * @param limit at most 100
     */
    async listSignIns (user: string, limit: number): Promise<SignInHistory> {
      const refused = async (type: EventType) => (await Array.fromAsync(pageLast({ user, type }, FLOOD_PAGES))).flat()
      const [succeeded, ...others] = await Promise.all([listLast({ user, type: 'sign_in.succeeded' }, limit), ...REFUSALS.map(refused)])
      const attempts = pickEvenly([...succeeded, ...others.flat()].sort(byNewest), limit)
      return defined({ attempts, last_signed_in_at: succeeded[0]?.time })
    },

    /** The last mails to a user that were sent, the newest first. */
    listSentMails: async (user: string, limit: number): Promise<Event[]> => await listLast({ user, type: 'mail.sent' }, limit),

    /** The last events of a user's clients that acted for themselves, the newest first. They never displace those of the account. */
    listOfClients: async (owner: string): Promise<Event[]> => await listLast({ owner }, OWN)
  }
}
