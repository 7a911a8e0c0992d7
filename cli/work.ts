import { defined } from '../lib/defined.ts'
import type { LogoutRecord } from '../lib/logout/record.ts'
import type { DeliveryRecord } from '../lib/mail/delivery.ts'
import type { FailedEvent } from '../lib/webhooks/record.ts'
import { JOB_KINDS, listJobs, retryJobs } from '../lib/work/jobs.ts'
import type { WorkRecord } from '../lib/work/record.ts'
import type { Work, WorkName } from '../lib/work/watch.ts'
import { type Args, choice, toggle, value } from './args.ts'
import type { Command, Commands, Context } from './command.ts'
import { printList } from './output.ts'

/** What the commands of a kind print: nothing that is sealed or secret. */
interface Shown extends Partial<Omit<DeliveryRecord & LogoutRecord & FailedEvent, keyof WorkRecord>>, WorkRecord {
  to?: string
}

/** Fields by heading: what is printed, and the JSON too. */
type Fields = Record<string, keyof Shown>

/** The fields that all kinds have, after those of their own. */
const COMMON: Fields = { ATTEMPTS: 'attempts', FAILURE: 'failure', DUE: 'due_at', ENDS: 'ends_at' }

export function requireWork ({ services: { work } }: Context, name: WorkName): Work {
  const found = work[name]
  if (found === undefined) throw new Error('mail is not configured: see IDENTITY_MAIL_URL')
  return found
}

/** Prints these fields of the work of one kind. */
async function printWork (context: Context, { list }: Work, own: Fields): Promise<void> {
  const fields = { ...own, ...COMMON }
  async function * readAll (): AsyncGenerator<Shown[]> {
    for await (const batch of list?.(context.args.has('failed') ? 'failed' : 'due') ?? []) {
      yield batch.map((record: Shown) => Object.fromEntries(Object.values(fields).map((field) => [field, record[field]])) as unknown as Shown)
    }
  }
  await printList(context, readAll(), fields)
}

/** The command that lists work of one kind. */
export function toList (name: WorkName, own: Fields, { summary, failed }: { summary: string, failed: string }): Command {
  return {
    summary,
    example: `${name} list --failed`,
    flags: { failed: toggle(failed) },
    creates: false,
    async run (context) {
      await printWork(context, requireWork(context, name), own)
    }
  }
}

/** The command that retries failed work of one kind. */
export function toRetry (
  name: WorkName, { summary, id, note }: { summary: string, id: string, note?: string }, after?: (context: Context) => Promise<void>
): Command {
  return {
    summary,
    example: `${name} retry --all`,
    flags: { id: { ...value('ID', id), or: 'all' }, all: toggle('All of them.') },
    creates: false,
    async run (context) {
      requireWork(context, name)
      const retried = await retryJobs(context.services.work, name, context.args.optional('id'))
      await after?.(context)
      return [{ retried }, retried > 0 ? note : undefined]
    }
  }
}

const readKind = (args: Args): WorkName | undefined => args.optional('kind') as WorkName | undefined

const KIND_TEXT = `One of ${JOB_KINDS.join(', ')}.`

const listCommand: Command = {
  summary: 'List background jobs. With --failed: those that were given up. Says which kind stands still.',
  example: 'jobs list --failed',
  flags: {
    kind: choice('KIND', JOB_KINDS, `${KIND_TEXT} All by default.`),
    failed: toggle('What was given up.'),
    limit: value('N', 'Maximum number of each kind. All by default.')
  },
  creates: false,
  async run (context) {
    const { services: { work }, args, stderr } = context
    const kind = readKind(args)
    const limit = args.limit()
    if (kind !== undefined) requireWork(context, kind)
    async function * readAll () {
      for await (const batch of listJobs(work, defined({ kind, state: args.has('failed') ? 'failed' as const : 'waiting' as const, limit }))) {
        yield batch.map(({ kind, job_id: id, about, attempts, failure, due_at, ends_at }) => defined({ kind, id, about, attempts, failure, due_at, ends_at }))
      }
    }
    await printList(context, readAll(), { KIND: 'kind', ID: 'id', ABOUT: 'about', ATTEMPTS: 'attempts', FAILURE: 'failure', DUE: 'due_at', ENDS: 'ends_at' })
    for (const name of kind === undefined ? JOB_KINDS : [kind]) {
      const since = await work[name]?.findStall()
      if (since !== undefined) stderr.write(`fastify-identity: warning: ${name}: due since ${since}, and no service attempts it\n`)
    }
  }
}

const retryCommand: Command = {
  summary: 'Retry failed and waiting jobs now. The running service picks them up.',
  example: 'jobs retry --kind webhook',
  flags: { kind: { ...choice('KIND', JOB_KINDS, KIND_TEXT), required: true }, id: value('ID', 'The id of one. All of the kind by default.') },
  creates: false,
  async run (context) {
    const kind = readKind(context.args)!
    requireWork(context, kind)
    const retried = await retryJobs(context.services.work, kind, context.args.optional('id'))
    return [{ retried }, retried > 0 ? 'A running service does it within two seconds.' : undefined]
  }
}

export const workCommands: Commands = {
  'jobs list': listCommand,
  'jobs retry': retryCommand,
  'work list': { ...listCommand, summary: 'The same as jobs list.', example: 'work list --failed' },
  'work retry': { ...retryCommand, summary: 'The same as jobs retry.', example: 'work retry --kind webhook' }
}
