import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import { findKeyFile, resolveSecretKeys } from '../lib/crypto/secret-key.ts'
import { createSecretBox } from '../lib/crypto/secrets.ts'
import { IdentityError } from '../lib/errors.ts'
import { explainFailure } from '../lib/failure.ts'
import { subject } from './args.ts'
import { type Commands, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { toCell } from './output.ts'

/** The path of the database file. Throws for a store without one. */
export async function findDatabase ({ services: { database } }: Config): Promise<string> {
  if (!database.startsWith('sqlite:')) throw new Error('DATABASE_URL: is not SQLite: use the tools of MongoDB, such as mongodump')
  if (database === 'sqlite::memory:') throw new Error('DATABASE_URL: a store in memory has no file')
  const { parsePath } = await import('../lib/store/sqlite.ts')
  return resolve(parsePath(database))
}

function describeKey (config: Config, keyId: string): string {
  const file = findKeyFile(config.services)
  return `Keep the secret key with the id ${keyId}, ${file === null ? 'which the environment configures' : `in ${file}`}, in another place. The backup is useless without it.`
}

/** Stores the time of a backup in the database. The backup before an upgrade must not migrate the database. */
async function keepTime (database: string, warn: (message: string) => void): Promise<void> {
  const [{ openStore }, { recordBackup }] = await Promise.all([import('../lib/store/index.ts'), import('../lib/maintenance/last-backup.ts')])
  try {
    const store = await openStore(database, { create: false, migrate: false })
    try {
      await recordBackup(store, Date.now)
    } finally {
      await store.close()
    }
  } catch (error) {
    warn(`the backup is good, but its time could not be recorded, so the metric of its age stays: ${explainFailure(error)}`)
  }
}

export const backupCommands: Commands = {
  backup: {
    summary: 'Back up the SQLite database. The service may keep running.',
    example: 'backup identity-backup.db',
    flags: { file: subject('FILE', 'The new file; an existing one is not replaced.') },
    async runConfigured ({ args, stderr, signal }, config) {
      const { backUp } = await import('../lib/maintenance/backup.ts')
      const file = resolve(args.required('file'))
      const { users, clients, keyId: key_id } = await backUp(await findDatabase(config), file, signal)
      await keepTime(config.services.database, (message) => { stderr.write(`fastify-identity: warning: ${message}\n`) })
      return [{ file, users, clients, key_id }, describeKey(config, key_id)]
    }
  },

  'backup record': {
    summary: 'Record that another tool has made a backup now. For the metric of its age and its alert, where mongodump or snapshots make the backups.',
    creates: false,
    example: 'backup record',
    flags: {},
    async run ({ services: { store } }) {
      const { recordBackup } = await import('../lib/maintenance/last-backup.ts')
      return { recorded_at: await recordBackup(store, Date.now) }
    }
  },

  restore: {
    summary: 'Restore a backup of the SQLite database. This ends all tokens and sessions. Stop the service first.',
    example: 'restore identity-backup.db',
    flags: { file: subject('FILE', 'The backup; it is only read.'), yes: YES },
    async runConfigured (surroundings, config) {
      const { args, signal } = surroundings
      const { restore } = await import('../lib/maintenance/backup.ts')
      const path = await findDatabase(config)
      // A missing key file is an error: a new key could not open the sealed secrets of the backup.
      const { keyIds } = createSecretBox(...await resolveSecretKeys(config.services, async () => true))
      const file = resolve(args.required('file'))
      if (!existsSync(file)) throw new IdentityError('ErrParam', `there is no file ${toCell(file)}`)
      await confirm(surroundings, `Replace the database ${toCell(path)} with this backup? All tokens and sessions end.`)
      const { users, clients, former } = await restore({ file, path, keyIds, now: Date.now, signal })
      return [{ database: path, users, clients, former }, 'Everybody has to sign in again.']
    }
  }
}
