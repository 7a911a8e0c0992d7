import { IdentityError } from '../lib/errors.ts'
import type { LogoutRecord } from '../lib/logout/record.ts'
import type { DeliveryRecord } from '../lib/mail/outbox.ts'
import type { FailedEvent } from '../lib/webhooks/record.ts'
import type { WorkRecord } from '../lib/work/record.ts'
import type { Work, WorkName } from '../lib/work/watch.ts'
import { type Args, UsageError } from './args.ts'
import type { Command, Commands, Context } from './command.ts'
import { type Columns, printList, printRecord } from './output.ts'

/** What the commands of a kind print: nothing that is sealed or secret. */
interface Shown extends Partial<Omit<DeliveryRecord & LogoutRecord & FailedEvent, keyof WorkRecord>>, WorkRecord {
  to?: string
}

/** The kinds of work, each with what it is about. */
const KINDS: Record<WorkName, (record: Shown) => unknown[]> = {
  mail: ({ kind }) => [kind],
  logout: ({ client_id }) => [client_id],
  webhook: ({ webhook_id, type }) => [webhook_id, type],
  event: ({ type }) => [type]
}
const NAMES = Object.keys(KINDS) as WorkName[]

/** The columns that all kinds have, after those of their own. */
const COLUMNS: Columns<WorkRecord> = {
  ATTEMPTS: ({ attempts }) => attempts,
  FAILURE: ({ failure }) => failure ?? '',
  DUE: ({ due_at }) => due_at,
  ENDS: ({ ends_at }) => ends_at
}

const toCommon = ({ attempts, failure, due_at, ends_at }: WorkRecord) => ({ attempts, failure, due_at, ends_at })

export function requireWork ({ services: { work } }: Context, name: WorkName): Work {
  const found = work[name]
  if (found === undefined) throw new Error('mail is not configured: see IDENTITY_MAIL_URL')
  return found
}

const readState = (args: Args): WorkRecord['state'] => args.has('failed') ? 'failed' : 'due'

/** Ignores the error of work that has ended, or that somebody else has retried. */
function skipEnded (error: unknown): void {
  if (!(error instanceof IdentityError) || (error.code !== 'ErrNotFound' && error.code !== 'ErrParam')) throw error
}

/** Retries the failed work with the id, or all of it. */
async function retry (context: Context, { list, retry }: Work, id: string | undefined, note?: string): Promise<void> {
  let retried = 0
  async function retryOne (id: string): Promise<void> {
    await retry?.(id)
    retried++
  }
  if (id !== undefined) await retryOne(id)
  else for await (const batch of list?.('failed') ?? []) for (const one of batch) await retryOne(one.id).catch(skipEnded)
  printRecord(context, { retried }, retried > 0 ? note : undefined)
}

async function * showAll (batches: AsyncIterable<WorkRecord[]>, show: (record: Shown) => object): AsyncIterable<Shown[]> {
  for await (const batch of batches) yield batch.map((record) => show(record) as Shown)
}

/** The command that lists work of one kind. */
export function toList (name: WorkName, columns: Columns<Shown>, show: (record: Shown) => object, texts: { summary: string, failed: string }): Command {
  return {
    summary: texts.summary,
    flags: { failed: { type: 'boolean', text: texts.failed } },
    creates: false,
    async run (context) {
      const shown = showAll(requireWork(context, name).list!(readState(context.args)), (record) => ({ ...show(record), ...toCommon(record) }))
      await printList(context, shown, { ...columns, ...COLUMNS })
    }
  }
}

/** The command that retries failed work of one kind. */
export function toRetry (name: WorkName, { summary, id, note }: { summary: string, id: string, note?: string }, after?: (context: Context) => Promise<void>): Command {
  return {
    summary,
    flags: {
      id: { type: 'string', value: 'ID', text: id },
      all: { type: 'boolean', text: 'All of them.' }
    },
    creates: false,
    async run (context) {
      const work = requireWork(context, name)
      context.args.requireOne('id', 'all')
      await retry(context, work, context.args.optional('id'), note)
      await after?.(context)
    }
  }
}

function readKind (args: Args): WorkName | undefined {
  const kind = args.optional('kind')
  if (kind === undefined || NAMES.includes(kind as WorkName)) return kind as WorkName | undefined
  throw new UsageError(`--kind: must be one of ${NAMES.join(', ')}`)
}

async function * listWork ({ services: { work }, args }: Context, names: WorkName[]): AsyncIterable<(Shown & { kind: WorkName, about: string })[]> {
  for (const kind of names) {
    const show = (record: Shown) => ({ kind, id: record.id, about: KINDS[kind](record).filter(Boolean).join(' '), ...toCommon(record) })
    yield * showAll(work[kind]?.list?.(readState(args)) ?? (async function * () {})(), show) as AsyncIterable<(Shown & { kind: WorkName, about: string })[]>
  }
}

const KIND = { type: 'string', value: 'KIND', text: `One of ${NAMES.join(', ')}.` } as const

export const workCommands: Commands = {
  'work list': {
    summary: 'List what the service has yet to do, or with --failed what it gave up, and say which kind stands still.',
    flags: { kind: { ...KIND, text: `${KIND.text} Absent: all.` }, failed: { type: 'boolean', text: 'What was given up.' } },
    creates: false,
    async run (context) {
      const kind = readKind(context.args)
      if (kind !== undefined) requireWork(context, kind)
      const names = kind === undefined ? NAMES : [kind]
      await printList(context, listWork(context, names), {
        KIND: ({ kind }) => kind, ID: ({ id }) => id, ABOUT: ({ about }) => about, ...COLUMNS
      })
      for (const name of names) {
        const since = await context.services.work[name]?.findStall()
        if (since !== undefined) context.stderr.write(`fastify-identity: warning: ${name}: due since ${since}, and no service attempts it\n`)
      }
    }
  },

  'work retry': {
    summary: 'Make work due again that was given up. The running service does it.',
    flags: { kind: { ...KIND, required: true }, id: { type: 'string', value: 'ID', text: 'The id of one. Absent: all of the kind.' } },
    creates: false,
    async run (context) {
      await retry(context, requireWork(context, readKind(context.args)!), context.args.optional('id'), 'A running service does it within two seconds.')
    }
  }
}
