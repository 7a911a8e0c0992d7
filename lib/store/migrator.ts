import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Clock, toTimestamp } from '../clock.ts'
import { retryWrite } from '../retry.ts'
import type { Change, Document, Filter, Json, Store } from './port.ts'
import type { FoundState, Layout } from './state.ts'

/** Changes every document of a collection to a later layout. */
export interface Step {
  /** The layout that this is a step to. */
  version: number
  collection: string
  /**
   * What is to be changed, or null for a document that is as it should be: a step may run again, and beside another process
   * that runs it. `where` keeps it from overwriting what an earlier release writes meanwhile, which oldestReader may allow.
   */
  toChange (document: Document & Record<string, Json>): { change: Change, where?: Filter } | null
}

/** The steps from earlier layouts to this one: none yet. */
export const STEPS: readonly Step[] = []

/** Milliseconds after which another process takes over from a migrator that ended. */
const LEASE = 30_000
/** Milliseconds between two looks whether another process has finished. */
const POLL = 500
/** Writes at once. */
const AT_ONCE = 16

export interface MigratorOptions {
  layout: Layout
  steps?: readonly Step[] | undefined
  now: Clock
  /** For tests. */
  lease?: number | undefined
}

/**
 * Brings the documents to a layout. One process at a time does this, by a lease; the others wait. First the earlier releases
 * that cannot read the new form are kept out, then the documents change one by one, then the store has the number. Whoever
 * takes over after a crash begins again, and skips what is done.
 */
export async function migrateDocuments (store: Store, { layout, steps = STEPS, now, lease = LEASE }: MigratorOptions): Promise<void> {
  const id = randomUUID()
  for (;;) {
    const found = await store.state.read()
    const { version, oldestReader, migrator } = found.state
    if (version >= layout.version) return
    if (migrator !== undefined && migrator.until > toTimestamp(now())) {
      await sleep(POLL)
      continue
    }
    const pending = steps.filter((step) => step.version > version && step.version <= layout.version)
    const wait = pending.length > 0 && oldestReader < layout.oldestReader ? store.state.delay : 0
    const claim = () => ({ id, until: toTimestamp(now() + lease + wait) })
    let held = await store.state.change(found, { migrator: claim(), oldestReader: Math.max(oldestReader, layout.oldestReader) })
    if (held === null) continue
    await sleep(wait)

    const renew = async (): Promise<boolean> => {
      const { until } = (held as FoundState).state.migrator!
      if (Date.parse(until) - now() > lease / 2) return true
      held = await store.state.change(held as FoundState, { migrator: claim() })
      return held !== null
    }
    if (!await runSteps(store, pending, renew)) continue
    if (await store.state.change(held, { version: layout.version, migrator: undefined }) !== null) return
  }
}

/** @returns false when another process has taken over */
async function runSteps (store: Store, steps: readonly Step[], renew: () => Promise<boolean>): Promise<boolean> {
  for (const step of steps) {
    for await (const batch of store.collection(step.collection).list()) {
      for (let start = 0; start < batch.length; start += AT_ONCE) {
        if (!await renew()) return false
        await Promise.all(batch.slice(start, start + AT_ONCE).map((document) => changeDocument(store, step, document)))
      }
    }
  }
  return true
}

async function changeDocument (store: Store, { collection: name, toChange }: Step, read: Document): Promise<void> {
  const collection = store.collection(name)
  let document: Document | null = read
  await retryWrite('a document of an earlier layout', async () => {
    const needed: ReturnType<Step['toChange']> = document === null ? null : toChange(document as Parameters<Step['toChange']>[0])
    if (needed === null || await collection.update(read.id, needed.change, needed.where) !== null) return true
    document = await collection.get(read.id)
    return null
  })
}
