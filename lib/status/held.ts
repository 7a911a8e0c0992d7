import type { Upstream } from '../../schemas/upstream.ts'
import type { UserRecord } from '../records/user.ts'
import { ClosingError } from '../errors.ts'
import type { RoleNames } from '../roles.ts'
import type { Store } from '../store/port.ts'
import { scan } from '../store/scan.ts'
import { type HeldCount, countHeld } from '../upstreams/count-held.ts'

/** Milliseconds for which a count stands. It reads every user. */
const FRESH = 5 * 60_000

/** Counts the people whom upstreams with `only` hold: one count at a time, however many ask for it, and one in five minutes. */
export class HeldCounter {
  readonly #parts: { store: Store, upstreams: readonly Upstream[], roles: RoleNames, now: () => number }
  readonly #stopping = new AbortController()
  #counting: Promise<HeldCount> | undefined
  #countedAt: number | undefined

  constructor (parts: { store: Store, upstreams: readonly Upstream[], roles: RoleNames, now: () => number }) {
    this.#parts = { ...parts }
  }

  /** @returns undefined where no upstream has `only` @throws ClosingError when `close` ends it */
  async count (): Promise<HeldCount | undefined> {
    if (!this.#parts.upstreams.some(({ only }) => only === true)) return
    const { now } = this.#parts
    if (this.#counting === undefined || (this.#countedAt !== undefined && Math.abs(now() - this.#countedAt) >= FRESH)) {
      this.#countedAt = undefined
      this.#counting = this.#read()
      this.#counting.then(() => { this.#countedAt = now() }, () => { this.#counting = undefined })
    }
    return await this.#counting
  }

  async #read (): Promise<HeldCount> {
    const { store, upstreams, roles } = this.#parts
    const { signal } = this.#stopping
    async function * readUsers (): AsyncGenerator<UserRecord[]> {
      for await (const batch of scan(store.collection<UserRecord>('users'), {})) {
        if (signal.aborted) throw new ClosingError()
        yield batch
      }
    }
    return await countHeld(readUsers(), upstreams, roles)
  }

  /** Ends a count in flight. */
  async close (): Promise<void> {
    this.#stopping.abort()
    await this.#counting?.catch(() => {})
  }
}
