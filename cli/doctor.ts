import { existsSync } from 'node:fs'
import { link } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import { defined } from '../lib/defined.ts'
import type { Finding } from '../lib/maintenance/doctor.ts'
import { IdentityError } from '../lib/errors.ts'
import { explainFailure } from '../lib/failure.ts'
import { type Services, openServices } from '../lib/identity.ts'
import type { EngineReport } from '../lib/store/engine-report.ts'
import { OutdatedError } from '../lib/store/port.ts'
import { LAYOUT } from '../lib/store/state.ts'
import { value } from './args.ts'
import type { Commands, Surroundings } from './command.ts'
import { nameFile } from './file-error.ts'
import { createReport, reportWhile } from './progress.ts'

interface Examination {
  engine?: EngineReport
  services?: Services
  findings: Finding[]
  /** What a service removes by itself. */
  notes: Finding[]
}

type Find = (check: string, message: string, ids?: string[]) => void

type ExamineContext = Pick<Surroundings, 'stderr' | 'json' | 'signal'>

/** What the engine says of the database. A damage is a finding. */
async function inspectEngine (database: string, context: ExamineContext, find: Find): Promise<EngineReport | undefined> {
  const { signal } = context
  const { inspectDatabase } = await import('../lib/store/inspect.ts')
  try {
    const report = await reportWhile(context, 'check integrity', async () => await inspectDatabase(database, { signal }))
    for (const line of report.broken) find('integrity', line)
    return report
  } catch (error) {
    signal.throwIfAborted()
    find('integrity', explainFailure(error))
  }
}

/** Opens the database without a change to it. Undefined: a finding says why not. */
async function openUnchanged (options: Config['services'], engine: EngineReport | undefined, find: Find): Promise<Services | undefined> {
  if (engine === undefined) return
  const { missing, unknown } = engine
  const listTables = () => {
    for (const name of missing) find('collections', `${name}: is missing`)
    for (const name of unknown) find('collections', `${name}: is not of this release`)
  }
  try {
    const services = await openServices({ ...options, createDatabase: false, dryRun: true })
    listTables()
    return services
  } catch (error) {
    const outdated = [error, (error as Error).cause].find((one) => one instanceof OutdatedError)
    // A database of an earlier release has its own tables, so none is missing.
    if (outdated === undefined || outdated.state.version >= LAYOUT.version) listTables()
    if (missing.length > 0 && outdated?.state.version === LAYOUT.version) return
    if (outdated !== undefined) find('layout', outdated.message)
    else find('integrity', `the database cannot be opened: ${explainFailure(error)}`)
  }
}

/** Checks the database as the engine sees it, opens it without a change, and checks its records. `report` gets each finding at once. */
async function examineAll (
  { services: options }: Config,
  context: ExamineContext,
  report: (finding: Finding) => void,
  use: (examination: Examination) => Promise<void>
): Promise<void> {
  const examination: Examination = { findings: [], notes: [] }
  const find: Find = (check, message, ids = []) => {
    const finding = { check, message, ids }
    const list = check === 'remains' ? examination.notes : examination.findings
    list.push(finding)
    report(finding)
  }
  const { signal } = context
  examination.engine = await inspectEngine(options.database, context, find)
  signal.throwIfAborted()
  examination.services = await openUnchanged(options, examination.engine, find)
  try {
    if (examination.services !== undefined) {
      const { examine } = await import('../lib/maintenance/doctor.ts')
      const found = examine(examination.services.store, { now: Date.now, signal, onProgress: createReport(context) })
      for await (const { check, message, ids } of found) find(check, message, ids)
      for (const { key_id, state } of await examination.services.sealing.status()) {
        if (state === 'missing') find('keys', `the secret key with the id ${key_id} is missing`)
      }
    }
    await use(examination)
  } finally {
    await examination.services?.close()
  }
}

export const doctorCommands: Commands = {
  doctor: {
    summary: 'Check the integrity of the database. Also the references between its records. Exit code 1 if there are findings.',
    example: 'doctor --bundle support.json',
    flags: { bundle: value('FILE', 'Also write a support bundle without secrets and personal data; an existing file is not replaced.') },
    async runConfigured (surroundings, config) {
      const { stdout, json, args } = surroundings
      if (config.services.database === 'sqlite::memory:') throw new Error('DATABASE_URL: a store in memory has no database')
      const given = args.optional('bundle')
      const file = given === undefined ? undefined : resolve(given)
      if (file !== undefined && existsSync(file)) throw new IdentityError('ErrParam', `${nameFile(file)} exists already`)
      const print = ({ check, message, ids }: Finding) => {
        if (!json) stdout.write(`${check}: ${message}${ids.length === 0 ? '' : ` (${ids.join(', ')})`}\n`)
      }
      let count = 0
      await examineAll(config, surroundings, print, async (examination) => {
        const { findings, notes } = examination
        count = findings.length
        if (file !== undefined) {
          const [{ createBundle }, { writeWholeFile }] = await Promise.all([import('../lib/maintenance/support-bundle.ts'), import('../lib/whole-file.ts')])
          const bundle = await createBundle({ services: examination.services, engine: examination.engine, config, findings })
          await writeWholeFile(file, (draft) => draft.writeFile(`${JSON.stringify(bundle, null, 2)}\n`), link)
        }
        if (json) stdout.write(`${JSON.stringify(defined({ findings, notes: notes.length > 0 ? notes : undefined, bundle: file }))}\n`)
        else if (count === 0) stdout.write('nothing was found\n')
      })
      if (count > 0) throw new Error(`${count} finding${count === 1 ? '' : 's'}`)
    }
  }
}
