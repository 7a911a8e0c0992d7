import { ConfigError, type Config } from '../config.ts'
import { defined } from '../lib/defined.ts'
import { explainFailure } from '../lib/failure.ts'
import type { ServiceOptions } from '../lib/identity.ts'
import type { UserRecord } from '../lib/records/user.ts'
import { hideCredentials } from '../lib/store/index.ts'
import { type BackupRecord, LAST_BACKUP } from '../lib/maintenance/last-backup.ts'
import { readAside } from '../lib/store/read-aside.ts'
import { type HeldCount, countHeld, describeHeld } from '../lib/upstreams/count-held.ts'
import { explainUnknown, listUnknown } from '../lib/variables.ts'
import type { WebhookRecord } from '../lib/webhooks/record.ts'
import { toggle } from './args.ts'
import { type Planned, checkDatabase, migrateDatabase } from './check-database.ts'
import { type Commands, type Surroundings, YES } from './command.ts'
import { fold, writeReport } from './config-report.ts'
import { confirm } from './confirm.ts'
import { checkExposure } from './process/exposure.ts'
import { checkMetricsPorts } from './process/metrics-ports.ts'
import { SERVE_FLAGS, configure, listFlagged } from './process/serve-flags.ts'
import { explainUnknownTexts } from './process/strict.ts'
import { toAddresses } from './service-url.ts'
import { listSettings } from './settings.ts'

/** The people whom upstreams with `only` claim, without a change of the database; undefined where there is no such upstream. */
async function countPeople ({ database, upstreams = [], roles }: ServiceOptions): Promise<HeldCount | undefined> {
  if (database === 'sqlite::memory:' || !upstreams.some(({ only }) => only === true)) return undefined
  return await countHeld(readAside<UserRecord>(database, 'users'), upstreams, roles)
}

/** When the last backup was made that the database knows of. */
async function readLastBackup (database: string): Promise<string | undefined> {
  for await (const batch of readAside<BackupRecord>(database, 'meta')) {
    const found = batch.find(({ id }) => id === LAST_BACKUP)
    if (found !== undefined) return found.made_at
  }
}

async function readWebhooks (database: string): Promise<WebhookRecord[]> {
  return (await Array.fromAsync(readAside<WebhookRecord>(database, 'webhooks'))).flat()
}

/** What the first start changes, as a sentence. */
function describeMigration ({ from, to, reads, shuts_out_earlier: isShut, writes_stop_for: seconds }: Planned): string {
  return [
    ...(from < to ? [`layout ${from} becomes ${to}`] : []),
    ...(reads.length > 0 ? [`reads every record of ${reads.join(' and ')}`] : []),
    ...(isShut ? ['processes of earlier releases can no longer write'] : []),
    ...(from === to && reads.length === 0 ? ['adds tables or indexes'] : []),
    ...(seconds > 0 ? [`nobody can write for ${seconds} s`] : [])
  ].join('; ')
}

/** What the database and the keys are, as far as they could be read. */
interface Found {
  database?: string
  key_id?: string
  further_key_ids?: string[]
  made_by_first_start?: string[]
  migrated_by_first_start?: Planned
  only?: HeldCount
  webhooks?: WebhookRecord[]
  backedUpAt?: string
}

/** Looks at the database and the keys. It changes nothing, unless it migrates. */
async function find (options: Config['services'], isMigrated: boolean, warn: (message: string) => void): Promise<Found> {
  if (isMigrated) await migrateDatabase(options)
  const only = await countPeople(options)
  if (only !== undefined) for (const { text } of describeHeld(only)) warn(text)
  const { exists, box, migration } = await checkDatabase(options, warn)
  const missing = [...(exists ? [] : ['database']), ...(box === undefined ? ['secret key'] : [])]
  return defined({
    database: hideCredentials(options.database),
    key_id: box?.keyId,
    further_key_ids: box !== undefined && box.keyIds.length > 1 ? box.keyIds.slice(1) : undefined,
    made_by_first_start: missing.length > 0 ? missing : undefined,
    migrated_by_first_start: migration,
    only,
    ...(exists && options.database !== 'sqlite::memory:' && {
      webhooks: await readWebhooks(options.database), backedUpAt: await readLastBackup(options.database)
    })
  })
}

/** The same as one text for each field. */
function describeFound ({ database, key_id, further_key_ids, made_by_first_start, migrated_by_first_start: migration, only }: Found): Record<string, string> {
  return defined({
    database,
    key_id,
    further_key_ids: further_key_ids?.join(' '),
    made_by_first_start: made_by_first_start?.join(', '),
    migrated_by_first_start: migration && describeMigration(migration),
    only: only && `${only.unproved} unproved, ${only.unreachable} unreachable, ${only.undone} undone`
  })
}

/** A message as lines of a terminal, beside the name of the program. */
const toTerminal = ({ isTTY }: Surroundings['stderr'], text: string): string[] =>
  isTTY === true ? fold(text, 60).map((line, index) => index === 0 ? line : `  ${line}`) : [text]

/** Runs a check of the start. @returns its result, or undefined after a problem */
async function attempt<T> (problems: string[], check: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await check()
  } catch (error) {
    problems.push(...error instanceof ConfigError ? error.problems : [explainFailure(error)])
  }
}

export const configCommands: Commands = {
  'config check': {
    summary: 'Check the configuration, the database and the secret key, show every setting with its source, and say what works. Changes ' +
      'nothing and stops no process: of a database of an earlier release it says what the first start will change.',
    example: 'config check --strict',
    flags: {
      ...SERVE_FLAGS,
      migrate: toggle('Also migrate the database, as the first start does. Stop the processes of the earlier release first.'),
      yes: YES
    },
    async runAlone (surroundings, env) {
      const { args, stdout, stderr, json } = surroundings
      const [{ checkStart }, { judgeCapabilities }, { judgeNext }, { toJudged }] = await Promise.all([
        import('./process/check-start.ts'), import('../lib/status/capabilities.ts'), import('../lib/status/next-steps.ts'), import('../plugins/status.ts')
      ])
      const unknown = listUnknown(env)
      const unknownLines = unknown.map(explainUnknown)
      const problems = args.has('strict') ? [...unknownLines] : []
      const warnings: string[] = []
      const warn = (message: string) => {
        warnings.push(message)
        stderr.write(`${toTerminal(stderr, `fastify-identity: warning: ${message}`).join('\n')}\n`)
      }
      const config = await attempt(problems, () => configure(args, env))
      config?.warnings.filter((warning) => !problems.includes(warning)).forEach(warn)
      const start = config && await attempt(problems, () => checkStart(config))
      const unknownTexts = start && args.has('strict') ? start.unknownTexts : []
      if (start && unknownTexts.length > 0) problems.push(...explainUnknownTexts(start))
      start?.warnings.filter((warning) => !unknownTexts.includes(warning)).forEach(warn)
      if (config !== undefined) {
        await attempt(problems, () => checkExposure(config))
        await attempt(problems, () => checkMetricsPorts(config))
      }
      const isMigrated = args.has('migrate') && problems.length === 0
      if (isMigrated) await confirm(surroundings, 'Migrate the database? Processes of an earlier release can then no longer use it.')
      const found = config && await attempt(problems, async () => await find(config.services, isMigrated, warn))
      const { webhooks, backedUpAt, ...rest } = found ?? {}
      const settings = listSettings(env, { flagged: listFlagged(args), config, problems })
      const judged = config && start && { ...toJudged(start, toAddresses(config)), webhooks, backedUpAt }
      const capabilities = judgeCapabilities(judged, problems)
      const next = judged === undefined || problems.length > 0 ? [] : judgeNext(judged)
      stdout.write(json
        ? `${JSON.stringify({ problems, warnings, unknown_variables: unknown, settings, capabilities, next, ...rest })}\n`
        : writeReport({ settings, capabilities, next, found: describeFound(rest) }, stdout.isTTY === true))
      if (problems.length > 0) throw new ConfigError(problems.flatMap((problem) => toTerminal(stderr, problem)))
    }
  }
}
