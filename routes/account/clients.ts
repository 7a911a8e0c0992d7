import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { IdentityError } from '../../lib/errors.ts'
import { describeScopes } from '../../lib/oidc/policy.ts'
import { readRegistry } from '../../lib/resources/registry.ts'
import type { AccountMount, Visit, Visits } from '../../plugins/account.ts'
import { PageError, sendPage } from '../../plugins/pages.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import type { Client } from '../../schemas/client.ts'
import { createPages, readDone } from './page.ts'

const schema = { hide: true }

/** Clients on one page. */
const LENGTH = 50

type One = { Params: { clientId: string } }

/** The apps that the person has registered, with their secrets. */
export function clientPages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { getHome, limitWrites, look } = mount
  const { clients, store } = app.identity
  const page = { look }

  createPages(app, mount, visits)('/clients', 'account-clients', {
    section: 'clients',
    async show ({ actor }, request) {
      const { after: from } = request.query as { after?: unknown }
      const fields = 'clientId,name,confidential,disabled,clientSecret'
      const { batches, after } = await clients.page({ limit: LENGTH, fields, ...(typeof from === 'string' && { after: from }) }, actor)
      const found = []
      for await (const batch of batches) found.push(...batch)
      return {
        clients: found.map(({ clientId, name = '', clientSecret, confidential, disabled }) => ({
          client_id: clientId,
          client: { name },
          confidential: clientSecret !== undefined || confidential === true,
          disabled: disabled === true
        })),
        ...(after !== undefined && { next: new URLSearchParams({ after }).toString() })
      }
    }
  })

  async function requireClient ({ actor }: Visit, clientId: string): Promise<Client> {
    try {
      return await clients.require(clientId, actor)
    } catch (error) {
      if (!(error instanceof IdentityError) || error.code !== 'ErrPerm') throw error
      throw new PageError('ErrPerm', error.message, ({ account }) => account.vouchedFor)
    }
  }

  const open = async (request: FastifyRequest<One>, reply: FastifyReply) =>
    await visits.open(request, reply, { section: 'clients', path: `clients/${request.params.clientId}`, sensitive: true })

  async function show (reply: FastifyReply, visit: Visit, client: Client, withSecret: boolean): Promise<FastifyReply> {
    const { clientId, name, clientSecret, createdAt, redirectUris, scopes, disabled = false } = client
    return await sendPage(reply, 'account-client', {
      ...visit.view,
      ...readDone(reply.request),
      client_id: clientId,
      client: { name },
      created_at: createdAt,
      confidential: clientSecret !== undefined,
      disabled,
      redirectUris,
      scopes: describeScopes(scopes, await readRegistry(store)),
      ...(withSecret && clientSecret !== undefined && { secret: clientSecret })
    }, page)
  }

  app.get<One>('/clients/:clientId', { schema }, async (request, reply) => {
    const visit = await open(request, reply)
    if (visit === null) return reply
    return await show(reply, visit, await requireClient(visit, request.params.clientId), false)
  })

  app.post<One>('/clients/:clientId', { schema }, async (request, reply) => {
    const visit = await open(request, reply)
    if (visit === null) return reply
    const { actor, view } = visit
    const client = await requireClient(visit, request.params.clientId)
    const { clientId, name } = client
    const path = `${getHome()}/clients/${clientId}`
    const action = readField(request, 'action')
    if (action !== 'renew' && action !== 'delete') return await show(reply, visit, client, action === 'show')
    if (readField(request, 'confirm') === '') {
      return await sendPage(reply, 'account-confirm', {
        ...view,
        question: ({ account }, subject) => action === 'renew' ? account.renewQuestion({ app: subject }) : account.deleteQuestion({ app: subject }),
        subject: name.trim() === '' ? clientId : name,
        warning: ({ account }) => action === 'renew' ? account.renewWarning : account.deleteWarning,
        submit: ({ account }) => action === 'renew' ? account.renewSecret : account.deleteClient,
        action: path,
        back: path,
        fields: { action }
      }, page)
    }
    await limitWrites(actor.user_id)
    if (action === 'renew') {
      await clients.patch(clientId, { regen_secret: true }, actor)
      return reply.redirect(`${path}?done=renewed`, 303)
    }
    await clients.remove(clientId, actor)
    return reply.redirect(`${getHome()}/clients?done=removed`, 303)
  })
}
