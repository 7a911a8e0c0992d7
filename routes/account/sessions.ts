import type { FastifyInstance } from 'fastify'
import { describeScopes } from '../../lib/oidc/policy.ts'
import { findByUri, readRegistry } from '../../lib/resources/registry.ts'
import type { AccountMount, Visits } from '../../plugins/account.ts'
import { sendPage } from '../../plugins/pages.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { LIMITS } from '../../schemas/common.ts'
import { readDone } from './done.ts'

const schema = { hide: true }

/** Where the person is signed in, and the apps that may act for them. */
export function sessionPages (app: FastifyInstance, { getHome, limitWrites, look }: AccountMount, visits: Visits): void {
  const { ownSessions, tokenSessions, store } = app.identity
  const page = { look }

  app.get('/sessions', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'sessions' })
    if (visit === null) return reply
    const { view, session, user: { user_id } } = visit
    const [browsers, apps] = await Promise.all([ownSessions.listBrowsers(user_id), ownSessions.listTokenSessions(user_id)])
    return await sendPage(reply, 'account-sessions', {
      ...view,
      ...readDone(request),
      browsers: browsers.entries.map(({ uid, place, signed_in_at, last_used_at }) => ({ id: uid, place, since: signed_in_at, last_used_at, current: uid === session.uid })),
      apps: apps.entries.map(({ session_id, client, place, created_at, last_used_at }) =>
        ({ id: session_id, client, since: created_at, last_used_at, ...(place !== undefined && { place }) })),
      more: browsers.more + apps.more
    }, page)
  })

  app.post('/sessions', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'sessions' })
    if (visit === null) return reply
    const { session, user: { user_id } } = visit
    const [browser, app] = [readField(request, 'browser').slice(0, LIMITS.id), readField(request, 'session').slice(0, LIMITS.id)]
    await limitWrites(user_id)
    if (readField(request, 'others') !== '') await tokenSessions.end(user_id, session.uid)
    else if (browser !== '') await ownSessions.endBrowser(user_id, browser)
    else await ownSessions.endTokenSession(user_id, app)
    return reply.redirect(`${getHome()}/sessions?done=${readField(request, 'others') === '' ? 'ended' : 'others'}`, 303)
  })

  app.get('/apps', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'apps' })
    if (visit === null) return reply
    const [{ entries, more }, registry] = await Promise.all([ownSessions.listApps(visit.user.user_id), readRegistry(store)])
    const apps = entries.map(({ client: { client_id, name }, scopes, roles_at, ...rest }) => {
      // The service's own API is in no registry: its name is its address.
      const roles = roles_at.map((uri) => ({ scope: 'roles', at: findByUri(registry, uri)?.[1].name ?? uri }))
      return { client_id, client: { name }, scopes: [...describeScopes(scopes, registry), ...roles], ...rest }
    })
    return await sendPage(reply, 'account-apps', { ...visit.view, ...readDone(request), apps, more }, page)
  })

  app.post('/apps', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'apps' })
    if (visit === null) return reply
    const { view, user: { user_id } } = visit
    const client_id = readField(request, 'client').slice(0, LIMITS.id)
    if (readField(request, 'confirm') === '') {
      const app = (await ownSessions.listApps(user_id)).entries.find(({ client }) => client.client_id === client_id)
      if (app === undefined) return reply.redirect(`${getHome()}/apps`, 303)
      return await sendPage(reply, 'account-confirm', {
        ...view,
        question: ({ account }, app) => account.disconnectQuestion({ app }),
        subject: app.client.name,
        warning: ({ account }) => account.disconnectWarning,
        submit: ({ account }) => account.disconnect,
        action: `${getHome()}/apps`,
        back: `${getHome()}/apps`,
        fields: { client: client_id }
      }, page)
    }
    await limitWrites(user_id)
    await ownSessions.disconnect(user_id, client_id)
    return reply.redirect(`${getHome()}/apps?done=disconnected`, 303)
  })
}
