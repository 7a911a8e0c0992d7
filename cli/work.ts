import { IdentityError } from '../lib/errors.ts'
import type { LogoutRecord } from '../lib/logout/record.ts'
import type { DeliveryRecord } from '../lib/mail/delivery.ts'
import type { FailedEvent } from '../lib/webhooks/record.ts'
import type { WorkRecord } from '../lib/work/record.ts'
import type { Work, WorkName } from '../lib/work/watch.ts'
import { type Args, UsageError, required, toggle, value } from './args.ts'
import type { Command, Commands, Context, Result } from './command.ts'
import { printList } from './output.ts'

/** What the commands of a kind print: nothing that is sealed or secret. */
interface Shown extends Partial<Omit<DeliveryRecord & LogoutRecord & FailedEvent, keyof WorkRecord>>, WorkRecord {
  to?: string
  about?: string
}

/** Fields by heading: what is printed, and the JSON too. */
type Fields = Record<string, keyof Shown>

/** The kinds of work, each with what it is about. */
const KINDS: Record<WorkName, (record: Shown) => unknown[]> = {
  mail: ({ kind }) => [kind],
  logout: ({ client_id }) => [client_id],
  webhook: ({ webhook_id, type }) => [webhook_id, type],
  secret: ({ client_id }) => [client_id],
  event: ({ type }) => [type]
}
const NAMES = Object.keys(KINDS) as WorkName[]

/** The fields that all kinds have, after those of their own. */
const COMMON: Fields = { ATTEMPTS: 'attempts', FAILURE: 'failure', DUE: 'due_at', ENDS: 'ends_at' }

export function requireWork ({ services: { work } }: Context, name: WorkName): Work {
  const found = work[name]
  if (found === undefined) throw new Error('mail is not configured: see IDENTITY_MAIL_URL')
  return found
}

/** Ignores the error of work that has ended, or that somebody else has retried. */
function skipEnded (error: unknown): void {
  if (!(error instanceof IdentityError) || (error.code !== 'ErrNotFound' && error.code !== 'ErrParam')) throw error
}

/** Retries the work with the id, or all that was given up or waits for another attempt. */
async function retry ({ list, retry }: Work, id: string | undefined, note?: string): Promise<Result> {
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
  return [{ retried }, retried > 0 ? note : undefined]
}

/** Prints these fields of the work of these kinds, of which the command line may know none. */
async function printWork (
  context: Context, names: WorkName[], own: Fields, describe?: (record: Shown, name: WorkName) => object
): Promise<void> {
  const { services: { work }, args } = context
  const fields = { ...own, ...COMMON }
  async function * readAll (): AsyncGenerator<Shown[]> {
    for (const name of names) {
      for await (const batch of work[name]?.list?.(args.has('failed') ? 'failed' : 'due') ?? []) {
        yield batch.map((record: Shown) => {
          const shown = { ...record, ...describe?.(record, name) }
          return Object.fromEntries(Object.values(fields).map((field) => [field, shown[field]])) as unknown as Shown
        })
      }
    }
  }
  await printList(context, readAll(), fields)
}

/** The command that lists work of one kind. */
export function toList (name: WorkName, own: Fields, { summary, failed }: { summary: string, failed: string }): Command {
  return {
    summary,
    flags: { failed: toggle(failed) },
    creates: false,
    async run (context) {
      requireWork(context, name)
      await printWork(context, [name], own)
    }
  }
}

/** The command that retries failed work of one kind. */
export function toRetry (
  name: WorkName, { summary, id, note }: { summary: string, id: string, note?: string }, after?: (context: Context) => Promise<void>
): Command {
  return {
    summary,
    flags: { id: value('ID', id), all: toggle('All of them.') },
    creates: false,
    async run (context) {
      const work = requireWork(context, name)
      context.args.requireOne('id', 'all')
      const result = await retry(work, context.args.optional('id'), note)
      await after?.(context)
      return result
    }
  }
}

function readKind (args: Args): WorkName | undefined {
  const kind = args.optional('kind')
  if (kind === undefined || NAMES.includes(kind as WorkName)) return kind as WorkName | undefined
  throw new UsageError(`--kind: must be one of ${NAMES.join(', ')}`)
}

const KIND_TEXT = `One of ${NAMES.join(', ')}.`

export const workCommands: Commands = {
  'work list': {
    summary: 'List what the service has yet to do, or with --failed what it gave up, and say which kind stands still.',
    flags: { kind: value('KIND', `${KIND_TEXT} Absent: all.`), failed: toggle('What was given up.') },
    creates: false,
    async run (context) {
      const kind = readKind(context.args)
      if (kind !== undefined) requireWork(context, kind)
      const names = kind === undefined ? NAMES : [kind]
      await printWork(context, names, { KIND: 'kind', ID: 'id', ABOUT: 'about' }, (record, kind) =>
        ({ kind, about: KINDS[kind](record).filter(Boolean).join(' ') }))
      for (const name of names) {
        const since = await context.services.work[name]?.findStall()
        if (since !== undefined) context.stderr.write(`fastify-identity: warning: ${name}: due since ${since}, and no service attempts it\n`)
      }
    }
  },

  'work retry': {
    summary: 'Make work due now that was given up, or that waits for another attempt. The running service does it.',
    flags: { kind: required('KIND', KIND_TEXT), id: value('ID', 'The id of one. Absent: all of the kind.') },
    creates: false,
    async run (context) {
      const work = requireWork(context, readKind(context.args)!)
      return await retry(work, context.args.optional('id'), 'A running service does it within two seconds.')
    }
  }
}
