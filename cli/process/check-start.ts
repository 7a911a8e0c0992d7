import { toIdentityOptions } from '../../app.ts'
import { ConfigError, type Config } from '../../config.ts'
import { type Prepared, prepareIdentity } from '../../plugins/prepare.ts'
import { EnvironmentSchema } from '../../schemas/config.ts'

/** The variable that sets an option of the plugin: `oidc.accent` is IDENTITY_ACCENT. Undefined where none does. */
export function findVariable (option: string): string | undefined {
  if (option === 'database') return 'DATABASE_URL'
  if (option.startsWith('upstreams')) return 'IDENTITY_UPSTREAMS_FILE'
  if (option === 'console') return 'IDENTITY_ADMIN_PATH'
  if (option === 'migrate.secret') return 'IDENTITY_MIGRATE_SECRET_FILE'
  const words = option.replace(/^oidc\./, '').replace(/^roles\./, 'role.').replace(/[A-Z]/g, (letter) => `_${letter}`)
  const name = `IDENTITY_${words.replaceAll('.', '_').toUpperCase()}`
  return Object.hasOwn(EnvironmentSchema.properties, name) ? name : undefined
}

/** The error of a wrong option as one that names its variable. Any other error stays as it is. */
function nameVariable (error: unknown): unknown {
  const { message } = error as Error
  const [, option = '', problem = ''] = /^option ([\w.]+): (.*)$/s.exec(message) ?? []
  const name = findVariable(option)
  return name === undefined ? error : new ConfigError([`${name}: ${problem}`])
}

/**
 * Checks what the start checks beyond the variables themselves, such as the contrast of a colour and the file of the logo. Opens
 * nothing.
 * @returns what the start opens the services with
 * @throws ConfigError that names the variable
 */
export function checkStart (config: Config): Prepared {
  try {
    return prepareIdentity(toIdentityOptions(config))
  } catch (error) {
    throw nameVariable(error)
  }
}
