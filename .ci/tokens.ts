/**
 * Counts the code in tokens, so that comments, blank lines, line breaks and the length of names weigh nothing:
 *
 *     node .ci/tokens.ts [COMMIT [COMMIT]]
 *
 * Without an argument it counts the work tree, with one the commit, and with two also the difference. Comments are counted in words.
 * A tool for maintainers who simplify; no check of CI depends on these numbers.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import ts from 'typescript'

/** The folders whose growth is watched; all others are in the line `rest`. */
const FOLDERS = [
  'lib/webhooks', 'lib/outbox', 'lib/mail', 'lib/logout', 'lib/events', 'lib/work', 'lib/users', 'lib/clients', 'lib/resources', 'lib/accounts',
  'routes', 'cli'
]

interface Count { tokens: number, words: number }

const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8', maxBuffer: 2 ** 28 })

function listFiles (commit: string | undefined): string[] {
  const files = commit === undefined ? git('ls-files', '-co', '--exclude-standard') : git('ls-tree', '-r', '--name-only', commit)
  return files.split('\n').filter((file) => file.endsWith('.ts') && !/^(test|bench|examples|\.ci)\//.test(file))
}

function read (file: string, commit: string | undefined): string {
  if (commit !== undefined) return git('show', `${commit}:${file}`)
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '' // Deleted, and not committed yet.
  }
}

/** The scanner needs the parser to know where a template goes on and where a slash begins a regular expression. */
function count (text: string): Count {
  const file = ts.createSourceFile('file.ts', text, ts.ScriptTarget.Latest, true)
  const comments = new Map<number, number>()
  let tokens = 0
  function walk (node: ts.Node): void {
    if (ts.isJSDoc(node)) return
    const parts = node.getChildren(file)
    if (parts.length > 0) return parts.forEach(walk)
    if (ts.isToken(node) && node.kind !== ts.SyntaxKind.EndOfFileToken) tokens++
    const found = [ts.getLeadingCommentRanges(text, node.pos), ts.getTrailingCommentRanges(text, node.end)]
    for (const { pos, end } of found.flatMap((ranges) => ranges ?? [])) comments.set(pos, end)
  }
  walk(file)
  const words = [...comments].flatMap(([pos, end]) => text.slice(pos, end).match(/[\p{L}\d][^\s]*/gu) ?? [])
  return { tokens, words: words.length }
}

const add = (a: Count = { tokens: 0, words: 0 }, b: Count): Count => ({ tokens: a.tokens + b.tokens, words: a.words + b.words })

function measure (commit: string | undefined): Map<string, Count> {
  const counts = new Map<string, Count>()
  for (const file of listFiles(commit)) {
    const own = count(read(file, commit))
    const folder = FOLDERS.find((name) => file.startsWith(`${name}/`))
    for (const line of folder === undefined ? ['rest', 'whole'] : [folder, 'these', 'whole']) counts.set(line, add(counts.get(line), own))
  }
  return counts
}

const signed = (number: number, digits = 0) => `${number > 0 ? '+' : ''}${number.toFixed(digits)}`

const measures = process.argv.length > 2 ? process.argv.slice(2, 4).map(measure) : [measure(undefined)]
for (const line of [...FOLDERS, 'these', 'rest', 'whole']) {
  const counts = measures.map((measured) => measured.get(line) ?? { tokens: 0, words: 0 })
  const cells = counts.map(({ tokens, words }) => `${tokens} tokens, ${(100 * words / (tokens || 1)).toFixed(1)} words of comments per 100`)
  const [before, after] = counts
  if (before !== undefined && after !== undefined) {
    const change = after.tokens - before.tokens
    cells.push(before.tokens === 0 ? signed(change) : `${signed(change)} (${signed(100 * change / before.tokens, 1)} %)`)
  }
  console.log(`${line.padEnd(14)} ${cells.join(' | ')}`)
}
