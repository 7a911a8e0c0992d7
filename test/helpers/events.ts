import type { Recorder } from '../../lib/events/recorder.ts'
import { createRecorder } from '../../lib/events/recorder.ts'
import type { Handlers } from '../../lib/events/publish.ts'
import { EVENT_TYPES, type EventRecord, type Happening } from '../../lib/events/types.ts'
import { retryWrite } from '../../lib/retry.ts'
import type { Change, Document, ListQuery, Store } from '../../lib/store/port.ts'
import { type StoreCall, isListing } from './wrap-store.ts'

/** A real recorder, for services that a test creates on their own. */
export function createTestRecorder (store: Store, now: () => number): Recorder {
  return createRecorder({ store, now, via: 'system', addresses: 'full' })
}

/** One handler for events of all types. */
export const handleAll = (handler: (record: EventRecord) => Promise<void>): Handlers => Object.fromEntries(Object.keys(EVENT_TYPES).map((type) => [type, handler]))

/** Deletes a document without an event. */
async function remove<T extends Document> (store: Store, name: string, id: string, permit: ((record: T) => Promise<unknown>) | undefined): Promise<boolean> {
  const collection = store.collection<T & { revision?: number }>(name)
  if (permit === undefined) return await collection.delete(id)
  return await retryWrite('the record', async () => {
    const record = await collection.get(id)
    if (record === null) return false
    await permit(record)
    return await collection.delete(id, { equal: { revision: record.revision ?? 0 } }) || null
  })
}

/** Records nothing, for tests of every order of the other writes. test/lib/events tests the orders of recorder writes. */
export function createSilentRecorder (store: Store): Recorder {
  return {
    listen: () => {},
    attach: () => ({}),
    insert: async () => {},
    measure: () => 0,
    end: async () => {},
    remove: async (name, id, _happening, permit) => await remove(store, name, id, permit)
  }
}

/** Passes each event to `record` in place of the store. */
export function createWatchedRecorder (store: Store, record: (happening: Happening) => void): Recorder {
  return {
    listen: () => {},
    attach: (_document, { happened = [] }) => {
      for (const happening of happened) record(happening)
      return {}
    },
    insert: async (happening) => { record(happening) },
    measure: () => 0,
    end: async (_collection, _target, _since, happening) => record(happening),
    remove: async (name, id, happening, permit) => {
      const isRemoved = await remove(store, name, id, permit)
      if (isRemoved) record(happening)
      return isRemoved
    }
  }
}

/** Records no events about mails. */
export const SILENT_RECORDER = { insert: async () => {} }

/** Records no failures. */
export const SILENT_FAILURES = { recordSignIn: () => {}, recordConfirmation: () => {}, defer: () => {} }

/** Whether the relay or a consumer of events makes this call: no request waits for it. */
export function isOfRelay ({ collection, method, args }: StoreCall): boolean {
  if (['events', 'event_letters', 'feed', 'webhooks'].includes(collection)) return true
  if (collection === 'event_inbox') return method !== 'insert'
  const [first, change] = args as [ListQuery | undefined, Change | undefined]
  if (isListing(method) || method === 'next' || method === 'return') return first?.filter?.since?.event_due !== undefined
  return method === 'update' && change?.set === undefined && change?.unset?.some((field) => field.startsWith('event')) === true
}
