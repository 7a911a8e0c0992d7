import { Lazy } from '../lazy.ts'
import type { DocumentParts, Documents } from './documents.ts'
import type { DocumentHosts } from './hosts.ts'

export type { DocumentView, Documents, Purpose, RefusedDocument } from './documents.ts'
export type { DocumentHosts } from './hosts.ts'

/** Loads the code for documents at its first use. */
export interface LazyDocuments {
  load (): Promise<Documents>
}

/** @param hosts absent: documents are off, and nothing is loaded */
export function openDocuments (hosts: DocumentHosts | undefined, parts: Omit<DocumentParts, 'hosts'>): LazyDocuments | undefined {
  if (hosts === undefined) return undefined
  const lazy = new Lazy(async () => (await import('./documents.ts')).createDocuments({ ...parts, hosts }))
  return { load: async () => await lazy.get() }
}
