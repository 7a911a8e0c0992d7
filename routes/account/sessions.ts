import type { FastifyInstance } from 'fastify'
import { describeScopes } from '../../lib/oidc/policy.ts'
import { findByUri, readRegistry } from '../../lib/resources/registry.ts'
import type { AccountMount, Visits } from '../../plugins/account.ts'
import { sendPage } from '../../plugins/pages.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { LIMITS } from '../../schemas/common.ts'
import { createPages } from './page.ts'

/** Where the person is signed in, and the apps that may act for them. */
export function sessionPages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { getHome, limitWrites, look } = mount
  const { ownSessions, tokenSessions, store } = app.identity
  const add = createPages(app, mount, visits)

  add('/sessions', 'account-sessions', {
    section: 'sessions',
    async show ({ session, user: { user_id } }) {
      const [browsers, apps] = await Promise.all([ownSessions.listBrowsers(user_id), ownSessions.listTokenSessions(user_id)])
      return {
        browsers: browsers.entries.map(({ uid, place, signed_in_at, last_used_at, console_used_at }) =>
          ({ id: uid, place, since: signed_in_at, last_used_at, current: uid === session.uid, isConsole: console_used_at !== undefined })),
        apps: apps.entries.map(({ session_id, client, place, created_at, last_used_at }) =>
          ({ id: session_id, client, since: created_at, last_used_at, place })),
        more: browsers.more + apps.more
      }
    },
    async submit ({ session, user: { user_id } }, request) {
      const [browser, app] = [readField(request, 'browser').slice(0, LIMITS.id), readField(request, 'session').slice(0, LIMITS.id)]
      await limitWrites(user_id)
      if (readField(request, 'others') !== '') {
        await tokenSessions.end(user_id, session.uid)
        return 'others'
      }
      if (browser !== '') await ownSessions.endBrowser(user_id, browser)
      else await ownSessions.endTokenSession(user_id, app)
      return 'ended'
    }
  })

  add('/apps', 'account-apps', {
    section: 'apps',
    async show ({ user: { user_id } }) {
      const [{ entries, more }, registry] = await Promise.all([ownSessions.listApps(user_id), readRegistry(store)])
      const apps = entries.map(({ client: { client_id, name }, scopes, roles_at, redirect_uri: redirectUri, ...rest }) => {
        // The service's own API is in no registry: its name is its address.
        const roles = roles_at.map((uri) => ({ scope: 'roles', at: findByUri(registry, uri)?.[1].name ?? uri }))
        return { client_id, client: { name }, redirectUri, scopes: [...describeScopes(scopes, registry), ...roles], ...rest }
      })
      return { apps, more }
    },
    async submit ({ view, user: { user_id } }, request, reply) {
      const client_id = readField(request, 'client').slice(0, LIMITS.id)
      if (readField(request, 'confirm') === '') {
        const path = `${getHome()}/apps`
        const app = (await ownSessions.listApps(user_id)).entries.find(({ client }) => client.client_id === client_id)
        if (app === undefined) return reply.redirect(path, 303)
        return await sendPage(reply, 'account-confirm', {
          ...view,
          question: ({ account }, app) => account.disconnectQuestion({ app }),
          subject: app.client.name,
          warning: ({ account }) => account.disconnectWarning,
          submit: ({ account }) => account.disconnect,
          action: path,
          back: path,
          fields: { client: client_id }
        }, { look })
      }
      await limitWrites(user_id)
      await ownSessions.disconnect(user_id, client_id)
      return 'disconnected'
    }
  })
}
