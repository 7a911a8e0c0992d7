import { type Document, DuplicateKeyError, type MaybePromise, type Store } from '../store/port.ts'
import type { SecretBox } from './secrets.ts'

/** A document of the collection `keys`, which is sealed under the configured secret key and resealed by its rotation. */
interface StoredKeyRecord extends Document {
  revision: number
  sealed: string
}

/**
 * Reads a key that is stored, so that a rotation of the secret key changes nothing that was made with it.
 * @param make makes it, as a text, where there is none yet. Of processes that do so at once, all get the same
 */
export async function readStoredKey (
  { store, box }: { store: Store, box: Pick<SecretBox, 'seal' | 'open'> }, id: string, make: () => MaybePromise<string>
): Promise<string> {
  const keys = store.collection<StoredKeyRecord>('keys')
  for (;;) {
    const found = await keys.get(id)
    if (found !== null) return box.open(found.sealed, id)
    await keys.insert({ id, revision: 0, sealed: box.seal(await make(), id) }).catch((error: unknown) => {
      if (!(error instanceof DuplicateKeyError)) throw error
    })
  }
}
