import { existsSync } from 'node:fs'
import { SEAL_ID, type Seal, compareSecretKeys } from '../lib/crypto/seal.ts'
import { findKeyFile, resolveSecretKeys } from '../lib/crypto/secret-key.ts'
import { type SecretBox, createSecretBox } from '../lib/crypto/secrets.ts'
import { type ServiceOptions, openServices } from '../lib/identity.ts'
import { configureMigration } from '../lib/maintenance/migration.ts'
import { type Migration, planMigration } from '../lib/store/migrator.ts'
import { NoDatabaseError, OutdatedError } from '../lib/store/port.ts'
import { readAside } from '../lib/store/read-aside.ts'

/** What a start makes of a database, with the seconds for which nobody can write. */
export type Planned = Migration & { writes_stop_for: number }

/** What a start would find. */
export interface FoundDatabase {
  /** False: a start makes one. */
  exists: boolean
  /** Absent: no key is configured yet, and a start makes one. */
  box?: SecretBox | undefined
  /** What the start changes in the documents and tables. Absent: nothing. */
  migration?: Planned | undefined
}

/** Opens the database as a start does, and changes nothing. Resolves to what the start would change. */
async function openUnchanged (options: ServiceOptions, warn: (message: string) => void): Promise<Planned | undefined> {
  const services = await openServices({ ...options, createDatabase: false, dryRun: true })
  try {
    const { countLeft } = await import('../lib/upstreams/role-changes.ts')
    for (const { upstream, role, count } of await countLeft(services.store, options.upstreams ?? [])) {
      warn(`the role ${role} is in no map of the upstream ${upstream} any more, and ${count} ${count === 1 ? 'person keeps' : 'people keep'} it`)
    }
    const migration = planMigration((await services.store.state.read()).state, await configureMigration(options))
    return migration.reads.length === 0 ? undefined : { ...migration, writes_stop_for: 0 }
  } finally {
    await services.close()
  }
}

/** The record of the keys, of a database that is not opened. */
async function readSeal (database: string): Promise<Seal | undefined> {
  for await (const page of readAside<Seal>(database, 'meta')) {
    const seal = page.find(({ id }) => id === SEAL_ID)
    if (seal !== undefined) return seal
  }
}

/** Checks the keys of a database that only a migration makes usable. */
async function planOutdated (options: ServiceOptions, { state, delay }: OutdatedError): Promise<Planned> {
  const seal = await readSeal(options.database)
  const keys = await resolveSecretKeys(options, async () => seal !== undefined, () => {}, { dryRun: true })
  if (seal !== undefined) compareSecretKeys(seal, createSecretBox(...keys).keyIds, options)
  const migration = planMigration(state, await configureMigration(options))
  return { ...migration, writes_stop_for: migration.shuts_out_earlier ? delay / 1000 : 0 }
}

const findCause = <T extends Error> (error: unknown, kind: new (...args: never[]) => T): T | undefined =>
  [error, (error as Error).cause].find((one) => one instanceof kind) as T | undefined

async function look (options: ServiceOptions, warn: (message: string) => void): Promise<Pick<FoundDatabase, 'exists' | 'migration'>> {
  if (options.database === 'sqlite::memory:') return { exists: true }
  try {
    return { exists: true, migration: await openUnchanged(options, warn) }
  } catch (error) {
    const outdated = findCause(error, OutdatedError)
    if (outdated !== undefined) return { exists: true, migration: await planOutdated(options, outdated) }
    const isMade = findCause(error, NoDatabaseError) !== undefined && (options.createDatabase ?? !options.production)
    if (isMade) return { exists: false }
    throw error
  }
}

/**
 * Looks at the database and the keys as a start does, and changes nothing. A service may use the database meanwhile, also one of an
 * earlier release.
 * @param warn receives what people have from settings that are gone
 * @throws Error that says why a start would fail
 */
export async function checkDatabase (options: ServiceOptions, warn: (message: string) => void): Promise<FoundDatabase> {
  const found = await look(options, warn)
  const keyFile = findKeyFile(options)
  if (keyFile !== null && !existsSync(keyFile)) return found
  return { ...found, box: createSecretBox(...await resolveSecretKeys(options, async () => true)) }
}

/** Migrates the database as a start does. */
export async function migrateDatabase (options: ServiceOptions): Promise<void> {
  await (await openServices({ ...options, createDatabase: false })).close()
}
