import type { Test } from 'tap'
import { race } from './race.ts'
import type { Scheduler } from './scheduler.ts'

/** Somebody who acts by a rule of a record, and a change of that record after which the rule refuses them. */
export interface RuleScene {
  act: () => Promise<unknown>
  change: () => Promise<unknown>
  /** Whether the effect of `act` is stored. */
  isWritten: () => Promise<boolean>
}

export interface RuleRow {
  /** Prepares a new record for each order. */
  prepare: () => Promise<RuleScene>
  /** The code of the error that `act` is refused with, or the reason where it has none. */
  refusal: string
  /** Whether the change fails after `act`: because it deletes the record, or takes the last place. */
  excludes?: boolean
}

const WRITES = ['update', 'insert', 'put', 'delete']

const toCode = (error: unknown): string => {
  const { code, refusal } = error as { code?: string, refusal?: string }
  return code ?? refusal ?? String(error)
}

/**
 * Tries each row in every order of its store calls. The rule must hold on the record that the write replaces: after the change, nothing of
 * `act` is written, and it is told so. Before the change it succeeds, so both outcomes occur.
 * @param collection the one whose record decides
 */
export async function checkRules (t: Test, scheduler: Scheduler, collection: string, rows: Record<string, RuleRow>): Promise<void> {
  for (const [name, { prepare, refusal, excludes = false }] of Object.entries(rows)) {
    await t.test(name, async (t) => {
      const outcomes = ['change', excludes ? 'act' : 'act, change']
      await race(t, scheduler, { least: 3, outcomes }, async () => {
        const { isWritten, ...actors } = await prepare()
        return {
          actors,
          async check ({ done, results, order }) {
            const isDone = done.includes('act')
            if (await isWritten() !== isDone) return isDone ? 'told that it was written' : 'written, and told that it was refused'
            if (!isDone) return toCode(results.act) === refusal ? undefined : `refused with ${String(results.act)}`
            const findLast = (actor: string) => order.findLastIndex((call) => WRITES.some((method) => call === `${actor}: ${collection}.${method}`))
            return !excludes && findLast('act') > findLast('change') ? 'written after the change' : undefined
          }
        }
      })
    })
  }
}
