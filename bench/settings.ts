import { parseArgs } from 'node:util'

export interface Settings {
  /** Names of cases; empty: all. */
  only: string[]
  rounds: number
  warmups: number
  /** Length of one measurement. */
  seconds: number
  connections: number
  /** Whether to measure also with millions of records. */
  full: boolean
  /** A MongoDB-compatible server; absent: the cases that need one are left out. */
  mongodbUrl: string | undefined
}

export const USAGE = `Usage: npm run bench -- [options]
  --only CASE,CASE    run only these cases
  --rounds N          counted rounds (5)
  --warmups N         rounds before them (1)
  --seconds N         length of one measurement (2)
  --connections N     of the driver (50)
  --full              also 1,000,000 clients and 5,000,000 tokens: about an hour, 10 GB in the temporary directory
MONGODB_URL names a server for the cases mongodb and commands. BENCH_FORMER is another checkout, for the cases former, former-writes and former-start. BENCH_CACHE is the directory for filled databases.`

export function readSettings (args: string[]): Settings {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string', default: '' },
      rounds: { type: 'string', default: '5' },
      warmups: { type: 'string', default: '1' },
      seconds: { type: 'string', default: '2' },
      connections: { type: 'string', default: '50' },
      full: { type: 'boolean', default: false }
    }
  })
  const read = (name: 'rounds' | 'warmups' | 'seconds' | 'connections', least: number) => {
    const value = Number(values[name])
    if (!(value >= least)) throw new Error(`--${name}: must be a number of at least ${least}`)
    return value
  }
  return {
    only: values.only.split(',').filter((name) => name !== ''),
    rounds: read('rounds', 1),
    warmups: read('warmups', 0),
    seconds: read('seconds', 0.1),
    connections: read('connections', 1),
    full: values.full,
    mongodbUrl: process.env.MONGODB_URL || undefined
  }
}
