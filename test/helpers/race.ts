import type { Test } from 'tap'
import { type Scheduler, type Search, exhaust } from './scheduler.ts'

/** How the actors ended. */
export interface Ends {
  /** Those that succeeded, sorted. */
  done: string[]
  /** What each resolved to, or its error. */
  results: Record<string, unknown>
  /** The store calls, as `actor: collection.method`. */
  order: string[]
}

/** What happens in each order. */
export interface Scene {
  actors: Record<string, () => Promise<unknown>>
  /** Returns what is wrong, if anything. */
  check?: (ends: Ends) => Promise<string | undefined> | string | undefined
}

export interface Race extends Search {
  /** The codes that actors may be refused with. Absent: any. */
  refusals?: readonly string[]
  /** Names the outcome of an order. By default, the actors that succeeded. */
  name?: (ends: Ends) => Promise<string> | string
}

/** The outcome when nobody succeeds. */
export const NOBODY = 'nobody'

const nameDone = ({ done }: Ends): string => done.join(', ') || NOBODY

/** Reported problems; one fault shows in many orders. */
const MOST_PROBLEMS = 3

/** Runs the actors of a new scene in every order of their store calls. */
export async function race (t: Test, scheduler: Scheduler, { refusals, name = nameDone, ...search }: Race, prepare: () => Promise<Scene>): Promise<void> {
  const problems: string[] = []
  const play = exhaust(search, async (choose) => {
    const { actors, check } = await prepare()
    const results: Record<string, unknown> = {}
    const failed = new Set<string>()
    const watched = Object.entries(actors).map(([actor, act]) => [actor, async () => {
      try {
        results[actor] = await act()
      } catch (error) {
        results[actor] = error
        failed.add(actor)
      }
    }] as const)
    await scheduler.run(Object.fromEntries(watched), choose)
    const order = scheduler.order
    const ends: Ends = { done: Object.keys(actors).filter((actor) => !failed.has(actor)).sort(), results, order }
    const outcome = await name(ends)
    const unexpected = refusals === undefined ? undefined : [...failed].find((actor) => !refusals.includes(String((results[actor] as { code?: string }).code)))
    const problem = unexpected === undefined ? await check?.(ends) : `${unexpected} failed with ${String(results[unexpected])}`
    if (problem !== undefined && problems.length < MOST_PROBLEMS) problems.push(`${problem}, in the outcome '${outcome}'\n${order.join('\n')}`)
    return outcome
  })
  const found = await play.finally(() => { t.strictSame(problems, []) })
  t.comment(`${found.orders} orders: ${[...found.seen].map(([outcome, count]) => `'${outcome}' ${count}`).join(', ')}`)
}
