import type { Base } from '../base.ts'
import { type Decision, changeRecord, unlessGone } from '../change-record.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError } from '../errors.ts'
import { type ClientKey, type ClientRecord, createClientRecord, withClientWords } from '../records/client.ts'
import { retryWrite } from '../retry.ts'
import { DuplicateKeyError } from '../store/port.ts'
import type { DocumentRecord } from './record.ts'
import { toClientFields, toKeyFields } from './record.ts'

const DAY = 24 * 60 * 60_000

const notFound = () => new IdentityError('ErrNotFound', 'clientId: no such client')

const listKeyIds = ({ keys = [] }: { keys?: ClientKey[] }): string[] => keys.map(({ id }) => id)

const haveSameKeys = (a: { keys?: ClientKey[] }, b: { keys?: ClientKey[] }): boolean => listKeyIds(a).join() === listKeyIds(b).join()

/** Whether the keys of a stored client come from another fetch of its document than this one. */
const hasOtherKeys = ({ document: stored, disabled_at }: ClientRecord, { body, fetched_at }: DocumentRecord): boolean =>
  disabled_at === undefined && stored?.method === 'private_key_jwt' && body.method === 'private_key_jwt' && stored.keys_at !== fetched_at

/** The stored client of a document, which people's decisions create and change. */
export function createAcceptance ({ store, now, recorder, forgetUse }: Pick<Base, 'store' | 'now' | 'recorder'> & {
  forgetUse: (client_id: string, keyId: string) => Promise<void>
}) {
  const clients = store.collection<ClientRecord>('clients')
  const documents = store.collection<DocumentRecord>('documents')

  /** Whether this call has stored it: of two at once, the unique id decides. */
  async function insert (record: ClientRecord, type: 'client.document_added' | 'client.updated', changed?: string[]): Promise<boolean> {
    try {
      await clients.insert({ ...record, ...recorder.attach(null, { happened: [{ type, id: record.id, user_id: null, ...(changed && { changed }) }] }) })
      return true
    } catch (error) {
      if (error instanceof DuplicateKeyError) return false
      throw error
    }
  }

  const toNew = (fields: ReturnType<typeof toClientFields>): ClientRecord => createClientRecord(now(), { ...fields, revision: 0 }, false)

  /** Changes a stored client, and forgets the uses of the keys that it loses. Null if it was removed meanwhile. */
  async function change (url: string, decide: (record: ClientRecord) => Decision<ClientRecord> | null): Promise<ClientRecord | null> {
    let previous: string[] = []
    const written = await unlessGone(changeRecord({ collection: clients, recorder, what: 'the client', notFound }, url, (record) => {
      previous = listKeyIds(record)
      const decision = decide(record)
      return decision && withClientWords(record, decision)
    }))
    const present = written === null ? previous : listKeyIds(written)
    for (const id of previous) if (!present.includes(id)) await forgetUse(url, id)
    return written
  }

  /** Changes a stored client to this version. A blocked one stays as it is. Null if it was removed meanwhile. */
  async function update (document: DocumentRecord): Promise<ClientRecord | null> {
    const time = toTimestamp(now())
    return await change(document.url, (record) => {
      const { document: previous } = record
      if (previous === undefined || record.disabled_at !== undefined || previous.hash === document.hash) return null
      const { id, ...fields } = toClientFields(document, time, record.keys)
      const changed = [
        ...(record.name === fields.name ? [] : ['name']),
        ...(JSON.stringify(record.redirectUris) === JSON.stringify(fields.redirectUris) ? [] : ['redirectUris']),
        ...(previous.method === fields.document.method ? [] : ['tokenAuth'])
      ]
      // A blocked URL was stored before anybody has seen its document.
      const isFirst = previous.hash === ''
      const happened = isFirst
        ? [{ type: 'client.document_added', id, user_id: null } as const]
        : changed.length > 0 ? [{ type: 'client.document_changed', id, user_id: null, changed } as const] : []
      const keys = haveSameKeys(record, fields) || isFirst ? [] : [{ type: 'client.keys_changed', id, user_id: null } as const]
      const unset = (['keys', 'signedRequests'] as const).filter((field) => fields[field] === undefined)
      const isMoved = changed.includes('tokenAuth') && !isFirst
      return { set: { ...fields, modifiedAt: time }, unset, increment: isMoved ? { epoch: 1 } : undefined, happened: [...happened, ...keys] }
    })
  }

  return {
    /**
     * Stores the client of this version of a document, because a person has allowed it. This comes before the code. The document then stays
     * as long as the client.
     */
    async accept (document: DocumentRecord): Promise<void> {
      const fields = toClientFields(document, toTimestamp(now()))
      await retryWrite('the client', async () => await insert(toNew(fields), 'client.document_added') || await update(document) !== null || null)
      await documents.update(document.id, { unset: ['expired_at'] })
    },

    /**
     * Gives a stored client the keys of its document. People do not decide about keys: whoever writes the document has them. A document that
     * asks for another method waits for a decision.
     * @param row the client as it was read before
     */
    async renewKeys (document: DocumentRecord, row: ClientRecord): Promise<void> {
      // Nothing more is read for a client whose keys are as new as the document.
      if (!hasOtherKeys(row, document)) return
      const time = toTimestamp(now())
      await change(document.url, (record) => {
        if (!hasOtherKeys(record, document)) return null
        const { keys } = toKeyFields(document, record.keys, time)
        return {
          set: { keys, document: { ...record.document!, keys_at: document.fetched_at } },
          happened: haveSameKeys(record, { keys }) ? [] : [{ type: 'client.keys_changed', id: document.url, user_id: null }]
        }
      })
    },

    /** Notes once a day that a stored client is used: the sweep removes unused ones. A client that was stored anew meanwhile is another one. */
    async touch (row: ClientRecord): Promise<void> {
      const { document, createdAt, revision = 0 } = row
      if (document === undefined || Date.parse(document.used_at) + DAY > now()) return
      await clients.update(row.id, {
        set: { document: { ...document, used_at: toTimestamp(now()) } }, increment: { revision: 1 }
      }, { equal: { revision, createdAt } })
    },

    /**
     * Blocks the client of a URL. One that nobody has used yet is stored, so that it gets no tokens later.
     * @param disable disables a stored client. Resolves to null if it was removed meanwhile
     */
    async block (url: string, id: string, disable: (url: string) => Promise<unknown>): Promise<void> {
      const nothing = { client_name: '', redirect_uris: [], method: 'none' as const }
      const fields = toClientFields({ id, url, body: nothing, hash: '', print: '', fetched_at: '' }, toTimestamp(now()))
      const record = { ...toNew(fields), disabled_at: toTimestamp(now()) }
      await retryWrite('the client', async () => await insert(record, 'client.updated', ['disabled']) || await disable(url) !== null || null)
    }
  }
}

export type Acceptance = ReturnType<typeof createAcceptance>
