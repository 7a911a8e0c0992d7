import type { Recorder } from '../../lib/events/recorder.ts'
import { createRecorder } from '../../lib/events/recorder.ts'
import type { Happening } from '../../lib/events/types.ts'
import type { Change, ListQuery, Store } from '../../lib/store/port.ts'
import type { StoreCall } from './wrap-store.ts'

/** A recorder that really records, for services without the rest. */
export function createTestRecorder (store: Store, now: () => number): Recorder {
  return createRecorder({ store, now, via: 'system', addresses: 'full', onRecord: () => {} })
}

/** Records nothing, for tests that walk every order of the other writes: the orders of these are in test/lib/events. */
export function createSilentRecorder (store: Store): Recorder {
  return {
    attach: () => ({}),
    insert: async () => {},
    remove: async (name, id) => await store.collection(name).delete(id)
  }
}

/** Hands on what would be recorded. */
export function createWatchedRecorder (store: Store, record: (happening: Happening) => void): Recorder {
  return {
    attach: (_document, ...happenings) => {
      for (const happening of happenings) record(happening)
      return {}
    },
    insert: async (happening) => record(happening),
    remove: async (name, id, happening) => {
      const isRemoved = await store.collection(name).delete(id)
      if (isRemoved) record(happening)
      return isRemoved
    }
  }
}

/** Records no failures. */
export const SILENT_FAILURES = { recordSignIn: () => {}, recordConfirmation: () => {} }

/** Whether the relay of events makes this call, or whoever follows the events: no request waits for it. */
export function isOfRelay ({ collection, method, args }: StoreCall): boolean {
  if (['events', 'feed', 'webhooks'].includes(collection)) return true
  if (collection === 'event_inbox') return method !== 'insert'
  const [first, change] = args as [ListQuery | undefined, Change | undefined]
  if (method === 'list' || method === 'next' || method === 'return') return first?.filter?.since?.event_due !== undefined
  return method === 'update' && change?.set === undefined && change?.unset?.some((field) => field.startsWith('event')) === true
}
