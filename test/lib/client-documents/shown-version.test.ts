import t from 'tap'
import { createDocument } from '../../../lib/client-documents/record.ts'
import type { DocumentRecord } from '../../../lib/client-documents/record.ts'
import { openDocuments } from '../../helpers/documents.ts'
import { openRules } from '../../helpers/services.ts'

// The page has shown one version of a document. Another one may have come by the time of the decision.

const URL = 'https://agent.example/client.json'
const DAY = 24 * 60 * 60_000

const { store, now, records } = await openRules(t)
const documents = openDocuments(t, { store, now, hosts: '*' })

const make = (client_name: string): DocumentRecord => (
  createDocument(URL, { body: { client_name, redirect_uris: [`https://agent.example/${client_name}`], method: 'none' }, lifetime: DAY }, now, false))
const [shown, other] = [make('shown'), make('other')]

/** The present version, whether another person has allowed it, and the name of the stored client after somebody has allowed `shown`. */
const CASES: { present: DocumentRecord | null, accepted?: DocumentRecord, stored: string | undefined }[] = [
  { present: shown, stored: 'shown' },
  { present: shown, accepted: shown, stored: 'shown' },
  { present: shown, accepted: other, stored: 'shown' },
  { present: other, stored: undefined },
  { present: other, accepted: shown, stored: 'shown' },
  { present: other, accepted: other, stored: 'other' },
  { present: null, stored: undefined }
]

for (const { present, accepted, stored } of CASES) {
  const name = (document?: DocumentRecord | null) => document?.body.client_name ?? 'none'
  t.test(`somebody allows the version that they were shown, the present one is '${name(present)}', and the allowed one '${name(accepted)}'`, async (t) => {
    for (const collection of ['clients', 'documents']) await store.collection(collection).deleteMany({ before: { id: '~' } })
    if (accepted !== undefined) {
      await store.collection<DocumentRecord>('documents').put(accepted)
      await documents.accept(URL, accepted.print)
    }
    if (present === null) await store.collection('documents').delete(shown.id)
    else await store.collection<DocumentRecord>('documents').put(present)
    const before = await records.clients.get(URL)
    await documents.accept(URL, shown.print)
    const after = await records.clients.get(URL)
    t.equal(after?.name, stored)
    if (present?.print !== shown.print) t.strictSame(after, before, 'nothing is stored')
  })
}
