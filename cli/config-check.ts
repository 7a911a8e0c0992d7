import { createSecretBox } from '../lib/crypto/secrets.ts'
import { resolveSecretKeys } from '../lib/crypto/secret-key.ts'
import { openServices } from '../lib/identity.ts'
import { hideCredentials } from '../lib/store/index.ts'
import type { Commands } from './command.ts'
import { printRecord } from './output.ts'
import { checkExposure } from './process/exposure.ts'

export const configCommands: Commands = {
  'config check': {
    summary: 'Read the configuration, open the database with the secret key, and say what the service would use. Migrates a database of an earlier release, as a start does.',
    flags: {},
    async runConfigured (surroundings, config) {
      checkExposure(config)
      const { host, port, workers, oidc, logLevel, services: options } = config
      const box = createSecretBox(...await resolveSecretKeys(options, async () => true))
      const services = await openServices({ ...options, createDatabase: false, dryRun: true })
      await services.close()
      printRecord(surroundings, {
        database: hideCredentials(options.database),
        key_id: box.keyId,
        ...(box.keyIds.length > 1 && { further_key_ids: box.keyIds.slice(1) }),
        issuer: oidc === false ? 'none' : oidc.issuer ?? 'the address it listens on',
        address: `${host}:${port}`,
        workers,
        log_level: logLevel,
        production: options.production
      })
    }
  }
}
