import { ConfigError, readConfig, type Config } from '../../config.ts'
import { explainFailure } from '../../lib/failure.ts'
import { type Args, parseFlags } from '../args.ts'
import type { Command } from '../command.ts'
import { helpOne } from '../help.ts'
import { checkExposure } from './exposure.ts'
import { checkListener } from './listener.ts'
import { getWorkerRole } from './worker-role.ts'

/** The configuration; a flag takes precedence over its variable. Throws a ConfigError that names the flag for a bad value. */
function configure (args: Args): Config {
  const workers = args.optional('workers')
  const env = { ...process.env, ...(args.has('create') && { IDENTITY_CREATE_DATABASE: 'on' }) }
  if (workers === undefined) return readConfig(env)
  try {
    return readConfig({ ...env, IDENTITY_WORKERS: workers })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new ConfigError(error.problems.map((problem) => problem.replace(/^IDENTITY_WORKERS:/, '--workers:')))
  }
}

/** Resolves when this process listens, or has started its first worker. */
async function serve (args: Args): Promise<void> {
  const config = configure(args)
  const role = getWorkerRole()
  checkExposure(config)
  if (role === undefined) await checkListener(config)
  if (role !== undefined || config.workers === 1) {
    const { runService } = await import('./service.ts')
    return await runService(config, role)
  }
  const { runPrimary } = await import('./primary.ts')
  runPrimary(config)
}

const command = {
  summary: 'Run the service until a signal stops it, like `npm start` in a checkout.',
  flags: {
    workers: { type: 'string', value: 'N', text: 'Worker processes behind one port; auto: one for each core. Instead of IDENTITY_WORKERS.' },
    create: { type: 'boolean', text: 'Make a missing database, also in production. Instead of IDENTITY_CREATE_DATABASE.' }
  },
  runAlone: async ({ args }) => await serve(args)
} satisfies Command

export const serveCommands = { serve: command }

/**
 * Runs `npm start`, or a worker. A start-up error is printed and ends the process.
 * @param argv the flags
 */
export async function runServer (argv: string[]): Promise<void> {
  try {
    const args = parseFlags(command.flags, argv)
    if (args.has('help')) process.stdout.write(helpOne('serve', command))
    else await serve(args)
  } catch (error) {
    for (const line of explainFailure(error).split('\n')) process.stderr.write(`fastify-identity: ${line}\n`)
    process.exit(1)
  }
}
