import { COLLECTIONS } from './collections.ts'

/** What an engine says of a database, apart from its documents. */
export interface EngineReport {
  /** Damages of the file. */
  broken: string[]
  /** Tables or collections that are declared, and not there. */
  missing: string[]
  /** Tables or collections of the database that are not declared. */
  unknown: string[]
  /** Of the engine. */
  version: string
  /** Bytes and numbers of pages, by the engine's names. */
  sizes: Record<string, number>
}

/** Milliseconds for a step on MongoDB. */
const TIMEOUT = 10_000

/** Reads the report on the database at a URL. It changes nothing, and services may use the database meanwhile. A signal stops it. */
export async function inspectDatabase (url: string, { timeout = TIMEOUT, signal }: { timeout?: number, signal?: AbortSignal } = {}): Promise<EngineReport> {
  if (!url.startsWith('sqlite:')) return await (await import('./mongo/inspect.ts')).inspectServer(url, COLLECTIONS, timeout)
  const [{ inspectFile }, { parsePath }] = await Promise.all([import('./sqlite/inspect.ts'), import('./sqlite.ts')])
  return await inspectFile(parsePath(url), signal)
}
