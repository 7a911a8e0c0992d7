import { ConfigError, readConfig, type Config } from '../../config.ts'
import { explainFailure } from '../../lib/failure.ts'
import { parseFlags } from '../args.ts'
import type { Command } from '../command.ts'
import { helpOne } from '../help.ts'
import { isWorker, runWorker } from './worker.ts'

/** What the environment says, and the flag above it. Throws a ConfigError that names the flag for what it says. */
function configure (workers: string | undefined): Config {
  if (workers === undefined) return readConfig(process.env)
  try {
    return readConfig({ ...process.env, IDENTITY_WORKERS: workers })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new ConfigError(error.problems.map((problem) => problem.replace(/^IDENTITY_WORKERS:/, '--workers:')))
  }
}

/** Resolves when this process listens, or has begun its workers. */
async function serve (workers: string | undefined): Promise<void> {
  const config = configure(workers)
  if (config.workers === 1) {
    const { runService } = await import('./service.ts')
    return await runService(config)
  }
  const { runPrimary } = await import('./primary.ts')
  runPrimary(config)
}

const command = {
  summary: 'Serve until a signal ends it, as `npm start` does in a checkout.',
  flags: {
    workers: { type: 'string', value: 'N', text: 'Processes that serve, with one listener; auto: one for each core. Instead of IDENTITY_WORKERS.' }
  },
  runAlone: async ({ args }) => await serve(args.optional('workers'))
} satisfies Command

export const serveCommands = { serve: command }

async function run (argv: string[]): Promise<void> {
  if (isWorker()) return await runWorker(readConfig(process.env))
  const args = parseFlags(command, argv)
  if (args.has('help')) process.stdout.write(helpOne('serve', command))
  else await serve(args.optional('workers'))
}

/**
 * What `npm start` runs, and each of the workers. A failure to begin is told, and ends the process.
 * @param argv the flags
 */
export async function runServer (argv: string[]): Promise<void> {
  try {
    await run(argv)
  } catch (error) {
    for (const line of explainFailure(error).split('\n')) process.stderr.write(`fastify-identity: ${line}\n`)
    process.exit(1)
  }
}
