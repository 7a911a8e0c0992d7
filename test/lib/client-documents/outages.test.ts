import t from 'tap'
import type { DocumentHosts } from '../../../lib/client-documents/hosts.ts'
import { OutboundError } from '../../../lib/outbound/fetcher.ts'
import { openDocuments } from '../../helpers/documents.ts'
import { recordOutages } from '../../helpers/outages.ts'
import { openRules } from '../../helpers/services.ts'

const AGENT = 'https://agent.example/client.json'
const DOCUMENT = { client_id: AGENT, client_name: 'Agent', redirect_uris: ['https://agent.example/callback'], token_endpoint_auth_method: 'none' }

const { store, now } = await openRules(t)

function open (hosts: DocumentHosts) {
  const host = { isDown: true }
  const { outages, told } = recordOutages()
  const documents = openDocuments(t, {
    store,
    now,
    async read () {
      if (host.isDown) throw new OutboundError('ETIMEDOUT')
      return { status: 200, type: 'application/json', headers: {}, body: Buffer.from(JSON.stringify(DOCUMENT)) }
    },
    hosts,
    outages
  })
  return { documents, told, host }
}

t.test('a named host that does not answer is one line, and its end another', async (t) => {
  const { documents, told, host } = open(['agent.example'])
  for (let time = 0; time < 5; time++) await t.rejects(documents.test(AGENT), { message: 'the host of the document does not answer' })
  host.isDown = false
  await documents.test(AGENT)
  t.strictSame(told, ['document agent.example: the host of the document does not answer', 'document agent.example: over after 5'])
})

t.test('a host that a stranger names has no outage, one whose client people use has', async (t) => {
  const { documents, told } = open('*')
  await t.rejects(documents.test(AGENT), { message: 'the host of the document does not answer' })
  t.strictSame(told, [])
  await store.collection<{ id: string, name: string }>('clients').put({ id: AGENT, name: 'Agent' })
  await t.rejects(documents.test(AGENT), { message: 'the host of the document does not answer' })
  t.strictSame(told, ['document : the host of the document does not answer'])
})
