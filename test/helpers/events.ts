import type { Recorder } from '../../lib/events/recorder.ts'
import { createRecorder } from '../../lib/events/recorder.ts'
import type { Store } from '../../lib/store/port.ts'

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

/** Records no failures. */
export const SILENT_FAILURES = { recordSignIn: () => {} }
