import { ConfigError, readConfig, type Config } from '../../config.ts'
import type { Variables } from '../../lib/variables.ts'
import type { Args, Flag } from '../args.ts'

/** The flags of `serve`. All but --strict stand for a variable. */
export const SERVE_FLAGS: Record<string, Flag> = {
  strict: { type: 'boolean', text: 'Refuse an IDENTITY_ variable, and a text of IDENTITY_TEXTS, that this release does not know. Without it, each is a warning.' },
  workers: { type: 'string', value: 'N', text: 'Worker processes behind one port; auto: one for each core. Instead of IDENTITY_WORKERS.' },
  create: { type: 'boolean', text: 'Make a missing database, also in production. Instead of IDENTITY_CREATE_DATABASE.' }
}

/** The variables that are set by flags. */
export function listFlagged (args: Args): Record<string, string> {
  const workers = args.optional('workers')
  return { ...(workers !== undefined && { IDENTITY_WORKERS: workers }), ...(args.has('create') && { IDENTITY_CREATE_DATABASE: 'on' }) }
}

/**
 * The configuration; a flag takes precedence over its variable.
 * @throws ConfigError that names the flag for a bad value
 */
export function configure (args: Args, env: Variables): Config {
  const flagged = listFlagged(args)
  try {
    return readConfig({ ...env, ...flagged })
  } catch (error) {
    if (!(error instanceof ConfigError) || flagged['IDENTITY_WORKERS'] === undefined) throw error
    throw new ConfigError(error.problems.map((problem) => problem.replace(/^IDENTITY_WORKERS:/, '--workers:')))
  }
}
