import type { Test } from 'tap'
import { type DocumentParts, createDocuments } from '../../lib/documents/documents.ts'
import { createSilentRecorder } from './events.ts'

const never = async (): Promise<never> => { throw new Error('nothing is fetched, removed or disabled') }

/** The clients of documents, where nothing is fetched unless `parts` has `read`, and nothing is removed or disabled. */
export function openDocuments (t: Test, parts: Pick<DocumentParts, 'store' | 'now' | 'hosts'> & Partial<DocumentParts>) {
  return createDocuments({
    recorder: createSilentRecorder(parts.store),
    failures: { recordDocument: () => {} },
    removeUnused: never,
    forgetUse: never,
    counter: { count: never },
    disable: never,
    read: never,
    onRefused: () => {},
    onError: (error) => { t.fail(String(error)) },
    ...parts
  })
}
