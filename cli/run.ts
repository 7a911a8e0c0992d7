import { constants, setPriority } from 'node:os'
import { runCommandLine } from './main.ts'

/** A long command, beside which a service on the same machine keeps its speed. */
const SLOW = 'user import'

/** Gives other processes the processor first. Threads inherit that, so it comes before any is started. */
function yieldProcessor (): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // A sandbox may forbid it.
  }
}

/** Runs the command line of this process, until a signal ends it. */
export async function run (): Promise<void> {
  if (process.argv.slice(2, 4).join(' ') === SLOW) yieldProcessor()
  const controller = new AbortController()
  let stopped: number | undefined
  for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143]] as const) {
    process.on(signal, () => {
      // The first signal lets the command clean up; the second exits at once.
      if (stopped !== undefined) process.exit(code)
      stopped = code
      controller.abort()
    })
  }
  const code = await runCommandLine(process.argv.slice(2), process.env, process, controller.signal)
  process.exitCode = code === 0 ? 0 : stopped ?? code
}
