import { setTimeout as sleep } from 'node:timers/promises'
import type { UserRecord } from '../records/user.ts'
import type { Store } from '../store/port.ts'
import { scan } from '../store/scan.ts'
import type { CredentialRecord } from '../way.ts'

/** Milliseconds for which material has no user before it is removed. A user is written within seconds of their material. */
const PATIENCE = 60 * 60_000

/** Milliseconds between two looks. */
const INTERVAL = 24 * 60 * 60_000

/** The most that one look finds. Further ones are found by the next look. */
const MOST = 10_000

/** Material as a look found it. */
export type Orphan = Pick<CredentialRecord, 'id' | 'user_id' | 'revision'>

/** Material of users who do not exist: whoever created or deleted them was interrupted. Nobody can sign in with it. */
export function createOrphans (store: Store) {
  const users = store.collection<UserRecord>('users')
  const credentials = store.collection<CredentialRecord>('credentials')

  return {
    async find (signal?: AbortSignal): Promise<Orphan[]> {
      const orphans: Orphan[] = []
      for await (const batch of scan(credentials, {})) {
        const owners = await Promise.all(batch.map(async ({ user_id }) => await users.get(user_id)))
        orphans.push(...batch.filter((_credential, index) => owners[index] === null).map(({ id, user_id, revision }) => ({ id, user_id, revision })))
        if (orphans.length >= MOST || signal?.aborted === true) break
      }
      return orphans
    },

    /** Removes what still has no user, and what nobody has written since: an import that goes on writes its material again. */
    async remove (orphans: readonly Orphan[], signal?: AbortSignal): Promise<void> {
      for (const { id, user_id, revision } of orphans) {
        if (signal?.aborted === true) return
        if (await users.get(user_id) === null) await credentials.delete(id, { equal: { user_id, revision } })
      }
    }
  }
}

interface SweepParts {
  store: Store
  signal: AbortSignal
  /** Receives failures: the next look is a day later. */
  onError: (error: unknown) => void
  /** Resolves after so many milliseconds, or at the signal. */
  wait?: (time: number, signal: AbortSignal) => Promise<unknown>
}

const waitUntil = async (time: number, signal: AbortSignal) => await sleep(time, undefined, { signal, ref: false }).catch(() => {})

/**
 * Removes such material once a day, until the signal. It looks twice, because a user whom the first look misses may be about to be written.
 */
export async function sweepOrphans ({ store, signal, onError, wait = waitUntil }: SweepParts): Promise<void> {
  const { find, remove } = createOrphans(store)
  await wait(PATIENCE, signal)
  while (!signal.aborted) {
    try {
      const orphans = await find(signal)
      if (orphans.length > 0) await wait(PATIENCE, signal)
      await remove(orphans, signal)
    } catch (error) {
      if (!signal.aborted) onError(error)
    }
    await wait(INTERVAL, signal)
  }
}
