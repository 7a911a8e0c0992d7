import type { Db } from 'mongodb'

/** A command as the driver sent it, from a commandStarted event. */
export type Command = Record<string, unknown>

interface Write {
  q: object
}

/** The server's plan for the reads of a command. A write is explained as the find of the documents that it changes. */
export async function explain (db: Db, command: Command): Promise<unknown> {
  return db.command({ explain: toReadOnly(command), verbosity: 'queryPlanner' })
}

function toReadOnly (command: Command): Command {
  if ('aggregate' in command) return { aggregate: command.aggregate, pipeline: command.pipeline, cursor: {} }
  if ('findAndModify' in command) return { find: command.findAndModify, filter: command.query }
  if ('update' in command) return { find: command.update, filter: (command.updates as Write[])[0]!.q }
  if ('delete' in command) return { find: command.delete, filter: (command.deletes as Write[])[0]!.q }
  const { find, filter, sort, skip, limit, hint } = command
  return Object.fromEntries(Object.entries({ find, filter, sort, skip, limit, hint }).filter(([, value]) => value !== undefined))
}

/**
 * The steps of a plan that read a whole collection. mongod calls them COLLSCAN. FerretDB sends PostgreSQL's plan, in which
 * such a step is a Seq Scan, or reads the index of _id without a condition on the id (object_id).
 */
export function findScans (plan: unknown): string[] {
  return findSteps(plan, (step) => {
    if (step.stage === 'COLLSCAN') return 'COLLSCAN'
    if (step['Node Type'] === 'Seq Scan') return 'Seq Scan'
    const unbounded = step['Index Name'] === '_id_' && !/object_id/.test(String(step['Index Cond']))
    return unbounded ? 'Index Scan of all ids' : undefined
  })
}

/** The steps of mongod's plan that sort, because no index has the order. */
export function findSorts (plan: unknown): string[] {
  return findSteps(plan, (step) => step.stage === 'SORT' ? 'SORT' : undefined)
}

function findSteps (plan: unknown, name: (step: Record<string, unknown>) => string | undefined): string[] {
  if (typeof plan !== 'object' || plan === null) return []
  const found = Array.isArray(plan) ? undefined : name(plan as Record<string, unknown>)
  const inner = Object.entries(plan)
    .filter(([key]) => key !== 'rejectedPlans' && key !== 'command')
    .flatMap(([, value]) => findSteps(value, name))
  return found === undefined ? inner : [found, ...inner]
}
