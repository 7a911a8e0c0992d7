import type { Test } from 'tap'
import { type DocumentParts, createDocuments } from '../../lib/client-documents/documents.ts'
import { createBase } from './base.ts'

const never = async (): Promise<never> => { throw new Error('nothing is fetched, removed or disabled') }

/** The clients of documents, where nothing is fetched unless `parts` has `read`, and nothing is removed or disabled. */
export function openDocuments (t: Test, parts: Pick<DocumentParts, 'store' | 'now' | 'hosts'> & Partial<DocumentParts>) {
  return createDocuments({
    ...createBase({ store: parts.store, onError: (error) => { t.fail(String(error)) } }),
    failures: { recordDocument: () => {} },
    removeUnused: never,
    forgetUse: never,
    counter: { count: never },
    disable: never,
    read: never,
    onRefused: () => {},
    ...parts
  })
}
