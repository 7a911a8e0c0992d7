import type { Job } from '../../../schemas/support.ts'
import { type Html, html } from '../html.ts'
import type { Part } from '../parts.ts'
import { type ConsoleContext, type ConsoleView, frame } from './frame.ts'
import { act, choice, code, entries, listTogether, part, plain, time } from './parts.ts'

type Kind = Job['kind']

export interface JobsView {
  /** Absent: they could not be read. */
  jobs?: readonly Job[] | undefined
  /** How many of each kind are shown in each state. There may be one more of them. */
  limit: number
  kinds: readonly Kind[]
  /** What is asked for; '' for all. */
  kind: string
  state: string
  mayRetry: boolean
}

/** What a job is about: the client has a page, the other names are codes. */
function toAbout ({ kind, about }: Job, base: string): Html | false {
  if (about === '') return false
  return kind === 'logout' || kind === 'secret' ? html`<a href="${base}/clients/${encodeURIComponent(about)}">${plain(about)}</a>` : code(about)
}

/** The jobs of one kind: those that wait, then those that were given up. */
function describeKind (kind: Kind, view: ConsoleView, { jobs = [], limit, mayRetry }: JobsView, context: ConsoleContext): Html | false {
  const { texts: { console: { jobs: own } } } = context
  const found = jobs.filter((job) => job.kind === kind)
  if (found.length === 0) return false
  const to = `${view.base}/jobs`
  const states = (['waiting', 'failed'] as const).map((state) => found.filter((job) => job.state === state))
  const stalled = found.find(({ stalled_since }) => stalled_since !== undefined)?.stalled_since
  const list = states.flatMap((jobs) => jobs.slice(0, limit)).map((job) => ({
    head: html`<span class="tag${job.state === 'failed' && ' failed'}">${own.states[job.state]}</span> ${toAbout(job, view.base)}`,
    more: [
      html`${code(job.job_id)}, ${own.attempts({ count: job.attempts })}`,
      job.failure !== undefined && own.failure({ failure: plain(job.failure) }),
      job.state === 'waiting' &&
        html`${own.due({ time: time(job.due_at, context) })}${job.ends_at !== '' && html`. ${own.ends({ time: time(job.ends_at, context) })}`}`
    ],
    action: mayRetry && act(view, { to, action: 'retry', label: own.retry, says: own.retrySays, hiddens: { kind, job: job.job_id }, of: job.job_id })
  }))
  const notes = html`${stalled !== undefined && html`<p class="can not">${own.stalled({ time: time(stalled, context) })}</p>
`}${states.some(({ length }) => length > limit) && html`<p>${own.more({ count: limit })}</p>
`}`
  const all = mayRetry && act(view, { to, action: 'retry', label: own.retryAll, says: own.retryAllSays, hiddens: { kind }, of: own.kinds[kind] })
  return part(kind, own.kinds[kind], html`${notes}${all !== false && listTogether(all)}${entries(kind, list, own.empty)}`)
}

/** What the service has yet to do, and what it gave up. */
export function jobsPage (view: ConsoleView, shown: JobsView, context: ConsoleContext): Part {
  const { texts: { console: { jobs: own, sections } } } = context
  const { jobs, kinds, kind, state } = shown
  return frame(view, context, {
    title: sections.jobs,
    body: html`<p>${own.why}</p>
<form method="get" action="${view.base}/jobs" class="filters">
<div>${choice({ id: 'kind', label: own.kind, value: kind }, [['', own.all], ...kinds.map((one) => [one, own.kinds[one]] as const)])}</div>
<div>${choice({ id: 'state', label: own.state, value: state }, [
  ['', own.all], ['waiting', own.states.waiting], ['failed', own.states.failed]
])}</div>
<button type="submit">${own.submit}</button>
</form>
${jobs?.length === 0 && html`<p class="muted">${own.empty}</p>\n`}${kinds.map((one) => describeKind(one, view, shown, context))}`
  })
}
