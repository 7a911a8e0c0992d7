import { Outages } from '../../lib/work/outage.ts'

/** Outages, and what was told of them: the kind and name, and how they began or ended. */
export function recordOutages () {
  const told: string[] = []
  const outages = new Outages({
    onChange: (of, change, name) => { told.push(`${of} ${name ?? ''}: ${'error' in change ? (change.error as Error).message : `over after ${change.failures}`}`) }
  })
  return { outages, told }
}
