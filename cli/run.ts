import { runCommandLine } from './main.ts'

/** Runs the command line of this process, until a signal ends it. */
export async function run (): Promise<void> {
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
