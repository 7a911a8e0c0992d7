import type { FastifyInstance } from 'fastify'
import { JobListQuerySchema, JobSchema, JobsRetriedSchema, KeysDataSchema, RetryJobsSchema } from '../schemas/support.ts'
import { listJobs, retryJobs } from '../lib/work/jobs.ts'
import { createRows, data, wholeList } from './rows.ts'
import type { RouteSettings } from './settings.ts'

/** What the service does later, and the keys that encrypt what it stores (docs/operations.md). */
export async function jobRoutes (app: FastifyInstance, settings: Pick<RouteSettings, 'stallTimeout' | 'writeLimit'>): Promise<void> {
  const { work, sealing } = app.identity
  const add = createRows(app, 'job', settings)

  add('listJobs', 'GET /jobs', 'List what the service has yet to do, and what it gave up', {
    query: JobListQuerySchema,
    answer: wholeList(JobSchema, 'The jobs, kind by kind.'),
    errors: ['ErrNotFound'],
    run: ({ query }) => ({ batches: listJobs(work, query) })
  })

  add('retryJobs', 'POST /jobs/retry', 'Make jobs due now that were given up, or that wait for another attempt', {
    body: RetryJobsSchema,
    answer: data(JobsRetriedSchema, 'How many.'),
    errors: ['ErrNotFound'],
    run: async ({ body: { data: { kind, job_id } } }) => ({ retried: await retryJobs(work, kind, job_id) })
  })

  add('listKeys', 'GET /keys', 'List the secret keys by id, with the number of stored secrets that each encrypts', {
    answer: data(KeysDataSchema, 'The keys, without key material.'),
    run: async () => ({ keys: await sealing.status() })
  })
}
