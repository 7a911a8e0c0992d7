import type { Settings } from './settings.ts'
import { isMeasured, lowOf, ratioOf, shareOf, spread, valuesOf, type Spread } from './stats.ts'
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
  return Number.isNaN(median) ? '-' : `${toNumber(median, digits)} (${toNumber(min, digits)} to ${toNumber(max, digits)})`
}

function toTable (lines: string[][]): string {
  const [head = [], ...body] = lines
  const rule = head.map((_, index) => (index === 0 ? '---' : '---:'))
  return [head, rule, ...body].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

/** Processor time as its first quartile and the least; a compared metric with its least and most; any other as its median. */
function toCell (row: Row, { metric, digits, isCost }: Column, compared: string[]): string {
  if (isCost === true) {
    const { quartile, least } = lowOf(row, metric)
    return Number.isNaN(quartile) ? '-' : `${toNumber(quartile, digits)} (${toNumber(least, digits)})`
  }
  const values = spread(valuesOf(row, metric))
  return compared.includes(metric) ? toSpread(values, digits) : toNumber(values.median, digits)
}

/** The baselines of rows that are not compared with the case's own. */
function listBaselines (others: Map<string, Row[]>, main: string | undefined): string {
  const lines = [...others].map(([baseline, rows]) => `- "${baseline}" for ${rows.map(({ label }) => `"${label}"`).join(', ')}`)
  return ['Baselines:', ...lines, ...main === undefined ? [] : [`- "${main}" for the rest`]].join('\n')
}

function writeCase ({ title, notes, columns, compared, baseline, rows, details }: CaseResult): string {
  const shown = columns.filter(({ metric }) => isMeasured(rows, metric))
  const ratios = shown.filter(({ metric }) => compared.includes(metric))
  const lines = rows.map((row) => {
    const base = rows.find(({ label }) => label === row.baseline)
    const toRatio = ({ metric, isCost }: Column) => (
      base === undefined || base === row ? '' : toSpread(isCost === true ? shareOf(row, base, metric) : ratioOf(row, base, metric), 2))
    return [row.label, ...shown.map((column) => toCell(row, column, compared)), ...ratios.map(toRatio)]
  })
  const others = Map.groupBy(rows.filter((row) => row.baseline !== baseline && row.baseline !== row.label), (row) => row.baseline)
  const below = others.size === 0 ? baseline : 'its baseline'
  const head = ['', ...shown.map((column) => column.title), ...ratios.map(({ title, isCost }) => isCost === true ? `${title}, of ${below}` : `${title} / ${below}`)]
  const baselines = others.size === 0 ? [] : [listBaselines(others, rows.some(({ label }) => label === baseline) ? baseline : undefined)]
  return [`## ${title}`, ...notes, ...baselines, toTable([head, ...lines]), ...(details === undefined ? [] : [toTable(details)])].join('\n\n')
}

function writeTargets (results: CaseResult[]): string {
  const lines = measureTargets(results).map(({ text, bound, value, met }) => [text, bound, value === null ? 'not measured' : toSpread(value, 2), met === null ? '' : met ? 'met' : 'MISSED'])
  return ['## Targets', 'A ratio is taken round by round; shown are its median, least and most. One of processor time is that of the first quartiles, with that of the least: "at least", of the other row over this one; "at most", of this one over the other.', toTable([['', 'target', 'measured', ''], ...lines])].join('\n\n')
}

export function toMarkdown ({ machine, settings, results, failures }: Report): string {
  const { rounds, warmups, seconds, connections } = settings
  const facts = [...Object.entries(machine), ['rounds', `${rounds} counted after ${warmups} to warm up, rows in turn; ${seconds} s each, ${connections} connections unless noted`]]
  return [
    '# Benchmarks of fastify-identity',
    facts.map(([name, value]) => `- ${name}: ${value}`).join('\n'),
    'Medians of the rounds, with the least and the most in parentheses. Ratios are taken round by round. Processor time is the first quartile of the ' +
      'rounds, with the least; "of" another row is that of the other over that of this one, so 1 is as cheap.',
    ...results.map(writeCase),
    writeTargets(results),
    ...failures.map(({ name, message }) => `**${name} failed:** ${message}`),
    ''
  ].join('\n\n')
}
