import { existsSync } from 'node:fs'
import { createSecretBox } from '../lib/crypto/secrets.ts'
import { findKeyFile, resolveSecretKeys } from '../lib/crypto/secret-key.ts'
import { type ServiceOptions, openServices } from '../lib/identity.ts'
import { hideCredentials } from '../lib/store/index.ts'
import { NoDatabaseError } from '../lib/store/port.ts'
import type { Commands } from './command.ts'
import { checkExposure } from './process/exposure.ts'

/**
 * Opens the database as a start does, and makes nothing.
 * @param warn receives what people have from settings that are gone
 * @returns whether there is one; without one, a start with these options makes it
 * @throws as openServices, and where there is no database and a start makes none
 */
async function openExisting (options: ServiceOptions, warn: (message: string) => void): Promise<boolean> {
  try {
    const services = await openServices({ ...options, createDatabase: false, dryRun: true })
    try {
      const { countLeft } = await import('../lib/upstreams/role-changes.ts')
      for (const { upstream, role, count } of await countLeft(services.store, options.upstreams ?? [])) {
        warn(`the role ${role} is in no map of the upstream ${upstream} any more, and ${count} ${count === 1 ? 'person keeps' : 'people keep'} it`)
      }
    } finally {
      await services.close()
    }
    return true
  } catch (error) {
    const isMissing = [error, (error as Error).cause].some((one) => one instanceof NoDatabaseError)
    if (isMissing && (options.createDatabase ?? !options.production)) return false
    throw error
  }
}

export const configCommands: Commands = {
  'config check': {
    summary: 'Check the configuration, the database and the secret key, and show the settings that the service would use. Creates ' +
      'nothing, but migrates a database of an earlier release, as a start does.',
    flags: {},
    async runConfigured ({ stderr, json }, config) {
      checkExposure(config)
      const { checkStart } = await import('./process/check-start.ts')
      const warn = (message: string) => { stderr.write(`fastify-identity: warning: ${message}\n`) }
      checkStart(config).forEach(warn)
      const { host, port, workers, oidc, logLevel, services: options } = config
      const { factors = 'optional' } = options
      const exists = options.database === 'sqlite::memory:' || await openExisting(options, warn)
      const keyFile = findKeyFile(options)
      const isNew = keyFile !== null && !existsSync(keyFile)
      const box = isNew ? undefined : createSecretBox(...await resolveSecretKeys(options, async () => true))
      const missing = [...(exists ? [] : ['database']), ...(isNew ? ['secret key'] : [])]
      return {
        database: hideCredentials(options.database),
        ...(box !== undefined && { key_id: box.keyId }),
        ...(box !== undefined && box.keyIds.length > 1 && { further_key_ids: box.keyIds.slice(1) }),
        ...(missing.length > 0 && { made_by_first_start: json ? missing : missing.join(', ') }),
        issuer: oidc === false ? 'none' : oidc.issuer ?? 'the address it listens on',
        address: `${host}:${port}`,
        workers,
        log_level: logLevel,
        production: options.production,
        factors: typeof factors === 'string' ? factors : json ? factors : `optional, required for ${factors.roles.join(', ')}`,
        manager_roles: options.managerRoles ?? 'every role but the admin and service roles: set IDENTITY_MANAGER_ROLES to narrow this'
      }
    }
  }
}
