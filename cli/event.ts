import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Event, EventListQuery } from '../schemas/event.ts'
import { defined } from '../lib/defined.ts'
import { EVENT_COLUMNS, toEventRow } from '../lib/events/columns.ts'
import { coversType } from '../lib/events/types.ts'
import { toCsv } from '../lib/lists/csv.ts'
import { mapBatches } from '../lib/lists/cursor.ts'
import { required, toggle, UsageError, value } from './args.ts'
import type { Commands, Context } from './command.ts'
import { writeNamedFile } from './export.ts'
import { wrap } from './look.ts'
import { printList, toCells } from './output.ts'

/** Milliseconds of one wait for events. Before each wait `event list --follow` publishes pending events, because no service may be running. */
const WAIT = 1_000

/** An event with the account that it is about, for people. */
type Shown = Event & { account?: string | undefined }

const COLUMNS = {
  TIME: 'time',
  TYPE: 'type',
  OUTCOME: 'outcome',
  ACCOUNT: 'account',
  // The code of the mail server says more than that it has refused.
  REASON: ({ reason, failure = reason }: Event) => failure,
  ADDRESS: 'address',
  COUNT: 'count',
  TARGET: ({ target }: Event) => `${target.kind} ${target.id}`,
  BY: ({ actor }: Event) => [actor.via, actor.user_id, actor.client_id].filter(Boolean).join(' '),
  CHANGED: ({ changed = [], granted = [], removed = [] }: Event) =>
    [...changed, ...granted.map((role) => `+${role}`), ...removed.map((role) => `-${role}`)].join(' ')
} as const

/** `--json` has the whole ids. In 80 columns there is who it was, and why. */
const HINTS = { short: ['TARGET', 'BY'], keep: ['TYPE', 'REASON'], leave: ['TARGET', 'OUTCOME', 'BY', 'CHANGED', 'COUNT'] }

const FILTERS = {
  type: value('TYPE', 'Only events of this type, or of a kind such as user.*.'),
  user: value('ACCOUNT', 'Only events about this account; for a deleted account, its id.'),
  client: value('ID', 'Only events about this client.'),
  reason: value('REASON', 'Only events with this reason, such as wrong_password.'),
  from: value('TIME', 'Only events at or after this time (RFC 3339).'),
  to: value('TIME', 'Only events before this time (RFC 3339).')
} as const

async function readQuery ({ args, services: { users } }: Context): Promise<EventListQuery> {
  const filters = Object.keys(FILTERS).map((name) => [name, args.optional(name)] as const)
  const account = args.optional('user')
  // A user who was deleted has an id only.
  const user = account === undefined ? undefined : (await users.getByAccount(account))?.user_id ?? account
  return defined({ ...Object.fromEntries(filters.filter(([, value]) => value !== undefined)), user })
}

const matches = (event: Event, { type, user, client, reason }: EventListQuery): boolean => (
  (!type || coversType(type, event.type)) && (!user || event.user_id === user) && (!client || event.client_id === client) &&
  (!reason || event.reason === reason))

/** The same events, each with its account; for a deleted one, its id. */
async function * withAccounts ({ services: { users } }: Context, batches: AsyncIterable<Event[]>): AsyncGenerator<Shown[]> {
  for await (const batch of batches) {
    const ids = new Set(batch.map(({ user_id }) => user_id).filter((id) => id !== undefined))
    const accounts = new Map(await Promise.all([...ids].map(async (id) => [id, (await users.get(id))?.account ?? id] as const)))
    yield batch.map((event) => ({ ...event, account: accounts.get(event.user_id ?? '') }))
  }
}

/** Yields the events from now on, until the command is stopped. */
async function * follow ({ services: { events }, signal }: Context, query: EventListQuery): AsyncGenerator<Event[]> {
  // Reads once more after the stop, for the events before it.
  for (let after = await events.last(), isLast = false; !isLast;) {
    isLast = signal.aborted
    await events.flush()
    const read = await events.read({ after })
    const found = read.events.filter((event) => matches(event, query))
    if (found.length > 0) yield found
    if (read.events.length === 0) await events.wait(after, { timeout: WAIT, signal })
    after = read.after
  }
}

/** Prints events as they happen, until the command is stopped or the program that reads its output ends. */
async function printFollowed (context: Context, query: EventListQuery): Promise<void> {
  const { stdout, json, look: { width } } = context
  const toLine = (event: Shown) => {
    const line = toCells(event, COLUMNS).join('  ')
    return width === undefined ? line : wrap(line, { width, indent: 2, start: 0 })
  }
  const reader = new AbortController()
  stdout.once('error', () => reader.abort())
  const signal = AbortSignal.any([context.signal, reader.signal])
  const followed = follow({ ...context, signal }, query)
  const batches: AsyncIterable<Shown[]> = json ? followed : withAccounts(context, followed)
  for await (const batch of batches) {
    for (const event of batch) {
      const hasRoom = stdout.write(json ? `${JSON.stringify(event)}\n` : `${toLine(event)}\n`)
      if (!hasRoom && !signal.aborted) await once(stdout, 'drain', { signal }).catch(() => {})
    }
  }
  // The exit code says that a signal has stopped it.
  context.signal.throwIfAborted()
}

async function list (context: Context): Promise<void> {
  const { services: { events }, args } = context
  const query = await readQuery(context)
  if (args.has('follow')) {
    if (query.from !== undefined || query.to !== undefined) throw new UsageError('--follow: cannot be combined with --from and --to')
    await printFollowed(context, query)
    return
  }
  await events.flush()
  const batches = events.list({ ...query, limit: args.limit(100) })
  await printList<Shown>(context, context.json ? batches : withAccounts(context, batches), COLUMNS, HINTS)
}

async function * toLines (batches: AsyncIterable<Event[]>): AsyncGenerator<string> {
  for await (const batch of batches) yield batch.map((event) => `${JSON.stringify(event)}\n`).join('')
}

async function exportEvents (context: Context): Promise<void> {
  const { services: { events }, args, stdout, signal } = context
  await events.flush()
  const file = args.required('file')
  const batches = events.list({ ...await readQuery(context), sort: 'time:asc', limit: 0 })
  const lines = args.has('csv')
    ? toCsv(mapBatches(batches, toEventRow), { escapeFormulae: true, columns: EVENT_COLUMNS, isRecord: () => true })
    : toLines(batches)
  const body = Readable.from(lines, { objectMode: false })
  if (file === '-') await pipeline(body, stdout, { end: false, signal })
  else await writeNamedFile(file, body, signal)
}

export const eventCommands: Commands = {
  'event list': {
    summary: 'List events, newest first.',
    example: 'event list --user ann@example.com',
    flags: {
      ...FILTERS,
      limit: value('N', 'Maximum number; 0 for all. Default 100.'),
      follow: toggle('Print events as they happen, from now on.')
    },
    creates: false,
    run: list
  },

  'event export': {
    summary: 'Export events to a file, oldest first. As lines of JSON, or as CSV.',
    example: 'event export --file events.ndjson --from 2026-01-01T00:00:00Z',
    flags: {
      ...FILTERS,
      file: required('FILE', 'The file; - is stdout.'),
      csv: toggle('Write CSV.')
    },
    creates: false,
    run: exportEvents
  }
}
