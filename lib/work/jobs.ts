import { takeFirst } from '../lists/first.ts'
import type { Job, JobListQuery } from '../../schemas/support.ts'
import { defined } from '../defined.ts'
import { IdentityError } from '../errors.ts'
import type { WorkRecord } from './record.ts'
import type { Work, WorkName, Works } from './watch.ts'

/** The kinds of work, each with the fields that say what it is about. They are neither sealed nor secret. */
const ABOUT: Record<WorkName, readonly string[]> = {
  mail: ['kind'],
  logout: ['client_id'],
  webhook: ['webhook_id', 'type'],
  secret: ['client_id'],
  event: ['type']
}

export const JOB_KINDS = Object.keys(ABOUT) as WorkName[]

const STATES = { waiting: 'due', failed: 'failed' } as const

function showJob (kind: WorkName, state: Job['state'], record: WorkRecord & { [field: string]: unknown }, stalled_since: string | undefined): Job {
  const { id: job_id, attempts, failure, due_at, ends_at } = record
  const about = ABOUT[kind].map((field) => record[field]).filter(Boolean).join(' ')
  return defined({ kind, job_id, about, state, attempts, failure, due_at, ends_at, stalled_since })
}

/** @throws ErrNotFound for a kind that this service does not do */
function requireWork (works: Works, kind: WorkName): Work {
  const work = works[kind]
  if (work === undefined) throw new IdentityError('ErrNotFound', `kind: there is no ${kind}, because it is not configured`)
  return work
}

/**
 * What the service has yet to do, or gave up: kind by kind, what waits first.
 * @throws ErrNotFound for a kind that this service does not do
 */
export function listJobs (works: Works, { kind, state, limit = 0 }: JobListQuery = {}): AsyncIterable<Job[]> {
  if (kind !== undefined) requireWork(works, kind)
  const kinds = kind === undefined ? JOB_KINDS : [kind]
  const states = state === undefined ? ['waiting', 'failed'] as const : [state]
  async function * read (): AsyncGenerator<Job[]> {
    for (const name of kinds) {
      const stalled = await works[name]?.findStall()
      for (const one of states) {
        const found = works[name]?.list?.(STATES[one])
        if (found === undefined) continue
        for await (const batch of takeFirst(found, limit)) yield batch.map((record) => showJob(name, one, { ...record }, stalled))
      }
    }
  }
  return read()
}

/** Ignores the error of work that has ended, or that somebody else has retried. */
function skipEnded (error: unknown): void {
  if (!(error instanceof IdentityError) || (error.code !== 'ErrNotFound' && error.code !== 'ErrParam')) throw error
}

/**
 * Makes work due now that was given up, or that waits for another attempt.
 * @param id one of them. Absent: all of the kind
 * @returns how many
 * @throws ErrNotFound; ErrParam when what it is about has ended
 */
export async function retryJobs (works: Works, kind: WorkName, id?: string): Promise<number> {
  const { list, retry } = requireWork(works, kind)
  let retried = 0
  async function retryOne (id: string): Promise<void> {
    await retry?.(id)
    retried++
  }
  if (id !== undefined) await retryOne(id)
  else {
    for (const state of ['due', 'failed'] as const) {
      for await (const batch of list?.(state) ?? []) for (const one of batch) await retryOne(one.id).catch(skipEnded)
    }
  }
  return retried
}
