import type { FastifyInstance } from 'fastify'
import { type ClientsAct, clientsPage, documentsPage } from '../../lib/pages/console/clients.ts'
import type { Operation } from '../../plugins/access-table.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import type { Client, ClientItem } from '../../schemas/client.ts'
import type { Document } from '../../schemas/document.ts'
import { ApiError } from './api.ts'
import { showClient } from './client.ts'
import { toRefusedForm } from './conflicts.ts'
import { readLines } from './lines.ts'
import { type AddPage, type ConsoleForm, type Desk, type Shown, type Submitted, toPath } from './page.ts'
import { COUNTED, type Counted, readText, toCount } from './people.ts'
import { OTHERS_CLIENTS } from './sections.ts'

/** Clients on a page of the list. */
const LIMIT = 25

/** Unregistered apps that the page shows. */
const MOST_DOCUMENTS = 100

/** What a row of the list shows. */
const FIELDS = 'name,userId,disabled,first_party,document'

/** What can be done, each with the operation that it calls. */
const ACTS: Readonly<Record<ClientsAct, Operation>> = { create: 'createClient', block: 'blockDocument', unblock: 'patchClient', refresh: 'refreshDocument' }

const listActs = ({ may }: Pick<Desk, 'may'>): ClientsAct[] => (Object.keys(ACTS) as ClientsAct[]).filter((name) => may(ACTS[name]))

const isOfDocuments = (desk: Desk): boolean => readText(desk, 'kind') === 'documents' && desk.may('listDocuments')

/** What the API says against a search, or a position that no list has. */
async function unlessInvalid<T> (work: Promise<T>): Promise<T | { refusal: string }> {
  try {
    return await work
  } catch (error) {
    if (error instanceof ApiError && error.code === 'ErrParam') return { refusal: error.message }
    throw error
  }
}

async function showList (desk: Desk): Promise<Shown> {
  const [search, user] = [readText(desk, 'search').trim(), readText(desk, 'user', 128).trim()]
  const [after, before] = [readText(desk, 'after', 4096), readText(desk, 'before', 4096)]
  const query = { user, search, fields: FIELDS, limit: String(LIMIT), after, before }
  const list = await unlessInvalid(desk.call<ClientItem[]>({ path: '/client/list', query }))
  const counted = 'refusal' in list ? undefined : await desk.read<Counted>('countClients', { path: '/client/count', query: { user, search, max: COUNTED } })
  return (view, context) => clientsPage(view, {
    ...('refusal' in list ? { clients: [], refusal: list.refusal } : { clients: list.data, after: list.after, before: list.before }),
    count: counted && toCount(counted.data),
    sought: search,
    user,
    isFirst: after === '' && before === '',
    acts: listActs(desk),
    hasDocuments: desk.may('listDocuments'),
    refused: toRefusedForm(desk, {})
  }, context)
}

/** Undefined where the configuration turns them off. */
async function readDocuments (desk: Desk, contains: string): Promise<Document[] | undefined> {
  try {
    return (await desk.call<Document[]>({ path: '/client/document/list', query: { contains, limit: String(MOST_DOCUMENTS + 1) } })).data
  } catch (error) {
    if (error instanceof ApiError && error.code === 'ErrNotFound') return undefined
    throw error
  }
}

async function showDocuments (desk: Desk): Promise<Shown> {
  const sought = readText(desk, 'search').trim()
  const found = await readDocuments(desk, sought)
  return (view, context) => documentsPage(view, {
    documents: found?.slice(0, MOST_DOCUMENTS), count: found?.length ?? 0, sought, acts: listActs(desk), hasDocuments: true, refused: toRefusedForm(desk, {})
  }, context)
}

const BACK = { query: { kind: 'documents' } } as const

const readUrl = ({ request }: Desk): string => readField(request, 'url').trim()

const FORMS: Readonly<Record<string, ConsoleForm>> = {
  create: {
    needs: 'createClient',
    async submit (desk): Promise<Submitted> {
      const { request } = desk
      const data = { name: readField(request, 'name').trim(), redirectUris: readLines(request, 'redirectUris'), scopes: readLines(request, 'scopes') }
      const credentials = readField(request, 'confidential') !== ''
      const { data: { clientId } } = await desk.call<{ clientId: string }>({ method: 'POST', path: '/client', body: { data, credentials } })
      if (!credentials) return { done: 'created', to: toPath('clients', clientId) }
      const { data: { clientSecret } } = await desk.call<Client>({ path: `/client/${encodeURIComponent(clientId)}` })
      return { shown: await showClient(desk, clientId, clientSecret === undefined ? undefined : { kind: 'readable', value: clientSecret }) }
    }
  },
  block: {
    needs: 'blockDocument',
    async submit (desk) {
      await desk.call({ method: 'POST', path: '/client/document/block', body: { data: { url: readUrl(desk) } } })
      return { done: 'document-blocked', ...BACK }
    }
  },
  unblock: {
    needs: 'patchClient',
    async submit (desk) {
      await desk.call({ method: 'PATCH', path: `/client/${encodeURIComponent(readUrl(desk).slice(0, 128))}`, body: { data: { disabled: false } } })
      return { done: 'document-unblocked', ...BACK }
    }
  },
  refresh: {
    needs: 'refreshDocument',
    async submit (desk) {
      await desk.call({ method: 'POST', path: '/client/document/refresh', body: { data: { url: readUrl(desk) } } })
      return { done: 'document-refreshed', ...BACK }
    }
  }
}

/** The lists of registered clients and of unregistered apps. */
export function clientsPages (_app: FastifyInstance, add: AddPage): void {
  add({
    path: '/clients',
    section: 'clients',
    needs: OTHERS_CLIENTS,
    commands: (desk) => isOfDocuments(desk)
      ? ['client document list', 'client document block URL', 'client document refresh URL']
      : ['client list', 'client list --owner ACCOUNT', 'client create --owner ACCOUNT --name NAME --redirect-uri URI --credentials'],
    show: async (desk) => isOfDocuments(desk) ? await showDocuments(desk) : await showList(desk),
    forms: FORMS
  })
}
