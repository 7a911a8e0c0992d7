import type { Test } from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import type { Document, Store } from '../../lib/store/port.ts'

/** A look-up by an id that two may have, or that one has and another one gives. */
export interface Held {
  /** The call of somebody else, with the id of the holder's thing. */
  other: () => Promise<unknown>
  /** The same call of the holder. It does what `other` must not do. */
  own: () => Promise<unknown>
}

export interface HeldRow {
  /** Prepares the thing, and one of somebody else beside it. */
  hold: () => Promise<Held>
  /** How the call of somebody else ends: with this error, or without an effect on the holder's thing. */
  refusal: Record<string, string> | 'nothing happens'
  /** Whether the call of the holder changes nothing either. */
  isRead?: boolean
}

/** The keys of the events that a document of the inbox or of the feed holds. */
function keysOf (document: Document & { key?: unknown }): string[] {
  const carried = Object.keys(document).filter((name) => name.startsWith('event:')).map((name) => name.slice('event:'.length))
  return typeof document.key === 'string' ? [...carried, document.key] : carried
}

const withoutEvents = (document: Document): Document => Object.fromEntries(Object.entries(document).filter(([name]) => !/^event[_:]/.test(name))) as Document

/**
 * All documents of a store, by collection, and the events that happened. The relay moves these from documents to the inbox and the feed
 * between two reads, and notes how far it is.
 */
async function readAll (store: Store): Promise<{ others: Record<string, Document[]>, events: string[] }> {
  const found: Record<string, Document[]> = {}
  for (const { name } of COLLECTIONS) {
    const documents: Document[] = []
    for await (const batch of store.collection(name).stream()) documents.push(...batch)
    found[name] = documents.sort((one, other) => one.id < other.id ? -1 : 1)
  }
  const events = [...new Set(Object.values(found).flat().flatMap(keysOf))].sort()
  const { event_inbox: _inbox, events: _events, feed: _feed, ...others } = found
  return { others: Object.fromEntries(Object.entries(others).map(([name, documents]) => [name, documents.map(withoutEvents)])), events }
}

/** Checks of each row that the call of somebody else is refused and changes nothing, and that the holder's own has its effect. */
export function checkHolders (t: Test, store: Store, rows: Record<string, HeldRow>): void {
  for (const [name, { hold, refusal, isRead = false }] of Object.entries(rows)) {
    t.test(name, async (t) => {
      const { other, own } = await hold()
      const before = await readAll(store)
      if (refusal === 'nothing happens') await other()
      else t.match(await other().then(() => 'not refused', (error: unknown) => error), refusal, 'somebody else is refused')
      t.strictSame(await readAll(store), before, 'and nothing has changed')
      await own()
      const after = await readAll(store)
      if (isRead) t.strictSame(after, before, 'the holder reads it')
      else t.strictNotSame(after, before, 'the holder changes it')
    })
  }
}
