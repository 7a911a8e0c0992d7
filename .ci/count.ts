/**
 * Reads the TAP of a test run. Prints the first failed assertions with their files and subtests, then the count:
 * people see the end of a long log. Fails when an assertion failed, when nothing ran, or when a test was skipped because a
 * server or a browser was missing: a green run would then prove less than it seems to.
 *
 *     node .ci/count.ts TAP [FILES]
 *
 * The tests of the files that the list FILES names may be skipped without MongoDB: another run has them, with a server.
 */
import { createReadStream, readFileSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { Parser, type Result } from 'tap-parser'

const SHOWN_FAILURES = 20
const SHOWN_LINES = 30

const [tap = '', list] = process.argv.slice(2)
const elsewhere = list === undefined ? [] : readFileSync(list, 'utf8').split('\n').filter((file) => file !== '')

let passed = 0
let failed = 0
let skipped = 0
let wanting = 0

/** Why an assertion failed, without the source text that tap quotes: the position says where it is. */
function reasonOf ({ diag, time }: Result): string {
  const { source: _, ...rest } = (diag ?? {}) as Record<string, unknown>
  const text = JSON.stringify({ ...rest, milliseconds: time ?? undefined }, null, 2).replaceAll(String.raw`\n`, '\n')
  return text.split('\n').slice(0, SHOWN_LINES).map((line) => `  ${line}`).join('\n')
}

const parser = new Parser()
parser.on('pass', () => passed++)
parser.on('todo', () => passed++)
parser.on('skip', ({ fullname, skip }) => {
  skipped++
  const reason = `${fullname} ${skip}`
  if (!/MONGODB_URL|no (Chromium|nginx|Caddy) found/.test(reason)) return
  if (reason.includes('MONGODB_URL') && elsewhere.some((file) => fullname.startsWith(file))) return
  wanting++
  console.error(`skipped because a server or a browser is missing: ${fullname}`)
})
parser.on('fail', (result) => {
  failed++
  if (failed <= SHOWN_FAILURES) console.error(`failed: ${result.fullname}\n${reasonOf(result)}`)
})

await pipeline(createReadStream(tap, 'utf8'), parser)
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`)
process.exitCode = passed === 0 || failed > 0 || wanting > 0 ? 1 : 0
