import type { Test } from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createTestClock } from '../../testing/index.ts'
import { reuseMongoDatabase } from '../helpers/mongo-database.ts'
import { IS_ELSEWHERE, MONGODB_URL } from '../helpers/mongodb.ts'
import { type Answer, type App, type Harness, createFile, startHarness } from './harness.ts'
import { type Interposed, interpose } from './interpose.ts'

/** Returns the URL of a new database. */
export type Place = (t: Test) => string

/** A service whose store operations a test can interrupt, with one client. */
export interface Case extends Harness { app: App, interposed: Interposed }

export async function start (t: Test, place: Place): Promise<Case> {
  const clock = createTestClock()
  const store = await openStore(place(t), { collections: COLLECTIONS, now: clock.now })
  t.teardown(() => store.close())
  const interposed = interpose(store)
  const harness = await startHarness(t, { store: interposed.store })
  return { ...harness, interposed, app: await harness.register() }
}

/** Sends a token request as the client of the case. */
export const take = async ({ post, app }: Case, fields: Record<string, string>): Promise<Answer> => await post('token', fields, app)

/** Runs races on each store, with a function that makes the database. */
export function onBothStores (t: Test, race: (t: Test, place: Place, store: 'sqlite' | 'mongodb') => void): void {
  if (!IS_ELSEWHERE) t.test('on sqlite', async (t) => race(t, createFile, 'sqlite'))
  t.test('on mongodb', { skip: MONGODB_URL === undefined && 'MONGODB_URL is not set' }, async (t) => race(t, (t) => reuseMongoDatabase(t, MONGODB_URL!), 'mongodb'))
}
