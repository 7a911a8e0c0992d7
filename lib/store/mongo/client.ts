import { type DbOptions, MongoClient, type MongoClientOptions } from 'mongodb'
import type { Timers } from '../../timers.ts'
import { within } from './bounded-calls.ts'

const DEFAULT_DATABASE = 'identity'

/** The most connections: enough to keep a server busy, and not too many for it. */
const MAX_POOL_SIZE = 100

/** The parts of `mongodb://user:password@host1,host2/database?options`. The driver validates them. */
const URL_PARTS = /^mongodb(?:\+srv)?:\/\/(?:[^@/?]*@)?(?<hosts>[^/?]*)(?:\/(?<database>[^?]*))?(?:\?(?<query>.*))?$/s

/** The database that the path of the URL names. */
export function toDatabaseName (url: string): string {
  return decodeURIComponent(URL_PARTS.exec(url)?.groups?.database ?? '') || DEFAULT_DATABASE
}

/** The hosts in a URL, for messages: without its credentials. */
export function toHosts (url: string): string {
  return URL_PARTS.exec(url)?.groups?.hosts ?? ''
}

/** The limit for one step of a call: a little shorter than that of the call, so that the step's error comes first, which says more. */
export function toStepTimeout (timeout: number): number {
  return Math.max(1, Math.floor(timeout * 0.9))
}

/** A client of our own, with a limit for each step of a call. Options in the URL take precedence. */
export function createClient (url: string, timeout: number, overrides: MongoClientOptions = {}): MongoClient {
  const step = toStepTimeout(timeout)
  const defaults: MongoClientOptions = {
    appName: 'fastify-identity',
    maxPoolSize: MAX_POOL_SIZE,
    serverSelectionTimeoutMS: step,
    connectTimeoutMS: step,
    socketTimeoutMS: step,
    waitQueueTimeoutMS: step
  }
  const named = new Set([...new URLSearchParams(URL_PARTS.exec(url)?.groups?.query).keys()].map((name) => name.toLowerCase()))
  const options = Object.fromEntries(Object.entries(defaults).filter(([name]) => !named.has(name.toLowerCase())))
  try {
    return new MongoClient(url, { ...options, ...overrides })
  } catch (error) {
    throw new TypeError(`the MongoDB URL is invalid${toReason(url, error)}`)
  }
}

/** The driver's reason, unless it contains any part of the credentials. */
function toReason (url: string, error: unknown): string {
  const reason = error instanceof Error ? error.message : ''
  const secrets = (/\/\/(.*)@/s.exec(url)?.[1] ?? '').split(/[:@]/).filter((part) => part !== '')
  return reason === '' || secrets.some((secret) => reason.includes(secret)) ? '' : `: ${reason}`
}

/**
 * Override the options of a host's client. Reads go to the primary, so they see every acknowledged write, and JSON comes
 * back as it went in.
 */
export const READ_OPTIONS: Readonly<DbOptions> = {
  readPreference: 'primary',
  // The driver accepts the plain form; its type asks for a ReadConcern.
  readConcern: { level: 'local' } as DbOptions['readConcern'],
  ignoreUndefined: true,
  promoteValues: true,
  promoteLongs: true,
  useBigInt64: false,
  raw: false
}

/** For writes: acknowledged once a majority has them in the journal. */
export function toDbOptions (timeout: number): DbOptions {
  return { ...READ_OPTIONS, writeConcern: { w: 'majority', journal: true, wtimeoutMS: timeout } }
}

/** Resolves when the primary answers. */
export async function ping (client: MongoClient): Promise<void> {
  await client.db('admin').command({ ping: 1 }, { readPreference: 'primary' })
}

/** Closes a client. The driver first ends its sessions, which takes long when the server hangs. */
export async function closeClient (client: MongoClient, timeout: number, timers: Timers): Promise<void> {
  await within(timeout, () => client.close(), timers).catch(() => {})
}
