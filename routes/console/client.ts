import type { FastifyInstance } from 'fastify'
import { listGrants } from '../../lib/clients/kinds.ts'
import { findShownTokenAuth } from '../../lib/clients/show-client.ts'
import type { ClientAct, ClientPageView, ShownSecret } from '../../lib/pages/console/client-view.ts'
import { clientPage } from '../../lib/pages/console/client.ts'
import type { ConsoleDone } from '../../lib/pages/console/index.ts'
import type { Operation } from '../../plugins/access-table.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import type { Client, ClientSecret, ServiceToken } from '../../schemas/client.ts'
import type { Event } from '../../schemas/event.ts'
import type { UserItem } from '../../schemas/user.ts'
import { type Answered, ApiError } from './api.ts'
import { toRefusedForm } from './conflicts.ts'
import { readDay, readLines } from './lines.ts'
import { type AddPage, type ConsoleForm, type Desk, type Shown, type Submitted, createCall } from './page.ts'
import { OTHERS_CLIENTS } from './sections.ts'

/** Events that the page shows; the others are a page of their own. */
const EVENTS = 20

/** What can be done, each with the operation that it calls. */
const ACTS: Readonly<Record<ClientAct, Operation>> = {
  edit: 'patchClient',
  reveal: 'getClient',
  renew: 'patchClient',
  disable: 'patchClient',
  take: 'patchClient',
  remove: 'deleteClient',
  'add-secret': 'addClientSecret',
  'remove-secret': 'removeClientSecret',
  'add-token': 'createClientToken',
  'remove-token': 'removeClientToken',
  block: 'blockDocument',
  refresh: 'refreshDocument'
}

/** What can be done with a client from a document: the document decides the rest. */
const OF_DOCUMENTS: readonly ClientAct[] = ['block', 'refresh', 'disable', 'remove']

/** What needs a client that authenticates. */
const OF_CONFIDENTIAL: readonly ClientAct[] = ['add-secret', 'add-token']

/** The id in the path: of an unregistered app its URL, or the id of its document. */
export const readClientId = ({ request }: Pick<Desk, 'request'>): string => (request.params as { clientId: string }).clientId

const toApi = (clientId: string, rest = ''): string => `/client/${encodeURIComponent(clientId)}${rest}`

/** An argument of a command in a shell. */
export const quote = (text: string): string => /^[\w.:/@+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/** A client without its readable secret, and whether it has one that the reader may see. */
export async function readClient ({ call }: Desk, clientId: string): Promise<Answered<Omit<Client, 'clientSecret'>> & { isReadable: boolean }> {
  const { data: { clientSecret, ...data }, ...rest } = await call<Client>({ path: toApi(clientId) })
  // The API has other operations at the names of some ids.
  if (typeof data.clientId !== 'string') throw new ApiError('ErrNotFound', 'clientId: no such client')
  return { ...rest, data, isReadable: clientSecret !== undefined }
}

/** The account of the owner. Undefined where the reader may not read it, or it was deleted. */
async function findOwner (desk: Desk, userId: string | undefined): Promise<string | undefined> {
  if (userId === undefined) return undefined
  try {
    return (await desk.read<UserItem>('getUser', { path: `/user/${encodeURIComponent(userId)}`, query: { fields: 'account' } }))?.data.account
  } catch (error) {
    if (error instanceof ApiError && error.code === 'ErrNotFound') return undefined
    throw error
  }
}

/** What forms change, as they show it. */
const toTexts = ({ name, redirectUris, scopes, backchannelLogoutUri = '', image = '' }: Omit<Client, 'clientSecret'>): Record<string, string> =>
  ({ name, redirectUris: redirectUris.join('\n'), scopes: scopes.join('\n'), backchannelLogoutUri, image })

function listActs ({ may, session }: Desk, { document, userId }: Omit<Client, 'clientSecret'>, isConfidential: boolean): ClientAct[] {
  const isPossible = (name: ClientAct) => document === undefined
    ? name !== 'block' && name !== 'refresh' && (isConfidential || !OF_CONFIDENTIAL.includes(name)) && (name !== 'take' || userId !== session.user.id)
    : OF_DOCUMENTS.includes(name)
  return (Object.entries(ACTS) as [ClientAct, Operation][]).filter(([name, operation]) => may(operation) && isPossible(name)).map(([name]) => name)
}

/** The page of a client. @param shown what the answer of a form alone shows */
export async function showClient (desk: Desk, id: string, shown?: ShownSecret): Promise<Shown> {
  const { may } = desk
  // First: what is not there is answered like this alone.
  const { data: client, tag = '', isReadable } = await readClient(desk, id)
  const [secrets, tokens, events, owner] = await Promise.all([
    desk.read<ClientSecret[]>('listClientSecrets', { path: toApi(id, '/secret') }),
    desk.read<ServiceToken[]>('listClientTokens', { path: toApi(id, '/token') }),
    desk.read<Event[]>('listEvents', { path: '/event/list', query: { client: client.clientId, limit: String(EVENTS) } }),
    findOwner(desk, client.userId)
  ])
  const tokenAuth = findShownTokenAuth({ ...client, ...(isReadable && { confidential: true }) })
  const page: ClientPageView = {
    client,
    tokenAuth,
    grants: listGrants({ redirectUris: client.redirectUris, grants: client.grants, tokenAuth }),
    owner,
    mayOpenOwner: may('getUser'),
    mayPreview: may('previewToken'),
    isReadable,
    tag,
    secretsTag: secrets?.tag ?? '',
    secrets: secrets?.data,
    tokens: tokens?.data,
    events: events?.data,
    acts: listActs(desk, client, tokenAuth !== 'none'),
    refused: toRefusedForm(desk, toTexts(client)),
    shown
  }
  return (view, context) => clientPage(view, page, context)
}

/** Shows what only the answer of a form shows, on the page of the client. */
const show = async (desk: Desk, kind: ShownSecret['kind'], value: string): Promise<Submitted> =>
  ({ shown: await showClient(desk, readClientId(desk), { kind, value }) })

/** Shows the readable secret as it is now. */
async function reveal (desk: Desk): Promise<Submitted> {
  const { data: { clientSecret } } = await desk.call<Client>({ path: toApi(readClientId(desk)) })
  if (clientSecret === undefined) throw new ApiError('ErrParam', 'clientId: the client has no readable secret')
  return await show(desk, 'readable', clientSecret)
}

const readMatch = ({ request }: Desk, name: string): { match?: string } => {
  const match = readField(request, name)
  return match === '' ? {} : { match }
}

const patch = (done: ConsoleDone, body: object): ConsoleForm =>
  createCall('patchClient', done, (desk) => ({ method: 'PATCH', path: toApi(readClientId(desk)), body }))

/** The fields that the form changes: what is stored so already is not sent, so that the event names what has changed. */
async function readEdit (desk: Desk): Promise<object> {
  const { request } = desk
  const stored = (await readClient(desk, readClientId(desk))).data
  const [name, uri, image] = ['name', 'backchannelLogoutUri', 'image'].map((field) => readField(request, field).trim())
  const [redirectUris, scopes] = ['redirectUris', 'scopes'].map((field) => readLines(request, field))
  const isSame = (one: readonly string[] = [], other: readonly string[] = []) => [...new Set(one)].sort().join('\n') === [...other].sort().join('\n')
  return {
    ...(name !== stored.name.trim() && { name }),
    ...(!isSame(redirectUris, stored.redirectUris) && { redirectUris }),
    ...(!isSame(scopes, stored.scopes) && { scopes }),
    ...(uri !== (stored.backchannelLogoutUri ?? '') && { backchannelLogoutUri: uri === '' ? null : uri }),
    ...(image !== (stored.image ?? '') && { image: image === '' ? null : image })
  }
}

/** A secret of a client has changed under a form. There is nothing to compare: the page shows the present ones. */
const ofSecrets = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof ApiError) || error.statusCode !== 412) throw error
    throw new ApiError(error.code, error.message, { statusCode: 409 })
  }
}

const CREDENTIALS: Readonly<Record<string, ConsoleForm>> = {
  reveal: { needs: 'getClient', submit: reveal },
  renew: {
    needs: 'patchClient',
    async submit (desk) {
      await desk.call({ method: 'PATCH', path: toApi(readClientId(desk)), body: { regen_secret: true } })
      return await reveal(desk)
    }
  },
  'add-secret': {
    needs: 'addClientSecret',
    async submit (desk) {
      const data = { name: readField(desk.request, 'secretName').trim(), expiresAt: readDay(desk.request, 'secretEnd') }
      const { data: { secret } } = await ofSecrets(desk.call<{ secret: string }>({
        method: 'POST', path: toApi(readClientId(desk), '/secret'), body: { data }, ...readMatch(desk, 'secretsMatch')
      }))
      return await show(desk, 'secret', secret)
    }
  },
  'remove-secret': {
    needs: 'removeClientSecret',
    async submit (desk) {
      const secret = encodeURIComponent(readField(desk.request, 'secret').slice(0, 128))
      await ofSecrets(desk.call({ method: 'DELETE', path: toApi(readClientId(desk), `/secret/${secret}`), ...readMatch(desk, 'secretsMatch') }))
      return { done: 'secret-removed' }
    }
  },
  'add-token': {
    needs: 'createClientToken',
    async submit (desk) {
      const { request } = desk
      const resource = readField(request, 'tokenResource').trim()
      const data = {
        name: readField(request, 'tokenName').trim(),
        scopes: readLines(request, 'tokenScopes'),
        expiresAt: readDay(request, 'tokenEnd'),
        ...(resource !== '' && { resource })
      }
      const { data: { token } } = await desk.call<{ token: string }>({ method: 'POST', path: toApi(readClientId(desk), '/token'), body: { data } })
      return await show(desk, 'token', token)
    }
  },
  'remove-token': createCall('removeClientToken', 'token-removed', (desk) => ({
    method: 'DELETE', path: toApi(readClientId(desk), `/token/${encodeURIComponent(readField(desk.request, 'token').slice(0, 128))}`)
  }))
}

/** A form that calls an operation with the URL of an unregistered app. */
const ofDocument = (needs: Operation, done: ConsoleDone, rest: string): ConsoleForm => ({
  needs,
  async submit (desk): Promise<Submitted> {
    const { data: { clientId: url } } = await readClient(desk, readClientId(desk))
    await desk.call({ method: 'POST', path: `/client/document/${rest}`, body: { data: { url } } })
    return { done }
  }
})

const FORMS: Readonly<Record<string, ConsoleForm>> = {
  ...CREDENTIALS,
  edit: {
    needs: 'patchClient',
    async submit (desk) {
      await desk.call({ method: 'PATCH', path: toApi(readClientId(desk)), body: { data: await readEdit(desk) }, ...readMatch(desk, 'match') })
      return { done: 'saved' }
    }
  },
  disable: patch('client-disabled', { data: { disabled: true } }),
  enable: patch('client-enabled', { data: { disabled: false } }),
  unblock: patch('document-unblocked', { data: { disabled: false } }),
  take: patch('client-taken', { take_over: true }),
  block: ofDocument('blockDocument', 'document-blocked', 'block'),
  refresh: ofDocument('refreshDocument', 'document-refreshed', 'refresh'),
  remove: {
    needs: 'deleteClient',
    async submit (desk) {
      const { data: { clientId, name } } = await readClient(desk, readClientId(desk))
      const typed = readField(desk.request, 'typed').trim()
      // A name may have characters that nobody can type.
      if (typed === '' || (typed !== name.trim() && typed !== clientId)) throw new ApiError('ErrParam', 'typed: must be the name or the id of the client')
      await desk.call({ method: 'DELETE', path: toApi(readClientId(desk)) })
      return { done: 'deleted', to: '/clients' }
    }
  }
}

/** Commands that do the same. A document is named by its URL, which the path may not have. */
function listCommands (desk: Desk): string[] {
  const id = quote(readClientId(desk))
  if (/^(?:document:|https:)/.test(readClientId(desk))) return ['client document list', 'client document block URL', 'client document refresh URL']
  return [
    `client patch ${id} --name NAME`, `client patch ${id} --regen-secret`, `client patch ${id} --disable`, `client secret list ${id}`,
    `client secret add ${id} --name NAME`, `client key list ${id}`, `client token list ${id}`,
    `client token create ${id} --name NAME --scope SCOPE`, `client delete ${id}`
  ]
}

/** The page of one client. */
export function clientPages (_app: FastifyInstance, add: AddPage): void {
  add({
    path: '/clients/:clientId',
    section: 'clients',
    needs: OTHERS_CLIENTS,
    commands: listCommands,
    show: async (desk) => await showClient(desk, readClientId(desk)),
    forms: FORMS
  })
}
