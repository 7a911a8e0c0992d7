import { existsSync } from 'node:fs'
import { link } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import type { Finding } from '../lib/maintenance/doctor.ts'
import { paramError } from '../lib/errors.ts'
import { explainFailure } from '../lib/failure.ts'
import { type Services, openServices } from '../lib/identity.ts'
import type { EngineReport } from '../lib/store/inspect.ts'
import { value } from './args.ts'
import type { Commands } from './command.ts'

interface Examination {
  engine?: EngineReport
  services?: Services
  findings: Finding[]
}

/** Checks the database as the engine sees it, opens it as a start does, and checks its records. `report` gets each finding at once. */
async function examineAll ({ services: options }: Config, report: (finding: Finding) => void, use: (examination: Examination) => Promise<void>): Promise<void> {
  const examination: Examination = { findings: [] }
  const find = (check: string, message: string, ids: string[] = []) => {
    const finding = { check, message, ids }
    examination.findings.push(finding)
    report(finding)
  }
  const { inspectDatabase } = await import('../lib/store/inspect.ts')
  try {
    examination.engine = await inspectDatabase(options.database)
    for (const line of examination.engine.broken) find('integrity', line)
    for (const name of examination.engine.missing) find('collections', `${name}: is missing`)
    for (const name of examination.engine.unknown) find('collections', `${name}: is not of this release`)
  } catch (error) {
    find('integrity', explainFailure(error))
  }
  try {
    // A start with these options makes nothing and changes nothing. A missing table is a finding above.
    if ((examination.engine?.missing.length ?? 1) === 0) examination.services = await openServices({ ...options, createDatabase: false, dryRun: true })
  } catch (error) {
    find('integrity', `the database cannot be opened: ${explainFailure(error)}`)
  }
  try {
    if (examination.services !== undefined) {
      const { examine } = await import('../lib/maintenance/doctor.ts')
      for await (const { check, message, ids } of examine(examination.services.store, Date.now)) find(check, message, ids)
      for (const { key_id, state } of await examination.services.sealing.status()) if (state === 'missing') find('keys', `the secret key with the id ${key_id} is missing`)
    }
    await use(examination)
  } finally {
    await examination.services?.close()
  }
}

export const doctorCommands: Commands = {
  doctor: {
    summary: 'Check the integrity of the database and the references between its records. Exit code 1 if there are findings.',
    flags: { bundle: value('FILE', 'Also write a support bundle without secrets and personal data; an existing file is not replaced.') },
    async runConfigured ({ stdout, json, args }, config) {
      if (config.services.database === 'sqlite::memory:') throw new Error('DATABASE_URL: a store in memory has no database')
      const given = args.optional('bundle')
      const file = given === undefined ? undefined : resolve(given)
      if (file !== undefined && existsSync(file)) throw paramError('bundle', 'exists already')
      const print = ({ check, message, ids }: Finding) => {
        if (!json) stdout.write(`${check}: ${message}${ids.length === 0 ? '' : ` (${ids.join(', ')})`}\n`)
      }
      let count = 0
      await examineAll(config, print, async (examination) => {
        const { findings } = examination
        count = findings.length
        if (file !== undefined) {
          const [{ createBundle }, { writeWholeFile }] = await Promise.all([import('../lib/maintenance/support-bundle.ts'), import('../lib/whole-file.ts')])
          const bundle = await createBundle({ services: examination.services, engine: examination.engine, config, findings })
          await writeWholeFile(file, (draft) => draft.writeFile(`${JSON.stringify(bundle, null, 2)}\n`), link)
        }
        if (json) stdout.write(`${JSON.stringify({ findings, ...(file !== undefined && { bundle: file }) })}\n`)
        else if (count === 0) stdout.write('nothing was found\n')
      })
      if (count > 0) throw new Error(`${count} finding${count === 1 ? '' : 's'}`)
    }
  }
}
