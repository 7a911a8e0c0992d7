/**
 * Reads the TAP of a test run, prints the count on a line of its own, and fails when nothing ran or a test was skipped
 * because a server or a browser was missing: a green run would then prove less than it seems to.
 */
import { readFileSync } from 'node:fs'

const tap = readFileSync(process.argv[2] ?? '', 'utf8')
// A line that ends with a brace sums up the subtest below it. Only assertions are counted.
const lines = tap.split('\n').map((line) => line.trim()).filter((line) => /^(not )?ok\b/.test(line) && !line.endsWith('{'))
const skipped = lines.filter((line) => /# SKIP/i.test(line))
const failed = lines.filter((line) => line.startsWith('not ok') && !/# (TODO|SKIP)/i.test(line))
const passed = lines.length - skipped.length - failed.length
const wanting = skipped.filter((line) => /MONGODB_URL|no Chromium found/.test(line))

for (const line of wanting) console.error(`left out for want of a server or a browser: ${line}`)
console.log(`${passed} passed, ${failed.length} failed, ${skipped.length} skipped`)
process.exitCode = passed === 0 || failed.length > 0 || wanting.length > 0 ? 1 : 0
