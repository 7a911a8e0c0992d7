import { ConfigError, readConfig, type Config } from '../../config.ts'
import { explainFailure } from '../../lib/failure.ts'
import { parseFlags } from '../args.ts'
import type { Command } from '../command.ts'
import { helpOne } from '../help.ts'
import { checkExposure } from './exposure.ts'
import { getWorkerRole } from './worker-role.ts'

/** The configuration; the flag takes precedence over its variable. Throws a ConfigError that names the flag for a bad value. */
function configure (workers: string | undefined): Config {
  if (workers === undefined) return readConfig(process.env)
  try {
    return readConfig({ ...process.env, IDENTITY_WORKERS: workers })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new ConfigError(error.problems.map((problem) => problem.replace(/^IDENTITY_WORKERS:/, '--workers:')))
  }
}

/** Resolves when this process listens, or has started its first worker. */
async function serve (workers: string | undefined): Promise<void> {
  const config = configure(workers)
  checkExposure(config)
  const role = getWorkerRole()
  if (role !== undefined || config.workers === 1) {
    const { runService } = await import('./service.ts')
    return await runService(config, role)
  }
  const { runPrimary } = await import('./primary.ts')
  runPrimary(config)
}

const command = {
  summary: 'Serve until a signal ends it, as `npm start` does in a checkout.',
  flags: {
    workers: { type: 'string', value: 'N', text: 'Worker processes behind one port; auto: one for each core. Instead of IDENTITY_WORKERS.' }
  },
  runAlone: async ({ args }) => await serve(args.optional('workers'))
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
    else await serve(args.optional('workers'))
  } catch (error) {
    for (const line of explainFailure(error).split('\n')) process.stderr.write(`fastify-identity: ${line}\n`)
    process.exit(1)
  }
}
