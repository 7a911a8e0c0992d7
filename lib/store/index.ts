import { COLLECTIONS } from './collections.ts'
import type { ClientOption } from './mongo/host-client.ts'
import { type MigratorOptions, migrateDocuments, requireLayout } from './migrator.ts'
import type { Store, StoreOptions } from './port.ts'
import { LAYOUT } from './state.ts'

export interface OpenStoreOptions extends Partial<StoreOptions> {
  /** For a MongoDB URL, which then only names the database: a MongoClient, or a function that makes one. */
  client?: ClientOption | undefined
  /** For tests. */
  migrator?: Pick<MigratorOptions, 'steps' | 'lease'>
}

/**
 * Opens the store at a URL: `sqlite:PATH`, `sqlite::memory:`, `mongodb://...` or `mongodb+srv://...`, by default with the
 * collections of the service, and migrates its documents to the layout of this release. The module of an engine is loaded when it
 * is needed, so that an unused driver costs nothing.
 */
export async function openStore (url: string, { client, migrator, ...given }: OpenStoreOptions = {}): Promise<Store> {
  const options: StoreOptions = { collections: COLLECTIONS, now: Date.now, ...given }
  const store = await openEngine(url, options, client)
  try {
    const layout = options.layout ?? LAYOUT
    if (options.migrate === false) await requireLayout(store, layout)
    else await migrateDocuments(store, { layout, now: options.now, ...migrator })
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

async function openEngine (url: string, options: StoreOptions, client: ClientOption | undefined): Promise<Store> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase()
  switch (scheme) {
    case 'sqlite': {
      const { openSqliteStore } = await import('./sqlite.ts')
      return openSqliteStore(url, options)
    }
    case 'mongodb':
    case 'mongodb+srv': {
      const { openMongoStore } = await import('./mongo.ts')
      return openMongoStore(url, { ...options, client })
    }
    // The rest of the URL may contain credentials, so the message does not repeat it.
    default:
      throw new Error(`the database URL has ${scheme === undefined ? 'no scheme' : `the unknown scheme '${scheme}:'`}; it must begin with sqlite:, mongodb:// or mongodb+srv://`)
  }
}

/** A database URL for messages: a MongoDB URL without user, password and options. */
export function hideCredentials (url: string): string {
  return url.replace(/^(mongodb(?:\+srv)?:\/\/)(?:.*@)?([^?]*).*$/is, '$1$2')
}
