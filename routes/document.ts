import type { FastifyInstance } from 'fastify'
import { DocumentListQuerySchema, DocumentSchema, DocumentUrlSchema } from '../schemas/document.ts'
import { explain } from '../lib/client-documents/error.ts'
import type { Documents } from '../lib/client-documents/index.ts'
import { IdentityError } from '../lib/errors.ts'
import { createRows, wholeList } from './rows.ts'
import type { RouteSettings } from './settings.ts'

/** Clients that nobody has registered (docs/agents.md). Once somebody has allowed one, it is a client like the others too. */
export async function documentRoutes (app: FastifyInstance, { stallTimeout }: Pick<RouteSettings, 'stallTimeout'>): Promise<void> {
  const { documents } = app.identity
  const add = createRows(app, 'client', { stallTimeout })

  async function load (): Promise<Documents> {
    if (documents === undefined) throw new IdentityError('ErrNotFound', 'path: clients from documents are off, see the option oidc.documents')
    return await documents.load()
  }

  add('listDocuments', 'GET /client/document/list', 'List the clients that nobody has registered', {
    query: DocumentListQuerySchema,
    answer: wholeList(DocumentSchema, 'The clients that people have allowed, those that are blocked, and those whose documents were read within the last hour.'),
    errors: ['ErrNotFound'],
    run: async ({ query }) => ({ batches: (await load()).list(query) })
  })

  add('blockDocument', 'POST /client/document/block', 'Block a client that nobody has registered, also before its first use', {
    description: 'Its tokens are revoked, and it gets no new ones. `PATCH /client/{clientId}` with `disabled: false` allows it again.',
    body: DocumentUrlSchema,
    errors: ['ErrNotFound'],
    run: async ({ body: { data: { url } } }) => await explain((await load()).block(url))
  })

  add('refreshDocument', 'POST /client/document/refresh', 'Fetch the document of a client again now', {
    description: 'A refused document is ErrParam, and its message names the rule.',
    body: DocumentUrlSchema,
    errors: ['ErrNotFound'],
    run: async ({ body: { data: { url } } }) => await explain((await load()).refresh(url))
  })
}
