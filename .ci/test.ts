/** `npm test`: all other arguments are tap's. */
import { runTap } from './run-tap.ts'

process.exitCode = await runTap(process.argv.slice(2))
