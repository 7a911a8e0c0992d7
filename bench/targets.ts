import { BOTH, RATES } from './bench.ts'
import * as commands from './cases/commands.ts'
import * as create from './cases/create.ts'
import * as disturbed from './cases/disturbed.ts'
import * as fleet from './cases/fleet.ts'
import * as former from './cases/former.ts'
import * as introspection from './cases/introspection.ts'
import * as jwt from './cases/jwt.ts'
import * as lists from './cases/lists.ts'
import * as mongodb from './cases/mongodb.ts'
import * as pages from './cases/pages.ts'
import * as receivers from './cases/receivers.ts'
import * as serviceTokens from './cases/service-tokens.ts'
import * as start from './cases/start.ts'
import * as tokeninfo from './cases/tokeninfo.ts'
import * as tokens from './cases/tokens.ts'
import * as users from './cases/users.ts'
import * as verify from './cases/verify.ts'
import { findRow, isMeasured, ratioOf, shareOf, spread, valuesOf, type Spread } from './stats.ts'
import type { CaseResult, Row } from './types.ts'

/** Processor time. */
const COSTS: readonly string[] = [...RATES, ...BOTH.columns].filter(({ isCost }) => isCost === true).map(({ metric }) => metric)

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

const { label, QUIET, LOGINS, EXPORT, FORGETTING, OPERATORS, CORES, FULL_RATE, PACED } = disturbed
const MILLION = 1_000_000
const disturbedRow = (what: string, cores: 0 | 1) => label(what, CORES[cores], FULL_RATE)

/** A bound with a comment is the service's figure of November 2026, with an allowance for simpler code. */
const TARGETS: Target[] = [
  { text: 'tokeninfo embedded, of the bare route', bound: ['at least', 0.85], name: 'tokeninfo', row: tokeninfo.IDENTITY, over: tokeninfo.BARE, metric: 'wrkCpu' },
  { text: 'tokeninfo by npm start with LOG_LEVEL=warn, of the bare route', bound: ['at least', 0.76], name: 'tokeninfo', row: tokeninfo.SERVICE, over: tokeninfo.BARE, metric: 'wrkCpu' },
  { text: 'introspection embedded, of tokeninfo', bound: ['at least', 0.6], name: 'introspection', row: introspection.IDENTITY, over: introspection.TOKENINFO, metric: 'wrkCpu' },
  { text: 'introspection by npm start, of tokeninfo', bound: ['at least', 0.5], name: 'introspection', row: introspection.SERVICE, over: introspection.TOKENINFO_SERVICE, metric: 'wrkCpu' },
  { text: 'GET /user/{id}, of the bare route', bound: ['at least', 0.6], name: 'users', row: users.USER, over: users.BARE_USER, metric: 'cpu' },
  { text: 'tokeninfo of a service token, of one of a sign-in', bound: ['at least', 0.95], name: 'service-tokens', row: serviceTokens.SERVICE, over: serviceTokens.SIGN_IN, metric: 'cpu' },
  ...jwt.ALGORITHMS.flatMap((algorithm): Target[] => [
    { text: `a JWT, ${algorithm}, of an opaque token and its signature`, bound: ['at most', 1.5], name: 'jwt', row: jwt.jwtRow(algorithm), over: jwt.sumRow(algorithm), metric: 'cpu' },
    { text: `a JWT verified by remoteAuth, ${algorithm}, of jose alone`, bound: ['at least', 1], name: 'verify', row: verify.remoteRow(algorithm), over: verify.joseRow(algorithm), metric: 'cpu' }
  ]),
  { text: `tokeninfo ${fleet.BESIDE}, of one ${fleet.REST}`, bound: ['at least', 0.8], name: 'fleet', row: fleet.BESIDE, over: fleet.REST, metric: 'cpu' },
  { text: "a client's token, of another checkout", bound: ['at least', 1.6], name: 'former-writes', row: former.presentRow(former.CLIENT_TOKEN), over: former.formerRow(former.CLIENT_TOKEN), metric: 'cpu' },
  { text: 'a refresh, of another checkout', bound: ['at least', 1.5], name: 'former-writes', row: former.presentRow(former.REFRESH), over: former.formerRow(former.REFRESH), metric: 'cpu' },
  { text: 'a code redeemed, of another checkout', bound: ['at least', 1.5], name: 'former-writes', row: former.presentRow(former.CODE), over: former.formerRow(former.CODE), metric: 'cpu' },
  { text: 'a change of a user with its event, of another checkout', bound: ['at least', 1.3], name: 'former-writes', row: former.presentRow(former.CHANGE), over: former.formerRow(former.CHANGE), metric: 'cpu' },
  ...([[commands.INTROSPECTION, 1], [commands.CLIENT_TOKEN, 2], [commands.REFRESH, 7], [commands.CHANGE, 4]] as const).map(([row, limit]): Target => ({
    text: `latencies of MongoDB, ${row}`, bound: ['at most', limit], name: 'commands', row, metric: 'latencies'
  })),
  { text: `commands to MongoDB ${commands.AFTER_CHANGE}`, bound: ['at most', 15], name: 'commands', row: commands.AFTER_CHANGE, metric: 'commands' },
  { text: `commands to MongoDB ${commands.AT_REST}`, bound: ['at most', 2], name: 'commands', row: commands.AT_REST, metric: 'commands' },
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
  // 1.2, and a tenth more.
  { text: `p99 beside ${OPERATORS}, two cores, of quiet`, bound: ['at most', 1.32], name: 'disturbed', row: disturbedRow(OPERATORS, 1), over: disturbedRow(QUIET, 1), metric: 'p99' },
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
  { text: 'start to first answer, of a bare Fastify app', bound: ['at most', 2.42], name: 'start', row: start.SERVICE, over: start.BARE, metric: 'milliseconds' },
  { text: 'processor time of the start to the first answer, of a bare Fastify app', bound: ['at most', 3.5], name: 'start', row: start.SERVICE, over: start.CACHED, metric: 'cpu' }
]

export interface MeasuredTarget {
  text: string
  bound: string
  /** Null where it was not measured. */
  value: Spread | null
  met: boolean | null
}

/** Of processor time, the other row's over this one's where much is wanted, and this one's over the other's where little is. */
function compareRows (row: Row, base: Row, metric: string, side: Target['bound'][0]): Spread {
  if (!COSTS.includes(metric)) return ratioOf(row, base, metric)
  return side === 'at least' ? shareOf(row, base, metric) : shareOf(base, row, metric)
}

export function measureTargets (results: CaseResult[]): MeasuredTarget[] {
  return TARGETS.map(({ text, bound: [side, limit], name, row: wanted, over, metric }) => {
    const bound = `${side} ${limit.toLocaleString('en')}`
    const row = findRow(results, name, wanted)
    const base = over === undefined ? undefined : findRow(results, name, over)
    if (row === undefined || !isMeasured([row], metric) || (over !== undefined && base === undefined)) return { text, bound, value: null, met: null }
    const value = base === undefined ? spread(valuesOf(row, metric)) : compareRows(row, base, metric, side)
    return { text, bound, value, met: side === 'at least' ? value.median >= limit : value.median <= limit }
  })
}
