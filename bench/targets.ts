import * as create from './cases/create.ts'
import * as disturbed from './cases/disturbed.ts'
import * as introspection from './cases/introspection.ts'
import * as lists from './cases/lists.ts'
import * as mongodb from './cases/mongodb.ts'
import * as pages from './cases/pages.ts'
import * as receivers from './cases/receivers.ts'
import * as start from './cases/start.ts'
import * as tokeninfo from './cases/tokeninfo.ts'
import * as tokens from './cases/tokens.ts'
import { findRow, isMeasured, ratioOf, spread, valuesOf, type Spread } from './stats.ts'
import type { CaseResult } from './types.ts'

/** A bound on the ratio of a row to another row of the same case, or on the row's own value. */
interface Target {
  text: string
  bound: ['at least' | 'at most', number]
  name: string
  row: string
  /** Absent: the row's own value. */
  over?: string
  metric: string
}

const { label, QUIET, LOGINS, EXPORT, FORGETTING, CORES, FULL_RATE, PACED } = disturbed
const MILLION = 1_000_000
const disturbedRow = (what: string, cores: 0 | 1) => label(what, CORES[cores], FULL_RATE)

/** A bound with a comment is the service's figure of November 2026, with an allowance for simpler code. */
const TARGETS: Target[] = [
  { text: 'tokeninfo embedded, of the bare route, by wrk', bound: ['at least', 0.75], name: 'tokeninfo', row: tokeninfo.IDENTITY, over: tokeninfo.BARE, metric: 'wrkRate' },
  { text: 'tokeninfo by npm start with LOG_LEVEL=warn, of the bare route, by wrk', bound: ['at least', 0.68], name: 'tokeninfo', row: tokeninfo.SERVICE, over: tokeninfo.BARE, metric: 'wrkRate' },
  { text: 'tokeninfo embedded, of an RS256 JWT by jose, by wrk', bound: ['at least', 1], name: 'tokeninfo', row: tokeninfo.IDENTITY, over: 'JWT RS256, jose', metric: 'wrkRate' },
  { text: 'tokeninfo embedded, of an RS256 JWT by @fastify/jwt, by wrk', bound: ['at least', 1], name: 'tokeninfo', row: tokeninfo.IDENTITY, over: 'JWT RS256, @fastify/jwt', metric: 'wrkRate' },
  { text: 'introspection embedded, of oidc-provider with a Map, by wrk', bound: ['at least', 1], name: 'introspection', row: introspection.IDENTITY, over: introspection.PROVIDER, metric: 'wrkRate' },
  { text: 'introspection by npm start with LOG_LEVEL=warn, of oidc-provider with a Map, by wrk', bound: ['at least', 1], name: 'introspection', row: introspection.SERVICE, over: introspection.PROVIDER, metric: 'wrkRate' },
  // 5, less a fifth.
  { text: 'tokeninfo on MongoDB, of the same reads by hand, by wrk', bound: ['at least', 4], name: 'mongodb', row: mongodb.IDENTITY, over: mongodb.BARE, metric: 'wrkRate' },
  // 1.4, and a tenth more.
  { text: 'p99 with 4 logins in flight, two cores, of quiet', bound: ['at most', 1.54], name: 'disturbed', row: disturbedRow(LOGINS(4), 1), over: disturbedRow(QUIET, 1), metric: 'p99' },
  { text: 'p99 with 8 logins in flight, two cores, of quiet', bound: ['at most', 3], name: 'disturbed', row: disturbedRow(LOGINS(8), 1), over: disturbedRow(QUIET, 1), metric: 'p99' },
  { text: 'p99 with 4 logins in flight, one core, of quiet', bound: ['at most', 6], name: 'disturbed', row: disturbedRow(LOGINS(4), 0), over: disturbedRow(QUIET, 0), metric: 'p99' },
  // 1.2, and a tenth more.
  { text: 'p99 during a whole export, two cores, of quiet', bound: ['at most', 1.32], name: 'disturbed', row: disturbedRow(EXPORT, 1), over: disturbedRow(QUIET, 1), metric: 'p99' },
  { text: `p99 at 2,000/s beside ${FORGETTING}, two cores, ms`, bound: ['at most', 5], name: 'disturbed', row: label(FORGETTING, CORES[1], PACED), metric: 'p99' },
  { text: 'tokeninfo at 5,000,000 tokens, of 5,000', bound: ['at least', 0.9], name: 'tokens', row: tokens.manyTokens(true), over: tokens.FEW_TOKENS, metric: 'rate' },
  { text: '1,000,000 clients as JSON, per second', bound: ['at least', 100_000], name: 'lists', row: lists.jsonRow(MILLION), metric: 'rows' },
  { text: '1,000,000 clients as CSV through the bridge, per second', bound: ['at least', 60_000], name: 'lists', row: lists.bridgeRow(MILLION), metric: 'rows' },
  { text: 'memory growth at 1,000,000 clients as NDJSON, MiB', bound: ['at most', 64], name: 'lists', row: lists.ndjsonRow(MILLION), metric: 'growth' },
  { text: 'memory growth at 1,000,000 clients as JSON, MiB', bound: ['at most', 64], name: 'lists', row: lists.jsonRow(MILLION), metric: 'growth' },
  { text: 'memory growth at 1,000,000 clients as CSV, service and bridge, MiB', bound: ['at most', 64], name: 'lists', row: lists.bridgeRow(MILLION), metric: 'growth' },
  { text: 'p50 of page 10,000 by its cursor, of page 1', bound: ['at most', 1.2], name: 'pages', row: pages.keysetRow(true), over: pages.FIRST, metric: 'p50' },
  ...receivers.RECEIVERS.flatMap((receiver) => (['p50', 'p99'] as const).map((metric): Target => ({
    text: `${metric} of a sign-in while a receiver ${receiver}, of quiet`, bound: ['at most', 1.2], name: 'receivers', row: receivers.label(receiver), over: receivers.QUIET, metric
  }))),
  // 5, less a tenth.
  { text: 'durable user creation, of one sync each', bound: ['at least', 4.5], name: 'create', row: create.IDENTITY, over: create.ONE_EACH, metric: 'rate' },
  // 2.2, and a tenth more.
  { text: 'start to first answer, of a bare Fastify app', bound: ['at most', 2.42], name: 'start', row: start.SERVICE, over: start.BARE, metric: 'milliseconds' }
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
    const bound = `${side} ${limit.toLocaleString('en')}`
    const row = findRow(results, name, wanted)
    const base = over === undefined ? undefined : findRow(results, name, over)
    if (row === undefined || !isMeasured([row], metric) || (over !== undefined && base === undefined)) return { text, bound, value: null, met: null }
    const value = base === undefined ? spread(valuesOf(row, metric)) : ratioOf(row, base, metric)
    return { text, bound, value, met: side === 'at least' ? value.median >= limit : value.median <= limit }
  })
}
