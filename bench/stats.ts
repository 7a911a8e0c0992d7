import type { CaseResult, Row } from './types.ts'

export interface Spread {
  median: number
  min: number
  max: number
}

export function spread (values: number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const median = sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
  return { median, min: sorted[0] ?? NaN, max: sorted.at(-1) ?? NaN }
}

/** The quantile of the values at this share. */
export function toQuantile (values: number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? NaN
}

/** A row's values of a metric by round; NaN where it was not measured. */
export function valuesOf (row: Row, metric: string): number[] {
  return row.samples.map((sample) => sample[metric] ?? NaN)
}

/** Whether any row has a value for the metric. */
export function isMeasured (rows: Row[], metric: string): boolean {
  return rows.some((row) => valuesOf(row, metric).some((value) => !Number.isNaN(value)))
}

/** One row over another, round by round: a disturbance within a round affects both. */
export function ratioOf (row: Row, other: Row, metric: string): Spread {
  const below = valuesOf(other, metric)
  return spread(valuesOf(row, metric).map((value, round) => value / below[round]!))
}

/** The first quartile and the least of a row's values: a disturbance only adds to processor time. */
export function lowOf (row: Row, metric: string): { quartile: number, least: number } {
  const values = valuesOf(row, metric).filter((value) => !Number.isNaN(value))
  return { quartile: toQuantile(values, 0.25), least: Math.min(...values) }
}

/** The share of a row's processor time that another row takes: 1 for as little as that one. */
export function shareOf (row: Row, other: Row, metric: string): Spread {
  const [own, base] = [lowOf(row, metric), lowOf(other, metric)]
  const [quartile, least] = [base.quartile / own.quartile, base.least / own.least]
  return { median: quartile, min: Math.min(quartile, least), max: Math.max(quartile, least) }
}

/** The row of a case, or undefined where it was not measured. */
export function findRow (results: CaseResult[], name: string, label: string): Row | undefined {
  return results.find((result) => result.name === name)?.rows.find((row) => row.label === label)
}
