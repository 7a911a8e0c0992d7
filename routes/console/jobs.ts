import type { FastifyInstance } from 'fastify'
import { jobsPage } from '../../lib/pages/console/jobs.ts'
import { JOB_KINDS } from '../../lib/work/jobs.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import type { Job } from '../../schemas/support.ts'
import type { AddPage } from './page.ts'
import { readText } from './people.ts'

/** Jobs of each kind that the page shows in each state. */
const LIMIT = 50

/** What the service has yet to do, and what it gave up. */
export function jobPages (_app: FastifyInstance, add: AddPage): void {
  add({
    path: '/jobs',
    section: 'jobs',
    needs: 'listJobs',
    commands: () => ['jobs list', 'jobs list --failed', 'jobs retry --kind mail'],
    async show (desk) {
      const [kind, state] = [readText(desk, 'kind', 16), readText(desk, 'state', 16)]
      // One more tells whether there are more.
      const jobs = await desk.read<Job[]>('listJobs', { path: '/jobs', query: { kind, state, limit: String(LIMIT + 1) } })
      return (view, context) => jobsPage(view, { jobs: jobs?.data, limit: LIMIT, kinds: JOB_KINDS, kind, state, mayRetry: desk.may('retryJobs') }, context)
    },
    forms: {
      retry: {
        needs: 'retryJobs',
        async submit ({ call, request }) {
          const job_id = readField(request, 'job')
          await call({ method: 'POST', path: '/jobs/retry', body: { data: { kind: readField(request, 'kind'), ...(job_id !== '' && { job_id }) } } })
          return { done: 'retried' }
        }
      }
    }
  })
}
