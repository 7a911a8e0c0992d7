import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { RemoteSettings } from '../schemas/remote.ts'
import type { Clock } from '../lib/clock.ts'
import type { Dispatcher } from '../lib/bridge/relay.ts'
import { readRemoteOptions } from '../lib/remote/options.ts'
import { Source } from '../lib/remote/source.ts'
import { RemoteTokens } from '../lib/remote/tokens.ts'
import { createGuard, type GuardOptions, type Identity } from './auth.ts'

export { ERRORS, IdentityError, type ErrorCode } from '../lib/errors.ts'
export { type Dispatcher } from '../lib/bridge/relay.ts'
export { type Caller } from '../lib/tokens/tokens.ts'
export { type Guard, type GuardOptions, type Identity } from './auth.ts'

/** The options of the remote plugin. One of `upstream` and `issuer` is needed; all others have defaults. */
export type RemoteAuthOptions = Partial<Omit<RemoteSettings, 'roles'>> & {
  /** Other names for the roles, as the service has them. */
  roles?: Partial<RemoteSettings['roles']>
  /** An undici dispatcher of the host's: used instead of a pool of the plugin's own, and left open. */
  dispatcher?: Dispatcher
  /** Milliseconds that only move forward; for tests. */
  now?: Clock
}

/**
 * For an app whose users are in an identity service elsewhere: `app.identity.guard`, `request.caller` and
 * `request.isAdmin` as they are beside the store, by asking that service about each token.
 * @example
 * await app.register(remoteAuth, { upstream: 'http://identity:3000' })
 * app.get('/orders', { onRequest: app.identity.guard({ scopes: ['orders:read'] }) }, handler)
 * @throws Error at boot that names a wrong option
 */
async function remote (app: FastifyInstance, { dispatcher, now = () => performance.now(), ...given }: RemoteAuthOptions): Promise<void> {
  const options = readRemoteOptions(given)
  const source = new Source({ ...options, dispatcher })
  const tokens = new RemoteTokens({
    ...options,
    source,
    now,
    onChange: (error) => error === undefined
      ? app.log.info('the identity service answers again')
      : app.log.warn({ err: error }, 'the identity service is unavailable')
  })
  // The services that the type has in a program with plugins/identity.ts are elsewhere.
  app.decorate('identity', { guard: (rule: GuardOptions = {}) => createGuard(tokens, options.roles, rule) } as Identity)
  // An inner scope finds an outer one's.
  if (!app.hasRequestDecorator('caller')) app.decorateRequest('caller', null)
  if (!app.hasRequestDecorator('isAdmin')) app.decorateRequest('isAdmin', false)
  app.addHook('onClose', async () => await source.close())
}

const plugin = fp(remote, { fastify: '5.x', name: 'fastify-identity/remote' })

export default plugin
export { plugin as remoteAuth }
