import type { Test } from 'tap'
import { RENDERERS } from '../../fixtures/things-renderer.ts'
import { COLLECTIONS, type Engine, type Suite, type Thing, drain } from './conformance/suite.ts'
import { documents } from './conformance/documents.ts'
import { filters } from './conformance/filters.ts'
import { lifecycle } from './conformance/lifecycle.ts'
import { lists } from './conformance/lists.ts'
import { places } from './conformance/places.ts'
import { races } from './conformance/races.ts'
import { searches } from './conformance/searches.ts'
import { writes } from './conformance/writes.ts'

export { type Engine } from './conformance/suite.ts'

/** Runs every promise of lib/store/port.ts, each as a named case, against one engine. */
export function runConformance (t: Test, engine: Engine): Promise<unknown> {
  return t.test(`the store port on ${engine.name}`, async (t) => {
    const store = await engine.open({ collections: COLLECTIONS, now: Date.now, renderers: RENDERERS }, 'shared')
    t.teardown(() => store.close())
    const suite: Suite = { engine, store, things: store.collection<Thing>('things') }
    for (const cases of [documents, writes, races, filters, searches, lists, places, lifecycle]) {
      for (const [name, run] of Object.entries(cases)) {
        await t.test(name, async (t) => {
          await drain(suite.things)
          await run(t, suite)
        })
      }
    }
  })
}
