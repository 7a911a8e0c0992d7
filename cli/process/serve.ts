import { explainFailure } from '../../lib/failure.ts'
import { type Args, UsageError, parseFlags } from '../args.ts'
import type { Command } from '../command.ts'
import { helpOne } from '../help.ts'
import { findLook } from '../look.ts'
import { checkExposure } from './exposure.ts'
import { checkListener } from './listener.ts'
import { checkMetricsPorts } from './metrics-ports.ts'
import { SERVE_FLAGS, configure, listFlagged } from './serve-flags.ts'
import { getWorkerRole, readGiven } from './worker-role.ts'

/** Resolves when this process listens, or has started its first worker. */
async function serve (args: Args): Promise<void> {
  const config = configure(args, process.env)
  const role = getWorkerRole()
  checkExposure(config)
  if (role === undefined && args.has('strict')) {
    const [{ checkStart }, { refuseUnknown }] = await Promise.all([import('./check-start.ts'), import('./strict.ts')])
    refuseUnknown(process.env, checkStart(config))
  }
  if (role === undefined) {
    // A worker has the address that the primary process has chosen for it.
    checkMetricsPorts(config)
    await checkListener(config)
  }
  if (role !== undefined || config.workers === 1) {
    const { runService } = await import('./service.ts')
    const given = role === undefined ? { env: process.env, flagged: listFlagged(args) } : readGiven(process.env)
    return await runService(config, role, async () => (await import('../settings.ts')).showSettings(config, given))
  }
  const { runPrimary } = await import('./primary.ts')
  await runPrimary(config, { env: process.env, flagged: listFlagged(args) })
}

const command = {
  summary: 'Run the service until a signal stops it. In a checkout, `npm start` does the same.',
  example: 'serve --workers auto',
  flags: SERVE_FLAGS,
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
    if (args.has('help')) process.stdout.write(helpOne('serve', command, {}, findLook(process.stdout, process.env)))
    else await serve(args)
  } catch (error) {
    for (const line of explainFailure(error).split('\n')) process.stderr.write(`fastify-identity: ${line}\n`)
    process.exit(error instanceof UsageError ? 2 : 1)
  }
}
