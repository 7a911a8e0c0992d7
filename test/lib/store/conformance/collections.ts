import type { CollectionSpec, Document, Json } from '../../../../lib/store/port.ts'

// Separate from the suite, so that a process that only writes does not load tap.

/** A document of any shape. */
export type Thing = Document & { [field: string]: Json | undefined }

export const COLLECTIONS = [
  {
    name: 'things',
    keys: { name: 'string', owner: 'string', deputy: 'string', at: 'string', rank: 'number', live: 'boolean', serial: 'number' },
    unique: ['name', 'serial'],
    uniqueItems: ['aliases'],
    search: { field: 'words', order: 'name' },
    indexes: [['owner', 'name'], ['rank'], ['at']]
  },
  { name: 'owners', keys: { title: 'string' } },
  { name: 'sessions', keys: { expired_at: 'string' }, expiry: 'expired_at' }
] as const satisfies CollectionSpec[]
