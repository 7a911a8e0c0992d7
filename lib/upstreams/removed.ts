import type { UserRecord } from '../records/user.ts'
import type { Document, Store } from '../store/port.ts'
import { scan } from '../store/scan.ts'
import type { WayService } from '../ways/ways.ts'

/** The upstreams that people may have a way in by: those that were configured, and those that left somebody without one. */
interface UpstreamsRecord extends Document {
  ids: string[]
}

const ID = 'upstreams'

/** People without any way to sign in. Whoever waits for an invitation has one. */
export async function * listWithoutWay (store: Store, { hasWayIn }: Pick<WayService, 'hasWayIn'>): AsyncGenerator<UserRecord[]> {
  for await (const batch of scan(store.collection<UserRecord>('users'), {})) {
    const has = await Promise.all(batch.map(async (user) => user.invited_at !== undefined || await hasWayIn(user)))
    const found = batch.filter((_user, index) => !has[index])
    if (found.length > 0) yield found
  }
}

/**
 * Warns of the people whom the configuration leaves without a way in, because it has lost an upstream. All people are read only then.
 * @param ids of the upstreams that are configured
 */
export async function warnOfRemoved ({ store, ids, ways: service, onWarning, signal }: {
  store: Store, ids: readonly string[], ways: Pick<WayService, 'hasWayIn'>, onWarning: (message: string) => void, signal: AbortSignal
}): Promise<void> {
  const meta = store.collection<UpstreamsRecord>('meta')
  const known = (await meta.get(ID))?.ids ?? []
  const removed = known.filter((id) => !ids.includes(id))
  const left = new Map<string, number>()
  if (removed.length > 0) {
    for await (const batch of listWithoutWay(store, service)) {
      if (signal.aborted) return
      for (const { ways = {} } of batch) {
        const lost = new Set(Object.values(ways).map(({ upstream = '' }) => upstream).filter((id) => removed.includes(id)))
        for (const id of lost) left.set(id, (left.get(id) ?? 0) + 1)
      }
    }
  }
  for (const [id, count] of left) {
    const people = count === 1 ? '1 person has' : `${count} people have`
    onWarning(`the upstream ${id} is no longer configured, and ${people} no other sign-in method: see user list --no-way`)
  }
  const next = [...new Set([...ids, ...left.keys()])].sort()
  if (next.join() !== known.join()) await meta.put({ id: ID, ids: next })
}
