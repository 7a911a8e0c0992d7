import type { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Provider, errors, interactionPolicy, type KoaContextWithOIDC } from 'oidc-provider'
import { toDocumentHost } from '../client-documents/ids.ts'
import { hideCredentials } from '../failure.ts'
import { INTERACTION, toApiUri, toIssuer } from '../issuer.ts'
import { createAccounts } from './accounts.ts'
import { createAdapterFactory } from './adapter.ts'
import { GRANT_TYPES } from '../clients/kinds.ts'
import type { Logos } from '../clients/logos.ts'
import { nameCaller } from '../events/origin.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Acr } from '../proofs.ts'
import type { ClientGrant } from '../records/client.ts'
import type { Counter } from '../throttling/counter.ts'
import type { ClientAuthentication } from './client-authentication.ts'
import { createCallers } from './callers.ts'
import { createClientSource } from './client-source.ts'
import { takeSpent, takeText, toInternals, toOurClient } from './context.ts'
import { createTokenSigner } from './jwt-access-tokens.ts'
import { createBrowserSessions } from './browser-sessions.ts'
import { createConfiguration, createCookie } from './configuration.ts'
import { keepOnPage } from './error-page.ts'
import type { AuthorizationServer, Interaction, OidcSettings, RefusedUri } from './contract.ts'
import { type MaySignIn, canAddTo, findAskedAcr } from '../sign-in/may-sign-in.ts'
import { findAsked, findBase } from './judge.ts'
import type { KeyRing } from './keys.ts'
import { createLogoutSigner } from './logout-tokens.ts'
import { createTokenLimits } from './token-limits.ts'
import { createMiddleware } from './middleware.ts'
import type { AdapterParts } from './model-adapter.ts'
import { patchProvider, setAddress } from './patches.ts'
import { createGrantLoader, describeScopes } from './policy.ts'
import { attachInteraction, detachInteraction, keepInteraction, readFreshness } from './requests.ts'
import { createResourceIndicators } from './resource-indicators.ts'
import { toSince } from '../sign-in/freshness.ts'
import type { RoleNames } from '../roles.ts'
import { splitScopes } from './scopes.ts'
import { type Registry, findByUri, readRegistry } from '../resources/registry.ts'
import type { Look } from '../pages/look.ts'
import { completeLogin, tellOfSignOut } from './sign-in-sessions.ts'
import { formatUserCode } from './user-code.ts'
import { createViews, findRefusedUri, findWay } from './views.ts'

interface ProviderParts extends Pick<AdapterParts, 'store' | 'tokens' | 'box' | 'times' | 'addresses' | 'documents' | 'standing'> {
  authentication: Pick<ClientAuthentication, 'verify' | 'verifyRequest'>
  recorder: Pick<Recorder, 'insert'>
  roles: RoleNames
  issuer: URL
  /** The path before `/api/v1`, as the app sees it. */
  prefix: string
  settings: OidcSettings
  look: Look
  keys: KeyRing
  /** Judges an authorization with a session. */
  maySignIn: MaySignIn
  /** The classes that a sign-in can reach. */
  acrs: readonly Acr[]
  /** Finds our copies of the images of clients. */
  logos?: Pick<Logos, 'find'> | undefined
  /** Counts requests of the token endpoint. */
  counter: Counter
  /** Receives failures on our side. */
  onError (error: unknown, request: IncomingMessage): void
  /** Receives a redirect URI that the client has not registered, without its query. */
  onRefusedUri?: ((refused: RefusedUri) => void) | undefined
  /** Called for each answer with an access token. */
  onGrant?: ((grant: ClientGrant) => void) | undefined
}

export async function buildServer (parts: ProviderParts): Promise<AuthorizationServer> {
  const { issuer, prefix, settings, look, keys, store, maySignIn, acrs, tokens, box, authentication, times, recorder, addresses, counter, documents, standing, logos } = parts
  const base = `${prefix}/api/v1`
  const issuerId = toIssuer(issuer)
  // The path prefix that a proxy strips before the request reaches the app.
  const mount = issuer.pathname.replace(/\/$/, '').slice(0, -prefix.length || undefined)
  const apiUri = toApiUri(issuer)
  const secure = issuer.protocol === 'https:'
  const browsers = createBrowserSessions(() => ({ provider, tokens, times, settings, cookie: createCookie(secure) }))
  const limits = createTokenLimits(settings, { counter, errors, getContext: () => getContext() })
  const callers = createCallers({ authentication, issuer: issuerId, errors, getContext: () => getContext() })
  const registries = new WeakMap<object, Promise<Registry>>()

  /** In a request of oidc-provider, what it has read first. */
  async function readOnce (): Promise<Registry> {
    const ctx = getContext()
    const read = (ctx && registries.get(ctx)) ?? readRegistry(store)
    if (ctx !== undefined) registries.set(ctx, read)
    return await read
  }

  const adapterParts: AdapterParts = {
    callers,
    readRegistry: readOnce,
    store,
    tokens,
    box,
    times,
    addresses,
    keys,
    errors,
    documents,
    standing,
    accessTtl: settings.accessTtl,
    sessionMax: settings.sessionMax,
    refreshMax: settings.refreshMax,
    refreshGrace: settings.refreshGrace,
    apiUri,
    limits,
    signToken: createTokenSigner({ store, times, keys, issuer: issuerId, roles: parts.roles, readRegistry: readOnce, errors }),
    getContext: () => getContext()
  }
  const adapter = createAdapterFactory(adapterParts)
  const findAccount = createAccounts(store, times.now)

  /** The name of a requested resource on a page; undefined without one. */
  function nameResource (registry: Registry, uri: string | undefined): string | undefined {
    if (uri === apiUri) return look.name ?? apiUri
    return uri === undefined ? undefined : findByUri(registry, uri)?.[1].name
  }

  const views = createViews(look)

  /** Records that a user has let a client act for them. The token session that follows is not an event. */
  async function recordConnection (type: 'app.connected' | 'device.connected', user_id: string | undefined, client_id: unknown): Promise<void> {
    if (user_id === undefined) return
    nameCaller({ user_id })
    await recorder.insert({ type, id: String(client_id), user_id })
  }

  const provider = new Provider(issuerId, createConfiguration({
    settings,
    base,
    mount,
    secure,
    keys,
    adapter,
    findAccount,
    acrs,
    languages: look.languages.tags,
    views: {
      ...views,
      async deviceDone (ctx) {
        try {
          await recordConnection('device.connected', ctx.oidc.session?.accountId, ctx.oidc.client?.clientId)
        } catch (error) {
          // If this error were thrown on, oidc-provider would refuse the code, which is already approved.
          parts.onError(error, ctx.req)
          ctx.status = 503
          return await views.error(ctx, {
            error: 'temporarily_unavailable', error_description: 'The device is connected, and the service could not record it.'
          })
        }
        await views.deviceDone(ctx)
      }
    },
    resourceIndicators: createResourceIndicators({ readRegistry: readOnce, apiUri, accessTtl: settings.accessTtl, errors }),
    loadGrant: createGrantLoader(readOnce),
    countRefresh: async () => await limits.countGrant(getContext()?.oidc.entities.Grant?.jti ?? ''),
    callers,
    errors,
    policy: interactionPolicy,
    maySignIn,
    toEpoch: times.toEpoch
  }))
  const getContext = () => browsers.getContext() ?? Provider.ctx
  patchProvider(provider, issuer, errors, {
    findClient: createClientSource(adapterParts, (metadata) => new (toInternals(provider).Client)(metadata)),
    tellOfSignOut: async () => await tellOfSignOut(getContext(), tokens),
    isSecret: callers.isSecret,
    isSpent: (jti) => takeSpent(getContext(), jti),
    takeText: (id) => takeText(getContext(), id)
  })
  provider.on('backchannel.error', (ctx: KoaContextWithOIDC, error: Error) => parts.onError(error, ctx.req))

  provider.on('server_error', (ctx: KoaContextWithOIDC, error: Error & { headers?: Record<string, string> }) => {
    keepOnPage(ctx, error)
    // An unavailable store says when to retry.
    if (error.headers !== undefined) ctx.set(error.headers)
    parts.onError(error, ctx.req)
  })
  provider.on('authorization.error', (ctx: KoaContextWithOIDC, thrown: Error & { error?: string }) => {
    keepOnPage(ctx, thrown)
    const { params } = ctx.oidc
    const uri = findRefusedUri(String(thrown.error), params)
    // Without its query and fragment, where apps put codes and other secrets.
    if (uri !== undefined) parts.onRefusedUri?.({ client_id: String(params?.client_id).slice(0, 64), redirect_uri: hideCredentials(uri.split(/[?#]/, 1)[0]!) })
  })
  const koa: EventEmitter = provider
  koa.on('error', (error: Error, ctx?: KoaContextWithOIDC) => {
    if (ctx !== undefined) parts.onError(error, ctx.req)
  })
  const { onGrant } = parts
  if (onGrant !== undefined) {
    provider.on('grant.success', ({ oidc: { params } }: KoaContextWithOIDC) => {
      for (const [grant, type] of Object.entries(GRANT_TYPES)) if (type === params?.grant_type) onGrant(grant as ClientGrant)
    })
  }
  provider.use(createMiddleware(base, mount, views, look))
  const callback = provider.callback()

  /** The device that an interaction is about, while its code can be used. */
  async function findDevice (id: string): Promise<Interaction['device']> {
    const found = await provider.DeviceCode.find(id, { ignoreExpiration: true })
    const code = formatUserCode(found?.userCode ?? '')
    if (found === undefined || code === undefined || found.isExpired || found.error !== undefined || found.accountId !== undefined) return undefined
    const { ip } = (found.deviceInfo ?? {}) as { ip?: string }
    return { code, ip }
  }

  /** Signs out the browser's previous user when another one signs in. oidc-provider does this too, but by a script. */
  async function signOutPrevious (request: IncomingMessage, response: ServerResponse, accountId: string): Promise<void> {
    const interaction = await provider.interactionDetails(request, response)
    const previous = interaction.session
    if (previous?.accountId === undefined || previous.accountId === accountId) return
    await tokens.endSignIn(previous.uid)
    await detachInteraction(interaction)
  }

  return {
    issuer,
    browsers,
    signLogout: createLogoutSigner(provider),
    async handle (request, response, address) {
      setAddress(request, address)
      await callback(request, response)
    },
    async findInteraction (request, response) {
      if (request.method === 'POST') await keepInteraction({ store, times }, (await provider.interactionDetails(request, response)).uid)
      const { uid, iat, prompt, params, session, deviceCode, returnTo } = await provider.interactionDetails(request, response)
      const device = deviceCode === undefined ? undefined : await findDevice(deviceCode)
      const asked = await findAsked(store, { prompt, session })
      const renewal = asked && await standing?.findRenewal(asked)
      const acr = findAskedAcr(params.acr_values)
      const proved = asked && renewal === undefined ? findBase(asked, times.now()) : undefined
      const stepUp = proved && canAddTo(await maySignIn({
        user_id: proved.user_id, epoch: proved.user_epoch, proofs: proved.proofs, client_id: String(params.client_id), acr
      }))
        ? proved
        : undefined
      const freshness = readFreshness(params, times.fromEpoch(iat))
      const client = await provider.Client.find(String(params.client_id))
      if (client === undefined) throw new errors.InvalidClient('client is invalid', 'client not found')
      const { redirect_uri: redirectUri, login_hint: loginHint, ui_locales: locales, scope, upstream } = params as Record<string, string | undefined>
      // The URI was removed from the client since the request came: not even a refusal may be sent there.
      if (redirectUri !== undefined && !client.redirectUriAllowed(redirectUri)) throw new errors.InvalidRedirectUri()
      const { vouched, vouched_image, owner, document } = toOurClient(client)
      const registry = await readRegistry(store)
      const [uri] = [params.resource as string | string[] | undefined].flat()
      const resource = uri === undefined || uri === apiUri ? undefined : findByUri(registry, uri)?.[1]
      return {
        uid,
        action: `${mount}${base}${INTERACTION}/${uid}`,
        prompt: prompt.name as Interaction['prompt'],
        clientId: client.clientId,
        clientName: client.clientName ?? client.clientId,
        vouched,
        logo: await logos?.find(client.clientId, vouched_image),
        owner,
        document: document === undefined ? undefined : { host: toDocumentHost(client.clientId), print: document.print },
        resource: resource === undefined ? undefined : { name: resource.name, uri: resource.uri },
        scopes: describeScopes(splitScopes(scope), registry, nameResource(registry, uri)),
        redirectUri,
        locales,
        upstream,
        loginHint,
        accountId: session?.accountId,
        stepUp,
        renewal,
        acr,
        device,
        over: deviceCode !== undefined && device === undefined ? returnTo : undefined,
        freshness: freshness === undefined ? undefined : { since: toSince(freshness, times.now(), stepUp !== undefined), maxAge: freshness.maxAge }
      }
    },
    async findWay (client_id) {
      const client = await provider.Client.find(client_id)
      return client === undefined ? undefined : findWay(toOurClient(client))
    },
    async detach (uid) {
      const interaction = await provider.Interaction.find(uid)
      if (interaction !== undefined) await detachInteraction(interaction)
    },
    async decide (request, response, decision) {
      if ('login' in decision) await signOutPrevious(request, response, decision.login.accountId)
      if ('code_used' in decision) await attachInteraction(await provider.interactionDetails(request, response), decision.code_used.session)
      // The client of a document is stored before the code. Without it, the person is asked again.
      if ('consent' in decision && decision.consent.document !== undefined) {
        const { params } = await provider.interactionDetails(request, response)
        await (await documents?.load())?.accept(String(params.client_id), decision.consent.document)
      }
      // oidc-provider merges this result into that of a later consent, so the result carries the time of the sign-in.
      const result = 'login' in decision
        ? { login: completeLogin(decision.login, times), create: {}, select_account: {} }
        : 'code_used' in decision
          ? { code_used: {}, login: completeLogin(decision.code_used.login, times) }
          : 'consent' in decision ? { ...decision, select_account: {} } : decision
      const next = await provider.interactionResult(request, response, result, {
        mergeWithLastSubmission: 'consent' in decision || 'select_account' in decision || 'code_used' in decision
      })
      if ('consent' in decision) {
        const { session, params } = await provider.interactionDetails(request, response)
        await recordConnection('app.connected', session?.accountId, params.client_id)
      }
      return next
    }
  }
}
