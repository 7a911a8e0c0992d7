import { arch, availableParallelism, platform, release, totalmem } from 'node:os'
import type { Finding } from './doctor.ts'
import { COLLECTIONS } from '../store/collections.ts'
import type { EngineReport } from '../store/engine-report.ts'
import type { Store } from '../store/port.ts'
import { readVersion } from '../version.ts'
import type { Sealing } from './reseal.ts'

/** Options whose texts are words of a short list. */
const WORDS = ['logLevel', 'addresses', 'via']

/**
 * A configuration without its texts: numbers and switches stay. A text may be a secret, a person's address or the name of a host, so
 * it becomes `(set)`.
 */
export function redact (value: unknown, name = ''): unknown {
  if (typeof value === 'string') return WORDS.includes(name) ? value : '(set)'
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value
  if (Array.isArray(value)) return `(${value.length} set)`
  if (typeof value !== 'object') return value === undefined ? undefined : '(set)'
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, redact(one, key)]))
}

/** Null where the store fails: a bundle is made when something is wrong. */
async function attempt<T> (read: () => Promise<T>): Promise<T | null> {
  try {
    return await read()
  } catch {
    return null
  }
}

/** The number of documents of each collection, and of the work that waits or has failed in those that have any. */
async function countDocuments ({ store }: { store: Store }): Promise<Record<string, Record<string, number | null>>> {
  const counts: Record<string, Record<string, number | null>> = {}
  for (const { name, keys } of COLLECTIONS) {
    const collection = store.collection(name)
    const count = async (filter = {}) => await attempt(async () => await collection.count(filter))
    counts[name] = {
      documents: await count(),
      ...('state' in keys && { due: await count({ equal: { state: 'due' } }), failed: await count({ equal: { state: 'failed' } }) }),
      ...('event_due' in keys && { unpublished: await count({ since: { event_due: '' } }) })
    }
  }
  return counts
}

interface BundleParts {
  /** Absent when the database cannot be opened. */
  services: { store: Store, sealing: Pick<Sealing, 'status'> } | undefined
  engine: EngineReport | undefined
  config: object
  findings: readonly Finding[]
}

/** What a maintainer needs to help with a problem: no secret, and nothing about a person. */
export async function createBundle ({ services, engine, config, findings }: BundleParts): Promise<object> {
  const state = services && await attempt(async () => (await services.store.state.read()).state)
  return {
    made_at: new Date().toISOString(),
    version: readVersion(),
    node: process.version,
    system: { platform: platform(), release: release(), arch: arch(), processors: availableParallelism(), memory_bytes: totalmem() },
    engine: { name: services?.store.engine ?? null, version: engine?.version ?? null, sizes: engine?.sizes ?? null },
    layout: state && { version: state.version, oldest_reader: state.oldestReader, in_move: state.move?.role ?? null, migrates: state.migrator !== undefined },
    configuration: redact(config),
    collections: services === undefined ? null : await countDocuments(services),
    keys: services === undefined ? null : await attempt(async () => await services.sealing.status()),
    findings: findings.map(({ check, message }) => ({ check, message }))
  }
}
