import { COLLECTIONS } from './collections.ts'
import type { EngineReport } from './engine-report.ts'

/** Milliseconds for a step on MongoDB. */
const TIMEOUT = 10_000

/** Reads the report on the database at a URL. It changes nothing, and services may use the database meanwhile. A signal stops it. */
export async function inspectDatabase (url: string, { timeout = TIMEOUT, signal }: { timeout?: number, signal?: AbortSignal } = {}): Promise<EngineReport> {
  if (!url.startsWith('sqlite:')) return await (await import('./mongo/inspect.ts')).inspectServer(url, COLLECTIONS, timeout)
  const [{ inspectFile }, { parsePath }] = await Promise.all([import('./sqlite/inspect.ts'), import('./sqlite.ts')])
  return await inspectFile(parsePath(url), signal)
}
