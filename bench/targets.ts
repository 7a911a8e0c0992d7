import * as create from './cases/create.ts'
import { BARE as MONGO_BARE, IDENTITY as MONGO_IDENTITY } from './cases/mongodb.ts'
import * as disturbed from './cases/disturbed.ts'
import * as lists from './cases/lists.ts'
import * as pages from './cases/pages.ts'
import * as start from './cases/start.ts'
import * as tokeninfo from './cases/tokeninfo.ts'
import * as tokens from './cases/tokens.ts'
import { findRow, ratioOf, spread, valuesOf, type Spread } from './stats.ts'
import type { CaseResult } from './types.ts'

/** What the service is to show: a row of a case over another row of it, or a row's own value. */
interface Target {
  text: string
  bound: ['at least' | 'at most', number]
  name: string
  row: string
  /** Absent: the row's own value. */
  over?: string
  metric: string
}

const { label, QUIET, LOGINS, EXPORT, CORES, FULL_RATE } = disturbed
const MILLION = 1_000_000
const disturbedRow = (what: string, cores: 0 | 1) => label(what, CORES[cores], FULL_RATE)

const TARGETS: Target[] = [
  { text: 'tokeninfo on SQLite, of the bare route', bound: ['at least', 0.8], name: 'tokeninfo', row: tokeninfo.IDENTITY, over: tokeninfo.BARE, metric: 'rate' },
  { text: 'tokeninfo on SQLite, of oidc-provider\'s introspection', bound: ['at least', 5], name: 'tokeninfo', row: tokeninfo.IDENTITY, over: 'oidc-provider introspection, a Map', metric: 'rate' },
  { text: 'tokeninfo on SQLite, of an RS256 JWT by jose', bound: ['at least', 1], name: 'tokeninfo', row: tokeninfo.IDENTITY, over: 'JWT RS256, jose', metric: 'rate' },
  { text: 'tokeninfo on SQLite, of an RS256 JWT by @fastify/jwt', bound: ['at least', 1], name: 'tokeninfo', row: tokeninfo.IDENTITY, over: 'JWT RS256, @fastify/jwt', metric: 'rate' },
  { text: 'tokeninfo on MongoDB, of the same reads by hand', bound: ['at least', 0.9], name: 'mongodb', row: MONGO_IDENTITY, over: MONGO_BARE, metric: 'rate' },
  { text: 'p99 with 4 logins in flight, two cores, of quiet', bound: ['at most', 3], name: 'disturbed', row: disturbedRow(LOGINS(4), 1), over: disturbedRow(QUIET, 1), metric: 'p99' },
  { text: 'p99 with 8 logins in flight, two cores, of quiet', bound: ['at most', 3], name: 'disturbed', row: disturbedRow(LOGINS(8), 1), over: disturbedRow(QUIET, 1), metric: 'p99' },
  { text: 'p99 with 4 logins in flight, one core, of quiet', bound: ['at most', 6], name: 'disturbed', row: disturbedRow(LOGINS(4), 0), over: disturbedRow(QUIET, 0), metric: 'p99' },
  { text: 'p99 during a whole export, two cores, of quiet', bound: ['at most', 3], name: 'disturbed', row: disturbedRow(EXPORT, 1), over: disturbedRow(QUIET, 1), metric: 'p99' },
  { text: 'tokeninfo at 5,000,000 tokens, of 5,000', bound: ['at least', 0.9], name: 'tokens', row: tokens.manyTokens(true), over: tokens.FEW_TOKENS, metric: 'rate' },
  { text: '1,000,000 clients as NDJSON, of the same bytes from a bare stream a line at a time', bound: ['at least', 0.5], name: 'lists', row: lists.ndjsonRow(MILLION), over: lists.linesRow(MILLION), metric: 'rows' },
  { text: '1,000,000 clients as NDJSON, of the same bytes from a bare stream in ready pieces of 37 kB', bound: ['at least', 0.5], name: 'lists', row: lists.ndjsonRow(MILLION), over: lists.bareRow(MILLION), metric: 'rows' },
  { text: '1,000,000 clients as CSV through the bridge, of fast-csv alone', bound: ['at least', 0.6], name: 'lists', row: lists.bridgeRow(MILLION), over: lists.csvRow(MILLION), metric: 'rows' },
  { text: 'memory growth at 1,000,000 clients as NDJSON, MiB', bound: ['at most', 64], name: 'lists', row: lists.ndjsonRow(MILLION), metric: 'growth' },
  { text: 'memory growth at 1,000,000 clients as JSON, MiB', bound: ['at most', 64], name: 'lists', row: lists.jsonRow(MILLION), metric: 'growth' },
  { text: 'memory growth at 1,000,000 clients as CSV, service and bridge, MiB', bound: ['at most', 64], name: 'lists', row: lists.bridgeRow(MILLION), metric: 'growth' },
  { text: 'p50 of page 10,000 by its cursor, of page 1', bound: ['at most', 1.2], name: 'pages', row: pages.keysetRow(true), over: pages.FIRST, metric: 'p50' },
  { text: 'durable user creation, of one sync each', bound: ['at least', 10], name: 'create', row: create.IDENTITY, over: create.ONE_EACH, metric: 'rate' },
  { text: 'start to first answer, of a bare Fastify app', bound: ['at most', 4], name: 'start', row: start.SERVICE, over: start.BARE, metric: 'milliseconds' }
]

export interface MeasuredTarget {
  text: string
  bound: string
  /** Null where it was not measured. */
  value: Spread | null
  met: boolean | null
}

export function measureTargets (results: CaseResult[]): MeasuredTarget[] {
  return TARGETS.map(({ text, bound: [side, limit], name, row: wanted, over, metric }) => {
    const bound = `${side} ${limit}`
    const row = findRow(results, name, wanted)
    const base = over === undefined ? undefined : findRow(results, name, over)
    if (row === undefined || (over !== undefined && base === undefined)) return { text, bound, value: null, met: null }
    const value = base === undefined ? spread(valuesOf(row, metric)) : ratioOf(row, base, metric)
    return { text, bound, value, met: side === 'at least' ? value.median >= limit : value.median <= limit }
  })
}
