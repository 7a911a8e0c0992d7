import type { Settings } from './settings.ts'
import { ratioOf, spread, valuesOf, type Spread } from './stats.ts'
import { measureTargets } from './targets.ts'
import type { CaseResult, Column, Row } from './types.ts'

export interface Report {
  machine: Record<string, string>
  settings: Omit<Settings, 'mongodbUrl'> & { mongodb: boolean }
  results: CaseResult[]
  failures: { name: string, message: string }[]
}

function toNumber (value: number, digits: number): string {
  return Number.isNaN(value) ? '-' : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

function toSpread ({ median, min, max }: Spread, digits: number): string {
  return `${toNumber(median, digits)} (${toNumber(min, digits)} to ${toNumber(max, digits)})`
}

export function toTable (lines: string[][]): string {
  const [head = [], ...body] = lines
  const rule = head.map((_, index) => (index === 0 ? '---' : '---:'))
  return [head, rule, ...body].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

/** The compared metric with its least and most; the others by their medians. */
function toCell (row: Row, { metric, digits }: Column, compared: string): string {
  const values = spread(valuesOf(row, metric))
  return metric === compared ? toSpread(values, digits) : toNumber(values.median, digits)
}

/** Where not all rows have one base. */
function listBases (others: Map<string, Row[]>, main: string | undefined): string {
  const lines = [...others].map(([base, rows]) => `- "${base}" of ${rows.map(({ label }) => `"${label}"`).join(', ')}`)
  return ['Bases:', ...lines, ...main === undefined ? [] : [`- "${main}" of the rest`]].join('\n')
}

function writeCase ({ title, notes, columns, metric, baseline, rows }: CaseResult): string {
  const lines = rows.map((row) => {
    const base = rows.find(({ label }) => label === row.baseline)
    const ratio = base === undefined || base === row ? '' : toSpread(ratioOf(row, base, metric), 2)
    return [row.label, ...columns.map((column) => toCell(row, column, metric)), ratio]
  })
  const compared = columns.find((column) => column.metric === metric)!.title
  const others = Map.groupBy(rows.filter((row) => row.baseline !== baseline && row.baseline !== row.label), (row) => row.baseline)
  const head = ['', ...columns.map((column) => column.title), others.size === 0 ? `${compared} / ${baseline}` : `${compared} / its base`]
  const bases = others.size === 0 ? [] : [listBases(others, rows.some(({ label }) => label === baseline) ? baseline : undefined)]
  return [`## ${title}`, ...notes, ...bases, toTable([head, ...lines])].join('\n\n')
}

function writeTargets (results: CaseResult[]): string {
  const lines = measureTargets(results).map(({ text, bound, value, met }) => [text, bound, value === null ? 'not measured' : toSpread(value, 2), met === null ? '' : met ? 'pass' : 'SHORT'])
  return ['## Targets', 'Ratios of the same round, their median with the least and the most.', toTable([['', 'asked for', 'measured', ''], ...lines])].join('\n\n')
}

export function toMarkdown ({ machine, settings, results, failures }: Report): string {
  const { rounds, warmups, seconds, connections } = settings
  const facts = [...Object.entries(machine), ['rounds', `${rounds} counted after ${warmups} to warm up, in turn; ${seconds} s each, ${connections} connections where nothing else is said`]]
  return [
    '# Benchmarks of fastify-identity',
    facts.map(([name, value]) => `- ${name}: ${value}`).join('\n'),
    'Medians of the rounds, with the least and the most in parentheses. Ratios are taken round by round.',
    ...results.map(writeCase),
    writeTargets(results),
    ...failures.map(({ name, message }) => `**${name} failed:** ${message}`),
    ''
  ].join('\n\n')
}
