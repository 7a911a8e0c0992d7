import type { Store, StoreOptions } from './port.ts'

/**
 * Opens the store at a URL: `sqlite:PATH`, `sqlite::memory:`, `mongodb://...` or `mongodb+srv://...`.
 * An engine's module is loaded when it is needed, so that an unused driver costs nothing.
 */
export async function openStore (url: string, options: StoreOptions): Promise<Store> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase()
  switch (scheme) {
    case 'sqlite': {
      const { openSqliteStore } = await import('./sqlite.ts')
      return openSqliteStore(url, options)
    }
    case 'mongodb':
    case 'mongodb+srv': {
      const { openMongoStore } = await import('./mongo.ts')
      return openMongoStore(url, options)
    }
    // The rest of the URL may contain credentials, so the message does not repeat it.
    default:
      throw new Error(`DATABASE_URL: ${scheme === undefined ? 'no scheme' : `unknown scheme '${scheme}:'`}; it begins with sqlite:, mongodb:// or mongodb+srv://`)
  }
}
