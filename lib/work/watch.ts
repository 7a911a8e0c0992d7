import type { Pace } from './pace.ts'
import type { WorkRecord } from './record.ts'

/**
 * The kinds of work that the service does later: mails, logout tokens, failed events of webhooks, notices of expiring secrets, and the
 * publication of events.
 */
export type WorkName = 'mail' | 'logout' | 'webhook' | 'secret' | 'event'

/** One kind of work, for operators. */
export interface Work {
  /** What waits (`due`), or was given up (`failed`), the earliest first. Absent where nothing is kept. */
  list? (state: WorkRecord['state']): AsyncIterable<WorkRecord[]>
  /** How much was given up and is kept. Absent where nothing is kept. */
  countFailed? (): Promise<number>
  /**
   * Makes failed work due again.
   * @throws ErrNotFound; ErrParam when what it is about has ended
   */
  retry? (id: string): Promise<unknown>
  /** Since when work is due that no process attempts, by what is stored. Undefined while it goes on. */
  findStall (): Promise<string | undefined>
  /** How this process goes on with it. */
  pace: Pace
}

export type Works = Readonly<Partial<Record<WorkName, Work>>>

/** Milliseconds between two looks. */
const INTERVAL = 10_000

/** Reports once that a kind of work stands still in this process, and once that it goes on. */
export function watchWork (works: Works, onWarning: (message: string) => void) {
  const stalled = new Set<string>()
  const kinds = Object.entries(works)

  function look (): void {
    for (const [name, { pace }] of kinds) {
      const is = pace.isStalled === true
      if (is === stalled.has(name)) continue
      if (is) stalled.add(name)
      else stalled.delete(name)
      onWarning(is ? `work stands still: ${name}: it is due, and this process has not attempted any for 90 seconds` : `work goes on: ${name}`)
    }
  }

  const timer = setInterval(look, INTERVAL)
  timer.unref()
  return {
    /** Looks now, instead of at the next interval. */
    look,

    /** By kind, whether it stands still (1 or 0). Kinds that this process does not do are left out. */
    read: (): Record<string, number> => Object.fromEntries(
      kinds.filter(([, { pace }]) => pace.isStalled !== undefined).map(([name, { pace }]) => [name, Number(pace.isStalled)])
    ),

    close: (): void => { clearInterval(timer) }
  }
}
