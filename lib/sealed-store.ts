import { configureMigration } from './maintenance/migration.ts'
import { checkSecretKeys, isSealed } from './crypto/seal.ts'
import { resolveSecretKeys } from './crypto/secret-key.ts'
import { createSecretBox } from './crypto/secrets.ts'
import { watchStore } from './metrics/watch-store.ts'
import { registerRenderers } from './renderers.ts'
import type { ServiceOptions } from './services.ts'
import { COLLECTIONS } from './store/collections.ts'
import { openStore } from './store/index.ts'
import { migrateDocuments, recheckWords } from './store/migrator.ts'

type StoreOptions = ServiceOptions & { now: NonNullable<ServiceOptions['now']>, onWarning: (message: string) => void, onError: (error: unknown) => void }

/**
 * Opens the store, and the secret key under which its secrets are sealed.
 * @param closers takes what closes the store, unless the host has handed it in
 * @throws Error for a store that cannot be opened, and for a missing or wrong secret key
 */
export async function openSealedStore (options: StoreOptions, closers: AsyncDisposableStack) {
  const { store: handedIn, createDatabase: create = !options.production, migrates = options.dryRun !== true, meter, now, onWarning, onError, walLimit } = options
  const storeOptions = { collections: COLLECTIONS, now, onError, onWarning, create, migrate: migrates, timeout: options.storeTimeout, walLimit }
  /** Opens a store only for this check, unless one was handed in. This happens at most once, before the key file exists. */
  async function isOpenedBefore (): Promise<boolean> {
    const store = handedIn ?? await openStore(options.database, storeOptions)
    try {
      return await isSealed(store)
    } finally {
      if (handedIn === undefined) await store.close()
    }
  }
  const box = createSecretBox(...await resolveSecretKeys(options, isOpenedBefore, onWarning, { dryRun: options.dryRun, create }))
  const opened = handedIn ?? await openStore(options.database, { ...storeOptions, renderers: registerRenderers(box.keys) })
  if (handedIn === undefined) closers.defer(async () => { await opened.close() })
  const store = meter === undefined ? opened : watchStore(opened, meter)
  await checkSecretKeys(store, box.keyIds, options, options.dryRun)
  if (migrates) {
    await migrateDocuments(opened, { ...await configureMigration(options), now })
    await recheckWords(opened, { now })
  }
  return {
    box,
    /** The store whose calls are measured. */
    store,
    opened,
    isOwn: handedIn === undefined
  }
}
