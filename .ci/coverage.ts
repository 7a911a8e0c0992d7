/**
 * Fails when the coverage of a folder is too low, by the summary that the coverage reporter wrote. A module without an entry
 * there was not loaded, and counts as uncovered.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const SUMMARY = join(root, '.tap/report/coverage-summary.json')

/** Required coverage of each folder in percent. */
const LEAST = { lines: 95, branches: 90 }
const FOLDERS = ['lib', 'plugins', 'routes']

/** Measured only with a MongoDB server. */
const MONGO = /^lib\/store\/mongo(\/|\.ts$)/
const isMeasured = (file: string) => Boolean(process.env.MONGODB_URL) || !MONGO.test(file)

type Count = { total: number, covered: number }
type Summary = Partial<Record<string, { lines: Count, branches: Count }>>

function readSummary (): Summary {
  try {
    return JSON.parse(readFileSync(SUMMARY, 'utf8'))
  } catch {
    console.error('there is no coverage summary: `npm test -- --no-disable-coverage` writes it')
    process.exit(1)
  }
}

const summary = readSummary()
const toPercent = ({ total, covered }: Count) => 100 * covered / total
for (const folder of FOLDERS) {
  const sum = { lines: { total: 0, covered: 0 }, branches: { total: 0, covered: 0 } }
  for (const file of globSync(`${folder}/**/*.ts`, { cwd: root }).filter(isMeasured)) {
    const entry = summary[join(root, file)]
    const lines = entry?.lines ?? { total: readFileSync(join(root, file), 'utf8').split('\n').length, covered: 0 }
    const branches = entry?.branches ?? { total: 1, covered: 0 }
    for (const [key, { total, covered }] of [['lines', lines], ['branches', branches]] as const) {
      sum[key].total += total
      sum[key].covered += covered
    }
  }
  const percent = { lines: toPercent(sum.lines), branches: toPercent(sum.branches) }
  const passes = percent.lines >= LEAST.lines && percent.branches >= LEAST.branches
  console.log(`coverage of ${folder}: ${percent.lines.toFixed(1)} % of lines, ${percent.branches.toFixed(1)} % of branches`)
  if (!passes) process.exitCode = 1
}
if (process.exitCode === 1) {
  console.error(`at least ${LEAST.lines} % of lines and ${LEAST.branches} % of branches are required`)
}
