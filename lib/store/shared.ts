import type { Collection, Document } from './port.ts'

/** One object: an engine plans look-ups by it. */
const ALONE = {}

/**
 * Reads a document that is only shown: it may be frozen, and shared with other readers. What changes a document reads its own by `get`.
 * A document that the engine has cached costs no read of the database.
 */
export async function readShared<T extends Document> (collection: Pick<Collection<T>, 'getLinked'>, id: string): Promise<T | null> {
  return (await collection.getLinked(id, ALONE))?.document ?? null
}
