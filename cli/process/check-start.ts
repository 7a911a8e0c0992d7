import { toIdentityOptions } from '../../app.ts'
import { ConfigError, type Config } from '../../config.ts'
import { findVariable } from '../../lib/variables.ts'
import { type Prepared, prepareIdentity } from '../../plugins/prepare.ts'

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
