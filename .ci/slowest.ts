/** The files of a test run that took longest: the first place to look for time. */
import { globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

const SHOWN = 20

/** Where tap writes the TAP of each file. */
const RESULTS = join(import.meta.dirname, '../.tap/test-results')

/** The last line of a file's TAP, which is not indented. */
const TIME = /^# time=(?<time>[\d.]+)(?<unit>ms|s|m)$/m
const SECONDS: Record<string, number> = { ms: 0.001, s: 1, m: 60 }

function readSeconds (path: string): number {
  const { time, unit = 's' } = TIME.exec(readFileSync(path, 'utf8'))?.groups ?? {}
  return Number(time ?? 0) * SECONDS[unit]!
}

/**
 * @param since the start of the run, in milliseconds
 * @returns lines to print; none after a run of so few files that each of them is looked at anyway
 */
export function listSlowest (since: number): string[] {
  const paths = globSync('**/*.tap', { cwd: RESULTS }).filter((path) => statSync(join(RESULTS, path)).mtimeMs >= since)
  if (paths.length <= SHOWN) return []
  const files = paths.map((path) => ({ name: path.replace(/\.tap$/, ''), seconds: readSeconds(join(RESULTS, path)) }))
  const slowest = files.toSorted((one, other) => other.seconds - one.seconds).slice(0, SHOWN)
  return [`the slowest of ${files.length} files, in seconds:`, ...slowest.map(({ name, seconds }) => `${seconds.toFixed(1).padStart(7)}  ${name}`)]
}
