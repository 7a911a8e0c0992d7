import type { Test } from 'tap'
import { toTimestamp } from '../../../lib/clock.ts'
import { createFeed } from '../../../lib/events/feed.ts'
import { listPending } from '../../../lib/events/pending.ts'
import { createRecorder } from '../../../lib/events/recorder.ts'
import { createRelay } from '../../../lib/events/relay.ts'
import type { EventRecord } from '../../../lib/events/types.ts'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { openStore } from '../../../lib/store/index.ts'
import type { Document } from '../../../lib/store/port.ts'
import { type Around, wrapStore } from '../../helpers/wrap-store.ts'

export const BEGIN = Date.parse('2126-11-21T02:51:00.000Z')

/** A document that carries events, as users and clients do. */
export interface Carrier extends Document {
  revision: number
  changes: number
}

/** A recorder and relays over one store, without the services. */
export async function openEvents (t: Test, { around = (_call, run) => run(), database = 'sqlite::memory:' }: { around?: Around, database?: string } = {}) {
  let time = BEGIN
  const now = () => time
  const inner = await openStore(database, { collections: COLLECTIONS, now, onError: () => {} })
  t.teardown(() => inner.close())
  const store = wrapStore(inner, around)
  const errors: unknown[] = []
  const published: EventRecord[] = []
  /** The users that the accepted mails are about, each with the name of the event. */
  const mailed = new Set<string>()
  const connect = (parts: Partial<Parameters<typeof createRelay>[0]> = {}) => createRelay({
    store,
    now,
    days: 400,
    onPublished: (records) => { published.push(...records) },
    onError: (error) => { errors.push(error) },
    ...parts,
    acceptMails: async (event, name) => {
      await parts.acceptMails?.(event, name)
      for (const { user_id } of event.notices ?? []) mailed.add(`${user_id} ${name}`)
    }
  })
  const recorder = createRecorder({ store, now, via: 'system', addresses: 'full' })
  const users = store.collection<Carrier>('users')
  return {
    inner,
    store,
    now,
    advance: (milliseconds: number) => { time += milliseconds },
    recorder,
    connect,
    feed: createFeed({ store: inner }),
    errors,
    published,
    mailed,
    /** Inserts a document with an event. */
    async create (id: string): Promise<void> {
      await users.insert({ id, revision: 0, changes: 0, ...recorder.attach(null, { happened: [{ type: 'user.created', id }] }) })
    },
    /** Changes a document, with an event that names the change. @returns whether the change was made */
    async change (id: string): Promise<boolean> {
      for (;;) {
        const record = await users.get(id)
        if (record === null) return false
        const changes = record.changes + 1
        const events = recorder.attach(record, { happened: [{ type: 'user.updated', id, changed: [String(changes)] }] })
        if (await users.update(id, { set: { changes, ...events }, increment: { revision: 1 } }, { equal: { revision: record.revision } }) !== null) return true
      }
    },
    remove: async (id: string): Promise<boolean> => await recorder.remove('users', id, { type: 'user.deleted', id }, async () => [
      { kind: 'deleted', user_id: id, to: 'ann@example.com', time: toTimestamp(time) }
    ]),
    /** All records of the feed by their number, gaps included. */
    async readAll (): Promise<EventRecord[]> {
      const found: EventRecord[] = []
      for await (const batch of inner.collection<EventRecord>('events').stream({ sort: [{ key: 'id', direction: 'asc' }] })) found.push(...batch)
      return found
    },
    /** What still waits to be published. */
    async countPending (): Promise<number> {
      let count = await inner.collection('event_inbox').count()
      for await (const batch of inner.collection('users').stream()) for (const document of batch) count += listPending(document).length
      return count
    }
  }
}

/** A summary of a record. */
export const toText = ({ type, content }: EventRecord): string => type === undefined ? 'gap' : [type, content?.target.id, ...content?.changed ?? []].join(' ')
