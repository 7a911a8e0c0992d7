import { once } from 'node:events'
import { paramError } from '../lib/errors.ts'
import type { FormatOptions, HashConfig } from '../lib/import/formats/source.ts'
import { type ImportItem, type ImportOptions, type ImportReport, type ImportVerdict, NAME_PATTERN } from '../schemas/import.ts'
import { type Args, type Flag, UsageError, choice, repeated, toggle, value } from './args.ts'
import { OPERATOR, type Commands, type Context, type Result, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { type OpenFile, openFile, readText } from './import-file.ts'
import { printResult, toCell } from './output.ts'

/** Formats whose lines say themselves where a person comes from. */
const OWN = ['ndjson', 'csv']

/** What `user export --with-hashes` of another service of this kind wrote, which is believed as that service's own word. */
const KEPT = 'fastify-identity'

const FORMATS = ['auth0', 'firebase', 'keycloak', 'django', 'clerk', 'supabase', 'better-auth', ...OWN, KEPT]

/** Milliseconds between two lines of progress. */
const INTERVAL = 200
const BAR = 30

const FLAGS: Record<string, Flag> = {
  file: { ...value('FILE', 'The file to import; - is stdin. One that ends in .gz is unpacked.'), operand: true, or: 'withdraw' },
  from: choice('FORMAT', FORMATS, `Whose file it is: ${FORMATS.join(', ')}.`),
  source: value('NAME', 'The name under which the ids of the other system are kept. Absent: that of the format. ndjson and csv need it.'),
  'dry-run': toggle('Check every line, and write nothing.'),
  'on-conflict': choice('WHAT', ['skip', 'update', 'fail'], 'skip, update or fail: what to do with people who are here already. Default skip.'),
  'trust-emails': toggle('Believe addresses that the other system calls verified.'),
  'allow-roles': toggle('Also give the roles of administrators, managers and services.'),
  'allow-weak': toggle('Also take hashes of one round of MD5 or SHA-1.'),
  'without-factors': toggle('Leave out 2FA methods that cannot be taken over, instead of refusing the people who have them.'),
  lazy: toggle('Mark people without a password: at their first sign-in your old system is asked.'),
  again: toggle('Bring people in again who were deleted here. Without it their lines are refused as long as events are kept.'),
  issuer: repeated('NAME=URL', 'The issuer of identities at a provider that the file calls NAME'),
  'hash-config': value('FILE', 'The password hash parameters of a Firebase project, as its console shows them.'),
  identity: value('FILE', 'The identity file of age that opens a sealed file of user export.'),
  withdraw: value('RUN', 'Instead: remove the people of this run who never signed in.'),
  yes: YES
}

function readSource (args: Args, from: string): string {
  const source = args.optional('source')
  if (source === undefined && OWN.includes(from)) throw new UsageError(`--source: is required with --from ${from}`)
  if (source !== undefined && !new RegExp(NAME_PATTERN).test(source)) throw new UsageError("--source: must be letters, digits, '.', '_' and '-'")
  return source ?? from
}

function readIssuers (args: Args): Record<string, string> {
  const issuers = args.all('issuer').map((text) => {
    const at = text.indexOf('=')
    if (at < 1 || !/^https?:$/.test(URL.parse(text.slice(at + 1))?.protocol ?? '')) throw new UsageError('--issuer: must be NAME=URL')
    return [text.slice(0, at), text.slice(at + 1)]
  })
  return Object.fromEntries(issuers) as Record<string, string>
}

async function readConfig (args: Args): Promise<HashConfig | undefined> {
  const file = args.optional('hash-config')
  if (file === undefined) return undefined
  const { readHashConfig } = await import('../lib/import/formats/hash-config.ts')
  const config = readHashConfig(await readText(file))
  if (typeof config === 'string') throw paramError('hash_config', `has no ${config}`)
  return config
}

function readOptions (args: Args, from: string): ImportOptions {
  const onConflict = (args.optional('on-conflict') ?? 'skip') as ImportOptions['onConflict']
  return {
    source: readSource(args, from),
    kept: from === KEPT,
    onConflict,
    dryRun: args.has('dry-run'),
    trustEmails: args.has('trust-emails'),
    allowRoles: args.has('allow-roles'),
    allowWeak: args.has('allow-weak'),
    withoutFactors: args.has('without-factors'),
    lazy: args.has('lazy'),
    again: args.has('again')
  }
}

/** Passes the lines on until the command is stopped, so that the run ends after a whole line. */
async function * untilStopped (groups: AsyncIterable<ImportItem[]>, signal: AbortSignal): AsyncGenerator<ImportItem[]> {
  try {
    for await (const group of groups) {
      if (signal.aborted) return
      yield group
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Shows the progress on a terminal. @returns a function that removes it, so that a line can be printed there */
function createProgress ({ stderr, json }: Context, report: ImportReport, { getShare }: OpenFile) {
  const isShown = stderr.isTTY === true && !json
  const begin = performance.now()
  let last = begin
  return {
    show (): void {
      const now = performance.now()
      if (!isShown || now - last < INTERVAL) return
      last = now
      const lines = report.created + report.updated + report.same + report.refused
      const share = getShare()
      const bar = share === undefined ? '' : `[${'#'.repeat(Math.floor(share * BAR)).padEnd(BAR)}] ${Math.floor(share * 100)}%  `
      stderr.write(`\r\x1b[K${bar}${lines} lines, ${Math.round(lines / (now - begin) * 1000)} a second`)
    },
    clear: () => { if (isShown) stderr.write('\r\x1b[K') }
  }
}

/** The file has chosen the names of its fields. */
const describe = ({ line, field, reason }: ImportVerdict): string => `${toCell(`${line}: ${field === undefined ? '' : `${field}: `}${reason}`)}\n`

async function printVerdicts (context: Context, verdicts: AsyncIterable<ImportVerdict[]>, progress: ReturnType<typeof createProgress>): Promise<void> {
  const { stdout, json, signal } = context
  for await (const group of verdicts) {
    const shown = json ? group.map((verdict) => `${JSON.stringify(verdict)}\n`) : group.filter(({ result }) => result === 'refused').map(describe)
    if (shown.length > 0) {
      progress.clear()
      if (!stdout.write(shown.join('')) && !signal.aborted) await once(stdout, 'drain', { signal }).catch(() => {})
    }
    progress.show()
  }
  progress.clear()
}

const toText = (counts: Record<string, number>): string | undefined =>
  Object.entries(counts).map(([name, count]) => `${name} ${count}`).join(', ') || undefined

/** The report, for people. */
function showReport ({ refusals, dropped, schemes, sign_in_ms: time, ...counts }: ImportReport): object {
  const people = Object.values(schemes).reduce((sum, count) => sum + count, 0)
  return {
    ...counts,
    refused_because_of: toText(refusals),
    dropped: toText(dropped),
    password_hashes: toText(schemes),
    sign_in: people === 0 ? undefined : `${Math.round(time / people)} ms of one thread on average, at the first sign-in of each person`
  }
}

/** The bytes of the file: opened if it is sealed, which only an export of this service is. */
async function readFileOf (args: Args, { chunks }: OpenFile, kept: boolean): Promise<AsyncIterable<Buffer>> {
  const file = args.optional('identity')
  if (!kept && file !== undefined) throw new UsageError(`--identity: is for --from ${KEPT}`)
  if (!kept) return chunks
  const identity = file === undefined ? undefined : await readText(file)
  const { openSealed } = await import('../lib/export/seal.ts')
  return openSealed(chunks, identity)
}

/** `user import FILE`: reads the file line by line, and prints the verdicts meanwhile. */
async function importFile (context: Context): Promise<void> {
  const { services: { imports }, args, json, stdout, stderr, signal } = context
  const from = args.optional('from')
  if (from === undefined) throw new UsageError(`--from: is required: one of ${FORMATS.join(', ')}`)
  const options = readOptions(args, from)
  const format: FormatOptions = {
    source: options.source, withoutFactors: args.has('without-factors'), issuers: readIssuers(args), hashConfig: await readConfig(args)
  }
  const { READERS } = await import('../lib/import/formats/index.ts')
  const reader = new AbortController()
  stdout.once('error', () => reader.abort())
  const stopped = AbortSignal.any([signal, reader.signal])
  const file = await openFile(args.required('file'), { ...context, signal: stopped })
  const chunks = await readFileOf(args, file, options.kept === true)
  const { report, verdicts } = await imports.importUsers(untilStopped(READERS[from]!(chunks, format), stopped), options, OPERATOR)
  await printVerdicts({ ...context, signal: stopped }, verdicts, createProgress(context, report, file))
  if (json) stdout.write(`${JSON.stringify({ report })}\n`)
  else printResult(context, [showReport(report), options.dryRun === true ? 'Nothing was written.' : undefined])
  if (signal.aborted) stderr.write('fastify-identity: stopped after a whole line; the same command goes on, and calls whoever is here the same\n')
  signal.throwIfAborted()
  if (report.refused > 0) throw new Error(`${report.refused} ${report.refused === 1 ? 'line was' : 'lines were'} refused`)
}

/** `user import --withdraw`: removes the people of a run, a batch at a time. */
async function withdraw (context: Context): Promise<Result> {
  const { services: { imports }, args, stderr, signal } = context
  const run = args.required('withdraw')
  await confirm(context, `Remove the people of the run ${toCell(run)} who never signed in?`)
  const counts = { removed: 0, kept: 0 }
  for await (const batch of imports.withdraw(run, OPERATOR)) {
    for (const { result } of batch) counts[result]++
    if (signal.aborted) stderr.write('fastify-identity: stopped; the same command goes on\n')
    signal.throwIfAborted()
  }
  return { run, ...counts }
}

export const importCommands: Commands = {
  'user import': {
    summary: 'Import users from another system. Takes over their password hashes. Exit code 1 if lines were refused.',
    example: 'user import users.json --from keycloak --dry-run',
    flags: FLAGS,
    creates: (args) => args.has('dry-run') ? false : undefined,
    async run (context) {
      return context.args.optional('withdraw') === undefined ? await importFile(context) : await withdraw(context)
    }
  }
}
