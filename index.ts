/**
 * The public API of the package. Everything that is not exported here is private.
 * @module
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { checkPatches } from './lib/oidc/patches.ts'
import { readScript } from './lib/pages/script.ts'
import { PER_GRANT } from './lib/oidc/token-limits.ts'
import { createCounter } from './lib/throttling/counter.ts'
import { handleError } from './plugins/errors.ts'
import { health, openReadiness } from './plugins/health.ts'
import { keepChoice } from './plugins/language.ts'
import { placeInHostDocument } from './plugins/host-document.ts'
import { recordOrigins } from './plugins/origin.ts'
import services, { type IdentityOptions } from './plugins/identity.ts'
import openapi from './plugins/openapi.ts'
import { prepareIdentity } from './plugins/prepare.ts'
import { createPasswordLimit } from './plugins/password-limit.ts'
import { createGetIssuer, isForPrograms, oidc, prepareServer, readOidcOptions } from './plugins/oidc.ts'
import { openStatus } from './plugins/status.ts'
import { createSignInLimits } from './plugins/sign-in-limit.ts'
import { useOwnValidation } from './plugins/validation.ts'
import { createUserLimit } from './plugins/user-limit.ts'
import { createWriteLimit } from './plugins/write-limit.ts'
import { accountRoutes } from './routes/account/index.ts'
import { apiRoutes } from './routes/index.ts'
import { introspectionRoute } from './routes/introspection.ts'
import { interactionRoutes } from './routes/interaction.ts'
import { peoplePages } from './routes/people-pages.ts'

/**
 * The identity service as a plugin. It decorates the app with `identity` and its requests with `caller` and `isAdmin`, and
 * serves the API under `prefix` + `/api/v1`. Routes, errors and validation are encapsulated in a scope of their own.
 * @throws Error at boot that names an invalid option, or says why the store cannot be opened
 */
async function identity (app: FastifyInstance, given: IdentityOptions): Promise<void> {
  const prepared = prepareIdentity(given)
  const { options, server, warnings } = prepared
  for (const warning of warnings) app.log.warn(warning)
  const { counter = createCounter() } = options
  const unlimited = options.rateLimit === false
  const oidcOptions = server && server.options
  const getIssuer = oidcOptions === false ? undefined : createGetIssuer(app, app.prefix + options.prefix, oidcOptions)
  const signing = oidcOptions === false
    ? {}
    : {
        refreshTtl: Math.min(oidcOptions.refreshTtl, oidcOptions.refreshMax),
        issuer: oidcOptions.issuer,
        serviceName: oidcOptions.name,
        documentHosts: oidcOptions.documents?.hosts,
        accountPath: oidcOptions.accountPath,
        ...(server && { mailLook: server.mailLook, languages: server.languages })
      }
  await app.register(services, { ...options, counter, ...(unlimited && { clientsPerUser: false }), ...signing, ...(getIssuer && { getIssuer }) })
  // A process without pages takes the uses of links too, which another process may have mailed.
  const { signInLimit } = oidcOptions === false ? readOidcOptions({}) : oidcOptions
  const limitWrites = createUserLimit('write', !unlimited && options.writeLimit, counter)
  await app.register(async (scope) => {
    scope.setErrorHandler(handleError)
    if (app.identity.metrics !== undefined) scope.addHook('onResponse', app.identity.metrics.onResponse)
    useOwnValidation(scope)
    placeInHostDocument(scope, options.inHostDocument)
    const limits = createSignInLimits(!unlimited && signInLimit, counter)
    if (options.openapi) await scope.register(openapi)
    const checkReadiness = openReadiness(scope, options.closing)
    const status = openStatus(scope, { given, prepared, checkReadiness, getIssuer })
    if (options.health) await scope.register(health, { checkReadiness })
    const registerApi = (via: 'api' | 'console') => async (api: FastifyInstance) => {
      const passwordLimit = await createPasswordLimit(api, options.rateLimit, counter)
      const writeLimit = createWriteLimit(limitWrites)
      const linkLimit = async (request: FastifyRequest) => await limits.guess(request)
      const { access, stallTimeout, forwardAuth, now = Date.now } = options
      await api.register(apiRoutes, { access, stallTimeout, forwardAuth, now, passwordLimit, writeLimit, linkLimit, status, via })
    }
    await scope.register(registerApi('api'), { prefix: '/api/v1' })
    if (server !== false && getIssuer !== undefined) {
      const { options: oidcOptions, accountPath: path } = server
      await scope.register(async (signing) => {
        recordOrigins(signing, ({ routeOptions: { url } }) => isForPrograms(url) ? 'api' : 'page')
        await checkPatches()
        keepChoice(signing, () => getIssuer().protocol === 'https:')
        const { accountPath } = oidcOptions
        const getHome = () => getIssuer().pathname.replace(/\/$/, '') + accountPath
        const getScript = () => new URL(`${getIssuer().pathname.replace(/\/$/, '')}${path}/${readScript().file}`, getIssuer()).href
        const look = { ...server.look, ...(accountPath !== false && { getHome }), ...(app.identity.passkeys.party !== undefined && { getScript }) }
        const tokenLimits = unlimited ? {} : { clientTokens: options.writeLimit, grantTokens: PER_GRANT }
        const delivers = options.sender?.local !== true
        const mount = { ...prepareServer(scope, { ...oidcOptions, ...tokenLimits, signUp: options.signUp, delivers }, look, getIssuer), limits, look }
        await signing.register(oidc, mount)
        await signing.register(introspectionRoute, { ...mount, prefix: '/api/v1' })
        const getPath = () => getIssuer().pathname.replace(/\/$/, '') + path
        const people = { ...mount, getPath, passwordMin: options.passwordMin, now: options.now ?? Date.now }
        await signing.register(interactionRoutes, { ...people, prefix: '/api/v1' })
        await signing.register(peoplePages, { ...people, prefix: path })
        if (app.identity.upstreams !== undefined) {
          const { upstreamRoutes } = await import('./routes/upstreams.ts')
          const { upstreamLogoutRoute } = await import('./routes/upstream-logout.ts')
          await signing.register(upstreamLogoutRoute, { ...mount, prefix: '/api/v1' })
          await signing.register(upstreamRoutes, { ...mount, getHome: getPath, prefix: '/api/v1' })
        }
        const limitPasswords = createUserLimit('password', options.rateLimit, counter)
        const account = { ...people, getHome: getPath, limitWrites, limitPasswords, stallTimeout: options.stallTimeout }
        const isOn = accountPath !== false
        if (options.console === false) return await signing.register(accountRoutes, { ...account, isOn, prefix: path })
        const [{ createConsoleDoor }, { consoleRoutes }] = await Promise.all([import('./plugins/console-door.ts'), import('./routes/console/index.ts')])
        const consoleOptions = { ...options.console, acr: options.console.acr ?? (options.production ? 'mfa' as const : undefined) }
        const door = createConsoleDoor(app, { access: options.access, options: consoleOptions })
        const getConsole = () => getIssuer().pathname.replace(/\/$/, '') + consoleOptions.path
        await signing.register(accountRoutes, { ...account, isOn, console: { getPath: getConsole, isNear: door.isNear, toAsked: door.toAsked }, prefix: path })
        await signing.register(consoleRoutes, {
          mount: { ...account, access: options.access, options: consoleOptions, getConsole },
          door,
          registerApi: registerApi('console'),
          prefix: consoleOptions.path
        })
      })
    }
  }, { prefix: options.prefix })
}

const plugin = fp(identity, { fastify: '5.x', name: 'fastify-identity' })

export default plugin
export { plugin as fastifyIdentity }

export { ACCESS, type AccessRow } from './plugins/access-table.ts'
export { type GuardOptions } from './plugins/admission.ts'
export { type Guard } from './plugins/auth.ts'
export { type ProtectOptions } from './plugins/protect.ts'
export { type Identity, type IdentityOptions } from './plugins/identity.ts'
export { ERRORS, IdentityError, type ErrorCode } from './lib/errors.ts'
export { type Count, type CountedAccount, type Counter, type Refusing } from './lib/throttling/counter.ts'
export { type Services } from './lib/identity.ts'
export { type Caller, type MintOptions, type MintedTokens } from './lib/tokens/tokens.ts'
export { openStore } from './lib/store/index.ts'
export { COLLECTIONS } from './lib/store/collections.ts'
export { type Collection, type Document, type Store } from './lib/store/port.ts'
export { type AccessRule } from './schemas/options.ts'
export { type OidcOptions } from './schemas/oidc.ts'
export { type Client } from './schemas/client.ts'
export { type NewResource, type Resource } from './schemas/resource.ts'
export { type User } from './schemas/user.ts'
export { type TokenInfo } from './schemas/auth.ts'
