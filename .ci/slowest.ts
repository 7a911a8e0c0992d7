/** The files of a test run that took longest, by its TAP: the first place to look for time. */
import { readFileSync } from 'node:fs'

const SHOWN = 20

/** The line of a file, which is not indented: `ok 1 - test/a.test.ts # time=12.3ms`. */
const FILE = /^(?:not )?ok \d+ - (?<name>\S+).*# time=(?<time>[\d.]+)(?<unit>ms|s|m)\b/gm

const MILLISECONDS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000 }

/** @returns lines to print; none after a run of so few files that each of them is looked at anyway */
export function listSlowest (path: string): string[] {
  const files = [...readFileSync(path, 'utf8').matchAll(FILE)].map(({ groups }) => {
    const { name = '', time, unit = 'ms' } = groups ?? {}
    return { name, seconds: Number(time) * MILLISECONDS[unit]! / 1_000 }
  })
  if (files.length <= SHOWN) return []
  const slowest = files.toSorted((one, other) => other.seconds - one.seconds).slice(0, SHOWN)
  return [`the slowest of ${files.length} files, in seconds:`, ...slowest.map(({ name, seconds }) => `${seconds.toFixed(1).padStart(7)}  ${name}`)]
}
