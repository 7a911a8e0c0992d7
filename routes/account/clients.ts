import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LONGEST_KEYS, parseKeys } from '../../lib/key-text.ts'
import { findShownTokenAuth } from '../../lib/clients/show-client.ts'
import { FIRST } from '../../lib/records/client.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { MOST_KEYS } from '../../lib/crypto/public-keys.ts'
import { IdentityError } from '../../lib/errors.ts'
import { describeScopes } from '../../lib/oidc/policy.ts'
import type { Pages } from '../../lib/pages/contract.ts'
import { html } from '../../lib/pages/html.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import { readRegistry } from '../../lib/resources/registry.ts'
import type { AccountMount, Visit, Visits } from '../../plugins/account.ts'
import { PageError, sendPage } from '../../plugins/pages.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import type { Client } from '../../schemas/client.ts'
import { LIMITS } from '../../schemas/common.ts'
import { createPages, readDone } from './page.ts'
import { readParameter } from '../../plugins/parameters.ts'

const schema = { hide: true }

/** Clients on one page. */
const LENGTH = 50

/** Characters of a day, as a field of a form has it. */
const DAY_LENGTH = 10

type One = { Params: { clientId: string } }

/** What cannot be undone. */
type Act = 'renew' | 'remove' | 'remove-key' | 'delete'

const isAct = (action: string): action is Act => Object.hasOwn(QUESTIONS, action)

/** What is asked before an act that cannot be undone. */
const QUESTIONS: Record<Act, Pick<Pages['account-confirm'], 'question' | 'warning' | 'submit'>> = {
  renew: {
    question: ({ account }, app) => account.renewQuestion({ app }),
    warning: ({ account }) => account.renewWarning,
    submit: ({ account }) => account.renewSecret
  },
  remove: {
    question: ({ account }, name) => account.removeSecretQuestion({ name }),
    warning: ({ account }) => account.removeSecretWarning,
    submit: ({ account }) => account.remove
  },
  'remove-key': {
    question: ({ account }, name) => account.removeKeyQuestion({ name }),
    warning: ({ account }) => account.removeKeyWarning,
    submit: ({ account }) => account.remove
  },
  delete: {
    question: ({ account }, app) => account.deleteQuestion({ app }),
    warning: ({ account }) => account.deleteWarning,
    submit: ({ account }) => account.deleteClient
  }
}

/** What a form says of such an act. */
interface Given {
  action: Act
  secret: string
  key: string
}

/** Why a new secret was refused. Undefined for an error that the reader has not caused. */
function describeRefusal ({ message }: IdentityError): { error: Message, wrong?: 'name' | 'expires' } | undefined {
  if (message.startsWith('name:')) return { error: ({ account }) => account.wrongSecretName, wrong: 'name' }
  if (message.startsWith('expiresAt:')) return { error: ({ account }) => account.wrongLastDay, wrong: 'expires' }
  if (message.startsWith('secrets:')) return { error: ({ account }) => account.mostSecrets }
  if (message.startsWith('If-Match:')) return { error: ({ account }) => account.secretsChanged }
}

/** Why a new key was refused, and whether it is private: then no page repeats it. Undefined for an error that the reader has not caused. */
function describeKeyRefusal ({ code, message }: IdentityError): { error: Message, isPrivate?: true } | undefined {
  if (!message.startsWith('jwks:')) return undefined
  if (message.includes('this one is private') || message.includes('has the member')) return { error: ({ account }) => account.privateKey, isPrivate: true }
  if (code === 'ErrLimit') return { error: ({ account }) => account.mostKeys }
  return { error: message.includes('is the same key') ? ({ account }) => account.sameKey : ({ account }) => account.wrongKey }
}

/** Creates the function that shows the page of a client. */
function createClientView ({ identity: { clients, store } }: FastifyInstance, { look, now }: AccountMount) {
  /** @param more what this response alone has: a secret, or what was typed in a form that was refused */
  return async function show (reply: FastifyReply, visit: Visit, client: Client, more: Partial<Pages['account-client']> = {}): Promise<FastifyReply> {
    const { clientId, name, clientSecret, createdAt, redirectUris, scopes, disabled = false } = client
    const [{ secrets, tag, mayAdd }, keys] = await Promise.all([clients.listSecrets(clientId, visit.actor), clients.listKeys(clientId, visit.actor)])
    const time = toTimestamp(now())
    return await sendPage(reply, 'account-client', {
      ...visit.view,
      ...readDone(reply.request),
      client_id: clientId,
      client: { name },
      created_at: createdAt,
      tokenAuth: findShownTokenAuth(client),
      readable: clientSecret !== undefined,
      disabled,
      redirectUris,
      scopes: describeScopes(scopes, await readRegistry(store)),
      secrets: secrets.map(({ id, name: named, last4, createdAt: created_at, expiresAt: expires_at, lastUsedAt: last_used_at }) => ({
        id,
        name: id === FIRST ? undefined : named,
        last4,
        created_at,
        expires_at,
        ended: expires_at !== undefined && expires_at <= time,
        last_used_at
      })),
      match: tag,
      mayAdd,
      keys: keys.map(({ id, kid, algorithms, createdAt: created_at, lastUsedAt: last_used_at }) => ({ id, kid, algorithms, created_at, last_used_at })),
      mayAddKey: keys.length < MOST_KEYS,
      ...more
    }, { look })
  }
}

/** Creates the acts on a client that cannot be undone: the question before each, and the act itself. */
function createClientActs ({ identity: { clients } }: FastifyInstance, { getHome, limitWrites, look }: AccountMount) {
  const page = { look }
  const toPath = (clientId: string) => `${getHome()}/clients/${clientId}`

  /** @throws ErrNotFound */
  async function nameKey ({ actor }: Visit, clientId: string, keyId: string): Promise<string> {
    const found = (await clients.listKeys(clientId, actor)).find(({ id }) => id === keyId)
    if (found === undefined) throw new IdentityError('ErrNotFound', 'key: the client has no such key')
    return found.kid
  }

  /** @throws ErrNotFound */
  async function nameSecret ({ actor }: Visit, clientId: string, secretId: string): Promise<string> {
    const found = (await clients.listSecrets(clientId, actor)).secrets.find(({ id }) => id === secretId)
    if (found === undefined) throw new IdentityError('ErrNotFound', 'secret: the client has no such secret')
    return found.name
  }

  /** Asks before an act that cannot be undone. */
  async function ask (reply: FastifyReply, visit: Visit, { clientId, name }: Client, { action, secret, key }: Given): Promise<FastifyReply> {
    const path = toPath(clientId)
    const { question, warning, submit } = QUESTIONS[action]
    const toView = (subject: string, fields: Record<string, string>): Pages['account-confirm'] => ({
      ...visit.view,
      question: (texts, named) => question(texts, action === 'remove' && secret === FIRST ? html`${texts.account.firstSecret}` : named),
      subject,
      warning,
      submit,
      action: path,
      back: path,
      fields: { action, ...fields }
    })
    if (action === 'remove') return await sendPage(reply, 'account-confirm', toView(await nameSecret(visit, clientId, secret), { secret }), page)
    if (action === 'remove-key') return await sendPage(reply, 'account-confirm', toView(await nameKey(visit, clientId, key), { key }), page)
    return await sendPage(reply, 'account-confirm', toView(name.trim() === '' ? clientId : name, {}), page)
  }

  async function act (reply: FastifyReply, { actor }: Visit, { clientId }: Client, { action, secret, key }: Given): Promise<FastifyReply> {
    await limitWrites(actor.user_id)
    if (action === 'renew') {
      await clients.patch(clientId, { regen_secret: true }, actor)
      return reply.redirect(`${toPath(clientId)}?done=renewed`, 303)
    }
    if (action === 'remove') {
      await clients.removeSecret(clientId, secret, actor)
      return reply.redirect(`${toPath(clientId)}?done=secret-removed`, 303)
    }
    if (action === 'remove-key') {
      await clients.removeKey(clientId, key, actor)
      return reply.redirect(`${toPath(clientId)}?done=key-removed`, 303)
    }
    await clients.remove(clientId, actor)
    return reply.redirect(`${getHome()}/clients?done=removed`, 303)
  }

  return { ask, act }
}

/** The apps that the person has registered, with their secrets and keys. */
export function clientPages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { getHome, limitWrites } = mount
  const { clients } = app.identity
  const show = createClientView(app, mount)
  const { ask, act } = createClientActs(app, mount)

  createPages(app, mount, visits)('/clients', 'account-clients', {
    section: 'clients',
    async show ({ actor }, request) {
      const from = readParameter(request, 'after')
      const fields = 'clientId,name,confidential,disabled,clientSecret,tokenAuth'
      const { batches, after } = await clients.page({ limit: LENGTH, fields, after: typeof from === 'string' ? from : undefined }, actor)
      const found = []
      for await (const batch of batches) found.push(...batch)
      return {
        clients: found.map(({ clientId, name = '', disabled, ...shown }) => ({
          client_id: clientId,
          client: { name },
          tokenAuth: findShownTokenAuth(shown),
          disabled: disabled === true
        })),
        next: after && new URLSearchParams({ after }).toString()
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

  /** Adds a secret. The form has the tag of the list, so that sending it again adds no second one. */
  async function add (request: FastifyRequest, reply: FastifyReply, visit: Visit, client: Client): Promise<FastifyReply> {
    const [name, expires] = [readField(request, 'name').slice(0, LIMITS.name), readField(request, 'expires').slice(0, DAY_LENGTH)]
    await limitWrites(visit.actor.user_id)
    const data = { name, expiresAt: expires === '' ? undefined : `${expires}T23:59:59.999Z` }
    try {
      const { secret: added } = await clients.addSecret(client.clientId, { data }, visit.actor, readField(request, 'match'))
      return await show(reply, visit, client, { added })
    } catch (thrown) {
      if (!(thrown instanceof IdentityError)) throw thrown
      const refusal = describeRefusal(thrown)
      if (refusal === undefined) throw thrown
      const { error, wrong } = refusal
      return await show(reply.code(thrown.statusCode), visit, client, { error, typed: { name, expires, wrong } })
    }
  }

  async function addKey (request: FastifyRequest, reply: FastifyReply, visit: Visit, client: Client): Promise<FastifyReply> {
    const key = readField(request, 'key').slice(0, LONGEST_KEYS)
    await limitWrites(visit.actor.user_id)
    try {
      await clients.addKeys(client.clientId, parseKeys(key), visit.actor)
      return reply.redirect(`${getHome()}/clients/${client.clientId}?done=key-added`, 303)
    } catch (thrown) {
      if (!(thrown instanceof IdentityError)) throw thrown
      const refusal = describeKeyRefusal(thrown)
      if (refusal === undefined) throw thrown
      const { error, isPrivate = false } = refusal
      return await show(reply.code(thrown.statusCode), visit, client, { error, typed: { wrong: 'key', key: isPrivate ? undefined : key } })
    }
  }

  app.get<One>('/clients/:clientId', { schema }, async (request, reply) => {
    const visit = await open(request, reply)
    if (visit === null) return reply
    return await show(reply, visit, await requireClient(visit, request.params.clientId))
  })

  app.post<One>('/clients/:clientId', { schema }, async (request, reply) => {
    const visit = await open(request, reply)
    if (visit === null) return reply
    const client = await requireClient(visit, request.params.clientId)
    const action = readField(request, 'action')
    if (action === 'add') return await add(request, reply, visit, client)
    if (action === 'add-key') return await addKey(request, reply, visit, client)
    if (isAct(action)) {
      const given = { action, secret: readField(request, 'secret'), key: readField(request, 'key') }
      return await (readField(request, 'confirm') === '' ? ask(reply, visit, client, given) : act(reply, visit, client, given))
    }
    return await show(reply, visit, client, action === 'show' && client.clientSecret !== undefined ? { secret: client.clientSecret } : {})
  })
}
