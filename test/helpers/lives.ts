import type { Test } from 'tap'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import type { Store } from '../../lib/store/port.ts'

export const SECOND = 1_000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

/** Something that works until its life ends. */
export interface Life {
  name: string
  /** Milliseconds. */
  life: number
  /** Makes the thing now. Resolves to its use, which says whether it still works. */
  make: () => Promise<() => Promise<boolean> | boolean> | (() => Promise<boolean> | boolean)
  /** The collection whose records must be there as long as the thing works, and be gone afterwards. Absent: they serve something else too. */
  stored?: string
}

interface Scene {
  /** The clock of the service. */
  clock: { now: () => number, advance: (milliseconds: number) => void }
  /** Absent where nothing is stored. */
  store?: Store
}

/** Removes the expired records, as the engines do in their own time. */
export async function sweepExpired (store: Store, now: number): Promise<void> {
  const time = new Date(now).toISOString()
  for (const { name, expiry } of COLLECTIONS) {
    if (expiry !== undefined) await store.collection(name).deleteMany({ before: { [expiry]: time } })
  }
}

/** Whether a call succeeds. It may fail only with this code, or refusal. */
export async function succeeds (call: Promise<unknown>, code: string): Promise<boolean> {
  return await call.then(() => true, (error: { code?: string, refusal?: string }) => {
    if ((error.code ?? error.refusal) !== code) throw error
    return false
  })
}

const countIn = async (store: Store | undefined, name: string | undefined): Promise<number> => name === undefined ? 0 : await store!.collection(name).count()

/**
 * Uses each thing one second before the end of its life, after the expired records were removed. And uses it, made anew, one second after
 * the end: with its records still there, and when they have been removed.
 */
export async function tryLives (t: Test, { clock, store }: Scene, rows: readonly Life[]): Promise<void> {
  const sweep = async () => { if (store !== undefined) await sweepExpired(store, clock.now()) }
  const empty = async (name: string | undefined) => { if (name !== undefined) await store!.collection(name).deleteMany({ before: { id: '~' } }) }
  for (const { name, life, make, stored } of rows) {
    await t.test(name, async (t) => {
      await empty(stored)
      const use = await make()
      const made = await countIn(store, stored)
      if (stored !== undefined) t.ok(made > 0, `it is stored in ${stored}`)
      clock.advance(life - SECOND)
      await sweep()
      t.equal(await countIn(store, stored), made, 'its records stay')
      t.equal(await use(), true, 'a second before')

      await empty(stored)
      const useLate = await make()
      clock.advance(life + SECOND)
      t.equal(await useLate(), false, 'a second after')
      if (stored === undefined) return
      await sweep()
      t.equal(await countIn(store, stored), 0, 'its records go')
      t.equal(await useLate(), false, 'without its records')
    })
  }
}
