import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { RemoteOptionsSchema, type RemoteSettings } from '../schemas/remote.ts'
import type { Dispatcher } from '../lib/service-client/relay.ts'
import type { Clock } from '../lib/clock.ts'
import { createOptionsReader } from '../lib/options.ts'
import { RemoteTokens } from '../lib/remote/remote-tokens.ts'
import { parseLocation } from '../lib/remote/service-location.ts'
import { TokenInfoClient } from '../lib/remote/token-info-client.ts'
import { checkRoleNames } from '../lib/roles.ts'
import { decorateRequests, type Identity } from './auth.ts'
import { createGuards } from './guards.ts'

export { ERRORS, IdentityError, type ErrorCode } from '../lib/errors.ts'
export { type Dispatcher } from '../lib/service-client/relay.ts'
export { type Caller } from '../lib/tokens/tokens.ts'
export { type GuardOptions } from './admission.ts'
export { type Guard, type Identity } from './auth.ts'
export { type ProtectOptions } from './protect.ts'

/** The options of the remote plugin. `upstream` or `issuer` is required; all others have defaults. */
export type RemoteAuthOptions = Partial<Omit<RemoteSettings, 'roles'>> & {
  /** Other names for the roles, as configured in the service. */
  roles?: Partial<RemoteSettings['roles']>
  /** An undici dispatcher of the host app: used instead of the plugin's own pool, and never closed. */
  dispatcher?: Dispatcher
  /**
   * The time in milliseconds since 1970, for tests: both the age of answers and that of sign-ins are counted by it. Absent: a monotonic clock for
   * answers, and the clock of the machine for sign-ins, whose times the service writes.
   */
  now?: Clock
}

const readOptions = createOptionsReader(RemoteOptionsSchema)

/**
 * For an app whose users are in an identity service elsewhere: decorates it with `app.identity.guard` and `check`,
 * `request.caller` and `request.isAdmin`, as in an app that embeds the service. Each token is checked with the service.
 * @example
 * await app.register(remoteAuth, { issuer: 'https://id.example.com' })
 * app.get('/orders', { onRequest: app.identity.guard({ audience: 'https://orders.example.com', scopes: ['orders:read'] }) }, handler)
 * @throws Error at boot that names a wrong option
 */
async function remote (app: FastifyInstance, { dispatcher, now, ...given }: RemoteAuthOptions): Promise<void> {
  const options = readOptions(given)
  checkRoleNames(options.roles)
  const client = new TokenInfoClient({ ...options, location: parseLocation(options), dispatcher })
  const tokens = new RemoteTokens({
    ...options,
    client,
    now: now ?? (() => performance.now()),
    onChange: (error) => error === undefined
      ? app.log.info('the identity service is available again')
      : app.log.warn({ err: error }, 'the identity service is unavailable')
  })
  const { issuer, jwtResources: resources = [] } = options
  if (resources.length > 0 && issuer === undefined) throw new Error('option jwtResources: needs the option issuer')
  // Only these exist here: the services of this type need the store.
  const getIssuer = issuer === undefined ? undefined : () => issuer
  const local = issuer === undefined || resources.length === 0
    ? undefined
    : new (await import('../lib/remote/local-tokens.ts')).LocalTokens({ ...options, issuer, resources, client, now: now ?? Date.now })
  const checking = local === undefined ? tokens : { authenticate: (token: string) => local.authenticate(token) ?? tokens.authenticate(token) }
  app.decorate('identity', createGuards(app, { tokens: checking, roles: options.roles, now: now ?? Date.now, getIssuer }) as Identity)
  decorateRequests(app)
  app.addHook('onClose', async () => await client.close())
}

const plugin = fp(remote, { fastify: '5.x', name: 'fastify-identity/remote' })

export default plugin
export { plugin as remoteAuth }
