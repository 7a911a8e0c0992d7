#!/usr/bin/env node
/**
 * The operator's command line. It opens the store itself, so it works with and without a running service.
 * @module
 */
import { runCommandLine } from './cli/main.ts'

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
